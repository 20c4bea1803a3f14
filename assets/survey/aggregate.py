"""Stage 5, aggregate: `segment_results`."""

from collections.abc import Sequence
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.engine.settings_config import takes_settings
from assets.stage.checks import asset_check, keys_repeated
from assets.stage.partitions import PartitionRun, in_batches, markdown, stage
from assets.stage.resources import Store
from assets.survey.rounds import ROUND_SEGMENT
from assets.survey.score import scores
from dtef_pipeline.survey.boards.segment_results import ASKED
from dtef_pipeline.survey.boards.segment_results import segment_results as aggregate
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.settings import SURVEY_STAGE_SETTINGS, SurveySettings
from dtef_pipeline.survey.tables import SEGMENT_RESULTS


@dg.asset(
    name="segment_results",
    deps=[scores],
    **stage(ROUND_SEGMENT, 5, "segment_results", code_version="6", kinds={"parquet", "duckdb"}),
)
@takes_settings(SurveySettings, "segment_results", SURVEY_STAGE_SETTINGS["segment_results"])
def segment_results(context: dg.AssetExecutionContext, settings: SurveySettings, store: Store) -> dg.MaterializeResult[Any]:
    """How each model did on this segment: one row per (model variant, context level, snapshot), with counts by status, means and 95 % intervals.

    Every group stands twice: `targets = clean` leaves out questions that define the segment, `all` keeps them as the published figures do.
    `parse_rate` is the share of responses that could be read; `questions` holds the mean score of each target question.
    """
    run = PartitionRun(context, store)
    for some in in_batches(run.keys):
        with store.writing("segment_results", some):
            _aggregate(run, store, settings.only_snapshot, some)
    return run.result()


def _aggregate(run: PartitionRun, store: Store, snapshot: str | None, keys: Sequence[str]) -> None:
    read: dict[str, tuple[pa.Table, pa.Table]] = {}
    for key in keys:
        with run.attempt(key):
            asked = store.warehouse.read("survey_responses", columns=list(ASKED), **SPACE.levels(key))
            read[key] = _read_scores(store, key, snapshot), asked
    # One query for many partitions: it costs as much as one for each.
    results = aggregate(*map(pa.concat_tables, zip(*read.values(), strict=True))) if read else SEGMENT_RESULTS.empty_table()
    for key in read:
        with run.attempt(key):
            run.done(key, _write_segment(store, results, key))


def _read_scores(store: Store, key: str, snapshot: str | None) -> pa.Table:
    return store.warehouse.read("scores", **SPACE.levels(key), **({"snapshot": snapshot} if snapshot else {}))


def _write_segment(store: Store, results: pa.Table, key: str) -> dict[str, Any]:
    round_id, segment = SPACE.split(key)
    rows = results.filter((pc.field("round") == round_id) & (pc.field("segment") == segment))
    snapshots = pc.unique(rows["snapshot"]).to_pylist()
    for snapshot in snapshots:
        of_snapshot = rows.filter(pc.field("snapshot") == snapshot)
        store.warehouse.write("segment_results", of_snapshot, round=round_id, segment=segment, snapshot=snapshot)
    return _metadata(rows, snapshots)


def _metadata(rows: pa.Table, snapshots: list[str]) -> dict[str, Any]:
    clean = rows.filter(pc.equal(rows["targets"], "clean")).sort_by([("score", "descending")])
    return {
        "dagster/row_count": len(rows),
        "snapshots": ", ".join(snapshots),
        "models": len(pc.unique(rows["model"])),
        "preview": markdown(
            clean,
            ["model", "context_level", "snapshot", "n_total", "n_scored", "parse_rate", "score", "score_low", "score_high"],
            most=12,
        ),
    }


@asset_check(asset=segment_results, blocking=True)
def results_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """A (model variant, context level, condition, targets, snapshot) has one row."""
    return keys_repeated(
        context, store, "segment_results", ["model_variant", "model", "context_level", "condition", "targets", "snapshot"]
    )
