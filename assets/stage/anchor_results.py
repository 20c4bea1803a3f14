"""Shared parts of the assets of anchors: storage and result of a snapshot."""

from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.stage.partitions import SNAPSHOT_TAG, markdown
from assets.stage.resources import Store


def store_anchor_rows(store: Store, table: str, rows: pa.Table, snapshot: str) -> None:
    """Write the judgements of the anchors in a snapshot."""
    store.warehouse.write(table, rows, snapshot=snapshot)
    store.warehouse.refresh_database()


def build_anchor_result(
    context: dg.AssetExecutionContext,
    store: Store,
    rows: pa.Table,
    snapshot: str,
    anchors: int,
    shifts: pa.Table,
) -> dg.MaterializeResult[Any]:
    """Return the result of such an asset. `shifts`: the verdict on each judge."""
    if SNAPSHOT_TAG not in context.run.tags:
        context.instance.add_run_tags(context.run.run_id, {SNAPSHOT_TAG: snapshot})
    reasons = {row["values"] or "judged": row["counts"] for row in pc.value_counts(rows["reason"]).to_pylist()}
    columns = ["judge", "evaluator", "verdict", "shift", "shift_low", "shift_high", "n_snapshots", "n_items"]
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "snapshot": snapshot,
            "anchors": anchors,
            "outcomes": dg.MetadataValue.json(reasons),
            "judges": markdown(shifts, columns, n=20),
        }
    )
