"""Drift of models between runs of the same test: `rubric_drift`."""

from typing import Any

import dagster as dg
import pyarrow as pa
from pydantic import Field

from assets.rubric.blueprints import RUBRIC_GROUP
from assets.rubric.roll_ups import require_scored
from assets.rubric.scores import rubric_scores
from assets.stage.checks import verdict
from assets.stage.partitions import markdown, roll_up
from assets.stage.published import published
from assets.stage.resources import Store
from dtef_pipeline.drift.checks import headline
from dtef_pipeline.drift.evidence import ALPHA, BASELINE
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.verdict_text import by_verdict
from dtef_pipeline.rubric.anchor_rows import judge_drift_rows
from dtef_pipeline.rubric.watched_drift import DRIFT_READS, WATCHED, documented_drift_table, net_drift, watched_drift


class RubricDriftConfig(dg.Config):
    """By which settings a series gets its verdict."""

    baseline: int = Field(default=BASELINE, ge=2, description="How many of the first snapshots are the frozen baseline.")
    alpha: float = Field(default=ALPHA, gt=0, lt=1, description="Chance of a false `drift` anywhere, however often one looks.")


@dg.asset(deps=[rubric_scores], **{**roll_up("rubric_drift", code_version="1"), **RUBRIC_GROUP})
def rubric_drift(context: dg.AssetExecutionContext, config: RubricDriftConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Whether hybrid scores moved between runs of the same test: one row per blueprint, run label and model variant at temperature 0.

    The documented rule flags a gap of 0.05 and 10 % between the lowest and the highest run; `investigate` marks the pair of runs to look at
    first. Beside it stand `rubric_model_drift`, the verdict by the project's evidence on each model over all blueprints (`drift` where the rule
    flags it and there is strong evidence however often one looks, `watch` where the rule alone does), and its timeline `rubric_drift_series`.
    Where judges were shown stored answers again (`rubric_anchors`), a model's shift is told net of theirs, and `rubric_judge_drift` has one row
    per judge.
    """
    require_scored(store)
    options = WatchOptions(baseline=config.baseline, alpha=config.alpha)
    documented = store.reader.query(documented_drift_table, only=DRIFT_READS)
    found = store.reader.query(lambda connection: watched_drift(connection, options), only=DRIFT_READS)
    anchored = store.warehouse.read_or_empty("rubric_anchors")
    models = net_drift(found.checks, anchored.to_pandas(), options)
    ranked = pa.Table.from_pylist(sorted(models.to_pylist(), key=by_verdict(WATCHED.keys)), models.schema)
    flagged = documented.filter(pa.compute.equal(documented["flagged"], True)).sort_by([("gap", "descending")])
    tables = {
        "rubric_drift": documented,
        "rubric_model_drift": models,
        "rubric_drift_series": found.series,
        "rubric_judge_drift": judge_drift_rows(anchored, options),
    }
    return published(
        context,
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


@dg.asset_check(asset=rubric_drift)
def rubric_no_drift(store: Store) -> dg.AssetCheckResult:
    """Fails for a model that drifted by the project's evidence; what the documented rule alone flags is named in `rubric_drift`."""
    rows = store.warehouse.read("rubric_model_drift").to_pylist()
    drifted = [
        f"{row['model']} since {row['first_snapshot']}: {row['shift']:+.4f}" for row in rows if row["verdict"] == "drift"
    ]
    return verdict(drifted, checked=len(rows))
