"""Drift of models between snapshots of the same items: `qa_drift`."""

import dagster as dg
import pyarrow as pa

from assets.stage.checks import asset_check, verdict
from assets.stage.family_drift import SHIFT_COLUMNS, FamilyDrift, Judged, define_drift
from assets.stage.resources import Store
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.qa.anchored_answers import qa_judge_drift_rows
from dtef_pipeline.qa.netted_scores import net_of_judge
from dtef_pipeline.qa.watched_scores import QA_DRIFT_READS, QA_WATCHED, qa_drift_rule, qa_watched_drift


def _judged(store: Store, checks: pa.Table, options: WatchOptions) -> Judged:
    anchored = store.warehouse.read_or_empty("qa_anchors")
    return net_of_judge(checks, anchored, options), qa_judge_drift_rows(anchored, options)


qa_drift, qa_no_drift, qa_verdicts_were_told = define_drift(
    FamilyDrift(
        family="qa",
        code_version="4",
        rows="Whether scores of the same items moved: one row per part, model variant, condition, metric and what it was measured by.",
        besides="Where the judge was shown stored answers again (`qa_anchors`), `qa_judge_drift` has one row per judge and evaluator: a judged "
        "score that moved with the judge is no drift of the model, and `net_shift` is what is left of its shift.",
        subject=QA_WATCHED,
        scores=("qa_scores", "part", "dtef qa run"),
        reads=QA_DRIFT_READS,
        rule=qa_drift_rule,
        watched=qa_watched_drift,
        rule_columns=("suite", "part", "model", "metric", "lowest_snapshot", "highest_snapshot", "lowest", "highest"),
        verdict_columns=("verdict", "model", "condition", "metric", *SHIFT_COLUMNS, "net_shift"),
        judged=_judged,
        judge_columns=("verdict", "judge_model", "evaluator", *SHIFT_COLUMNS),
    )
)


@asset_check(asset=qa_drift)
def qa_judge_stands_still(store: Store) -> dg.AssetCheckResult:
    """Warns of a judge that moved, alone or beside others: what it says of the same stored answers is not what it said before."""
    rows = store.warehouse.read_or_empty("qa_judge_drift").to_pylist()
    moved = [
        f"{row['judge_model']}, {row['evaluator']}, {row['verdict']} since {row['first_snapshot']}: {row['shift']:+.4f}"
        for row in rows
        if row["first_snapshot"] is not None
    ]
    return verdict(moved, checked=len(rows), severity=dg.AssetCheckSeverity.WARN)
