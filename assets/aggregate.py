"""Stage 5, aggregate: `segment_results`."""

from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.checks import keys_repeated
from assets.partitions import STAGE, PartitionRun, columns_of, markdown
from assets.resources import Store
from assets.score import scores
from dtef_pipeline.aggregation.segment_results import segment_results as aggregate
from dtef_pipeline.identity import split_partition_key
from dtef_pipeline.tables import SEGMENT_RESULTS


class AggregateConfig(dg.Config):
    """What is aggregated."""

    snapshot: str | None = Field(default=None, description="Aggregate this snapshot only; none: all there are.")


@dg.asset(
    **STAGE,
    deps=[scores],
    group_name="results",
    kinds={"parquet", "duckdb"},
    tags={"stage": "5"},
    code_version="1",
    metadata=columns_of(SEGMENT_RESULTS),
)
def segment_results(context: dg.AssetExecutionContext, config: AggregateConfig, store: Store) -> dg.MaterializeResult[Any]:
    """How each model did on this segment: one row a (model variant, context level, snapshot), with counts by status and means.

    Every group stands twice: `targets = clean` leaves out questions that define the segment, `all` keeps them as the published figures do.
    `parse_rate` is the share of answers that could be read; `questions` holds the mean score of each target question.
    """
    run = PartitionRun(context)
    for key in run.keys:
        with run.attempt(key):
            round_id, segment = split_partition_key(key)
            at = {"round": round_id, "segment": segment}
            snapshots = [config.snapshot] if config.snapshot else store.warehouse.values("scores", "snapshot", **at)
            tables = [aggregate(store.warehouse.read("scores", snapshot=snapshot, **at)) for snapshot in snapshots]
            for snapshot, rows in zip(snapshots, tables, strict=True):
                store.warehouse.write("segment_results", rows, snapshot=snapshot, **at)
            run.done(key, _metadata(pa.concat_tables(tables) if tables else SEGMENT_RESULTS.empty_table(), snapshots))
    return run.result()


def _metadata(rows: pa.Table, snapshots: list[str]) -> dict[str, Any]:
    clean = rows.filter(pc.equal(rows["targets"], "clean")).sort_by([("score", "descending")])
    return {
        "dagster/row_count": len(rows),
        "snapshots": ", ".join(snapshots),
        "models": len(pc.unique(rows["model"])),
        "preview": markdown(
            clean, ["model", "context_level", "snapshot", "n_total", "n_scored", "parse_rate", "score"], most=12
        ),
    }


@dg.asset_check(asset=segment_results, blocking=True)
def results_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """A (model variant, context level, format, targets, snapshot) has one row."""
    return keys_repeated(
        context, store, "segment_results", ["model_variant", "model", "context_level", "format", "targets", "snapshot"]
    )
