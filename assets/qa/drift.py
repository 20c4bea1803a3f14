"""Drift of models between snapshots of the same items: `qa_drift`."""

from typing import Any

import dagster as dg
import pyarrow as pa

from assets.qa.boards import OF_SCORES, require_qa_scores
from assets.qa.files import QA_GROUP
from assets.stage.checks import asset_check, verdict
from assets.stage.drift_told import drift_result, send_verdicts, told_result, with_told
from assets.stage.panel_drift import drift_section, panel_drift
from assets.stage.partitions import markdown, roll_up
from assets.stage.published import published
from assets.stage.resources import Store
from assets.stage.watch_config import WatchConfig
from dtef_pipeline.drift.headline import headline
from dtef_pipeline.drift.verdict_text import by_verdict
from dtef_pipeline.qa.anchored_answers import qa_judge_drift_rows
from dtef_pipeline.qa.netted_scores import net_of_judge
from dtef_pipeline.qa.watched_scores import QA_DRIFT_READS, QA_WATCHED, qa_drift_rule, qa_watched_drift

_QA_VERDICTS = "qa_model_drift"


@dg.asset(deps=OF_SCORES, **{**roll_up("qa_drift", code_version="4"), **QA_GROUP})
def qa_drift(context: dg.AssetExecutionContext, config: WatchConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Whether scores of the same items moved between snapshots: one row per part, model variant, condition, metric and what it was measured by.

    The documented rule flags a gap of 0.05 and 10 % between the lowest and the highest snapshot, at temperature 0. Beside it stand
    `qa_model_drift`, the verdict by the project's evidence on each model over all parts (`drift` where the rule flags it and there is strong
    evidence however often one looks, `watch` where the rule alone does), and its timeline `qa_drift_series`. Where the judge was shown stored
    answers again (`qa_anchors`), `qa_judge_drift` has one row per judge and evaluator: a judged score that moved with the judge is no drift of
    the model, and `net_shift` is what is left of its shift. The panel's section `drift` holds here too; a verdict that is new is sent to the
    webhook, if there is one.
    """
    require_qa_scores(store)
    drift = panel_drift(store.settings, store.warehouse)
    options = config.over(drift.options)
    ruled = store.warehouse.query(qa_drift_rule, only=QA_DRIFT_READS)
    found = store.warehouse.query(lambda connection: qa_watched_drift(connection, options), only=QA_DRIFT_READS)
    anchored = store.warehouse.read_or_empty("qa_anchors")
    checks, judges = net_of_judge(found.checks, anchored, options), qa_judge_drift_rows(anchored, options)
    models = with_told(store, _QA_VERDICTS, checks, QA_WATCHED)
    ranked = pa.Table.from_pylist(sorted(models.to_pylist(), key=by_verdict(QA_WATCHED.keys)), models.schema)
    flagged = ruled.filter(pa.compute.equal(ruled["flagged"], True)).sort_by([("gap", "descending")])
    shown = [
        "verdict",
        "model",
        "condition",
        "metric",
        "n_snapshots",
        "shift",
        "shift_low",
        "shift_high",
        "first_snapshot",
        "net_shift",
    ]
    of_judges = ["verdict", "judge_model", "evaluator", *shown[4:-1]]
    of_rule = ["suite", "part", "model", "metric", "lowest_snapshot", "highest_snapshot", "lowest", "highest"]
    result = published(
        store,
        {"qa_drift": ruled, _QA_VERDICTS: models, "qa_drift_series": found.series, "qa_judge_drift": judges},
        headline=headline(models, QA_WATCHED),
        flagged=len(flagged),
        documented=markdown(flagged, of_rule, most=15),
        models=markdown(ranked, shown, most=30),
        judges=markdown(judges, of_judges, most=20),
    )
    sent = send_verdicts(context, store, _QA_VERDICTS, models, QA_WATCHED, drift.tell, found.order)
    return result._replace(metadata={**(result.metadata or {}), "webhook": sent})


@asset_check(asset=qa_drift)
def qa_no_drift(store: Store) -> dg.AssetCheckResult:
    """Fails for a model that drifted by the project's evidence, warns of one to watch, unless the panel's `severity` says otherwise."""
    rows = store.warehouse.read(_QA_VERDICTS)
    return drift_result(rows, len(rows), drift_section(store.settings).severity, QA_WATCHED)


@asset_check(asset=qa_drift)
def qa_verdicts_were_told(store: Store) -> dg.AssetCheckResult:
    """Warns while the webhook has not accepted a verdict that was due to be sent; it is sent again with the next `qa_drift`."""
    return told_result(store, _QA_VERDICTS, QA_WATCHED, drift_section(store.settings).tell)


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
