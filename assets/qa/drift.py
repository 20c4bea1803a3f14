"""Drift of models between snapshots of the same items: `qa_drift`."""

import dagster as dg

from assets.stage.checks import asset_check, verdict
from assets.stage.family_drift import FamilyDrift, define_drift
from assets.stage.resources import Store
from dtef_pipeline.qa.watched_scores import QA_WATCHED

qa_drift, qa_no_drift, qa_verdicts_were_sent = define_drift(
    FamilyDrift(
        subject=QA_WATCHED,
        code_version="5",
        besides="Where the judge was shown stored answers again (`qa_anchors`), a judged score that moved with the judge is no drift of the "
        "model, and `net_shift` is what is left of its shift.",
        scores=("qa_scores", "part", "dtef qa run"),
    )
)


@asset_check(asset=qa_drift)
def qa_judge_stands_still(store: Store) -> dg.AssetCheckResult:
    """Warns of a judge that moved, alone or beside others: what it says of the same stored answers is not what it said before."""
    rows = store.warehouse.read_or_empty("judge_drift", family="qa").to_pylist()
    moved = [
        f"{row['judge']}, {row['evaluator']}, {row['verdict']} since {row['first_snapshot']}: {row['shift']:+.4f}"
        for row in rows
        if row["first_snapshot"] is not None
    ]
    return verdict(moved, checked=len(rows), severity=dg.AssetCheckSeverity.WARN)
