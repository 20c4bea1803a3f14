"""Drift of models between runs of the same test: `rubric_drift`."""

from typing import Any

import dagster as dg
import pyarrow as pa

from assets.rubric.blueprints import RUBRIC_GROUP
from assets.rubric.roll_ups import require_scored
from assets.rubric.scores import rubric_scores
from assets.stage.checks import asset_check
from assets.stage.drift_told import drift_result, send_verdicts, told_result, with_told
from assets.stage.panel_drift import drift_section, panel_drift
from assets.stage.partitions import markdown, roll_up
from assets.stage.published import published
from assets.stage.resources import Store
from assets.stage.watch_config import WatchConfig
from dtef_pipeline.drift.headline import headline
from dtef_pipeline.drift.verdict_text import by_verdict
from dtef_pipeline.rubric.anchor_rows import judge_drift_rows
from dtef_pipeline.rubric.watched_drift import DRIFT_READS, WATCHED, documented_drift_table, net_drift, watched_drift

_RUBRIC_VERDICTS = "rubric_model_drift"


@dg.asset(deps=[rubric_scores], **{**roll_up("rubric_drift", code_version="4"), **RUBRIC_GROUP})
def rubric_drift(context: dg.AssetExecutionContext, config: WatchConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Whether hybrid scores moved between runs of the same test: one row per blueprint, run label and model variant at temperature 0.

    The documented rule flags a gap of 0.05 and 10 % between the lowest and the highest run; `investigate` marks the pair of runs to look at
    first. Beside it stand `rubric_model_drift`, the verdict by the project's evidence on each model over all blueprints (`drift` where the rule
    flags it and there is strong evidence however often one looks, `watch` where the rule alone does), and its timeline `rubric_drift_series`.
    Where judges were shown stored answers again (`rubric_anchors`), a model's shift is told net of theirs, and `rubric_judge_drift` has one row
    per judge. The panel's section `drift` holds here too; a verdict that is new is sent to the webhook, if there is one.
    """
    require_scored(store)
    drift = panel_drift(store.settings, store.warehouse)
    options = config.over(drift.options)
    documented = store.warehouse.query(documented_drift_table, only=DRIFT_READS)
    found = store.warehouse.query(lambda connection: watched_drift(connection, options), only=DRIFT_READS)
    anchored = store.warehouse.read_or_empty("rubric_anchors")
    checks = net_drift(found.checks, anchored.to_pandas(), options)
    models = with_told(store, _RUBRIC_VERDICTS, checks, WATCHED)
    ranked = pa.Table.from_pylist(sorted(models.to_pylist(), key=by_verdict(WATCHED.keys)), models.schema)
    flagged = documented.filter(pa.compute.equal(documented["flagged"], True)).sort_by([("gap", "descending")])
    tables = {
        "rubric_drift": documented,
        _RUBRIC_VERDICTS: models,
        "rubric_drift_series": found.series,
        "rubric_judge_drift": judge_drift_rows(anchored, options),
    }
    result = published(
        store,
        tables,
        headline=headline(models, WATCHED),
        flagged=len(flagged),
        documented=markdown(
            flagged, ["blueprint", "model", "lowest_snapshot", "highest_snapshot", "lowest", "highest", "investigate"], most=15
        ),
        models=markdown(
            ranked,
            ["verdict", "model", "judges", "n_snapshots", "shift", "shift_low", "shift_high", "first_snapshot", "cause"],
            most=30,
        ),
    )
    sent = send_verdicts(context, store, _RUBRIC_VERDICTS, models, WATCHED, drift.tell, found.order)
    return result._replace(metadata={**(result.metadata or {}), "webhook": sent})


@asset_check(asset=rubric_drift)
def rubric_no_drift(store: Store) -> dg.AssetCheckResult:
    """Fails for a model that drifted by the project's evidence, warns of one to watch, unless the panel's `severity` says otherwise."""
    rows = store.warehouse.read(_RUBRIC_VERDICTS)
    return drift_result(rows, len(rows), drift_section(store.settings).severity, WATCHED)


@asset_check(asset=rubric_drift)
def rubric_verdicts_were_told(store: Store) -> dg.AssetCheckResult:
    """Warns while the webhook has not accepted a verdict that was due to be sent; it is sent again with the next `rubric_drift`."""
    return told_result(store, _RUBRIC_VERDICTS, WATCHED, drift_section(store.settings).tell)
