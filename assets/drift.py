"""Stage 6, drift: `drift_checks`."""

from typing import Any

import dagster as dg
import pyarrow.compute as pc

from assets.aggregate import segment_results
from assets.checks import read_keys, verdict
from assets.partitions import PartitionRun, markdown, stage
from assets.resources import Store
from dtef_pipeline.drift.checks import COLUMNS, headline
from dtef_pipeline.drift.checks import drift_checks as check_drift
from dtef_pipeline.identity import split_partition_key
from dtef_pipeline.tables import DRIFT_CHECKS


@dg.asset(deps=[segment_results], **stage(6, DRIFT_CHECKS, code_version="2"))
def drift_checks(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """Whether a model's score on the same prompts moved between snapshots: one row a (model variant, context level, prompt set).

    The documented rule: at temperature 0, over at least two snapshots that span 23 hours, the highest mean score is at least 0.05 and at
    least 10 % above the lowest. `reason` says what was compared, or why nothing was.
    """
    run = PartitionRun(context)
    for key in run.keys:
        with run.attempt(key):
            round_id, segment = split_partition_key(key)
            at = {"round": round_id, "segment": segment}
            rows = check_drift(store.warehouse.read("scores", columns=COLUMNS, **at))
            store.warehouse.write("drift_checks", rows, **at)
            metadata = {
                "dagster/row_count": len(rows),
                "flagged": pc.sum(pc.cast(rows["flagged"], "int64")).as_py() or 0,
                "headline": headline(rows),
                "preview": markdown(
                    rows, ["model", "context_level", "n_snapshots", "lowest", "highest", "flagged", "reason"], most=12
                ),
            }
            run.done(key, metadata)
    return run.result()


@dg.asset_check(asset=drift_checks)
def no_drift(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Warns when the documented rule flags a model on a segment, naming the snapshots to compare."""
    offenders, checked = [], 0
    columns = ["model", "context_level", "lowest_snapshot", "highest_snapshot", "gap", "flagged"]
    for key, rows in read_keys(context, store, "drift_checks", columns):
        checked += len(rows)
        offenders += [
            f"{key} {row['model']} at context {row['context_level']}: {row['gap']:.4f} "
            f"between {row['lowest_snapshot']} and {row['highest_snapshot']}"
            for row in rows.filter(rows["flagged"]).to_pylist()
        ]
    return verdict(offenders, checked=checked, severity=dg.AssetCheckSeverity.WARN)
