"""Shared parts of the asset checks: they cover every partition, and report offenders alike."""

from collections.abc import Callable, Iterator, Sequence
from inspect import cleandoc

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.stage.dagster_internals import make_nonblocking
from assets.stage.partitions import read_failed_partitions, select_partitions
from assets.stage.resources import Store
from resources.warehouse import TABLES, Warehouse

Check = Callable[..., dg.AssetCheckResult]


def asset_check(
    asset: dg.AssetsDefinition | dg.AssetKey, *, blocking: bool = False, name: str = ""
) -> Callable[[Check], dg.AssetChecksDefinition]:
    """Return `dg.asset_check` with the check's name for its step, instead of Dagster's prefix with the asset: `scores_scores_unique`."""

    def define(function: Check) -> dg.AssetChecksDefinition:
        check = name or function.__name__
        spec = dg.AssetCheckSpec(check, asset=asset, blocking=blocking, description=cleandoc(function.__doc__ or ""))
        return dg.multi_asset_check(specs=[spec], name=check)(function)

    return define


Offender = tuple[str, str]
"""A partition and its fault."""


def read_keys(store: Store, table: str, columns: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """Yield (key, rows) of every partition, regardless of the run; all snapshots together, without unreadable files.

    A check has one state for its asset. If it covered only the run's partitions, a later good one would hide a broken one.
    """
    space = TABLES[table].space
    assert space is not None, f"{table} is not kept by partition"
    for first in store.warehouse.values(table, space.first):
        if not space.second:
            yield first, store.warehouse.rows(table, columns=columns, **{space.first: first})
            continue
        rows = store.warehouse.rows(table, columns=list(dict.fromkeys([*columns, space.second])), **{space.first: first})
        # Sorted once and sliced: filtering for each key would scan all rows repeatedly.
        rows, start = rows.sort_by(space.second), 0
        for entry in pc.value_counts(rows[space.second]).to_pylist():
            yield space.key(first, entry["values"]), rows.slice(start, entry["counts"]).select(list(columns))
            start += entry["counts"]


def partition_verdict(
    context: dg.AssetCheckExecutionContext,
    offenders: Sequence[Offender],
    *,
    n_checked: int,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
) -> dg.AssetCheckResult:
    """Return the result of a check of every partition: any offender fails it, but only the run's own partitions block the run.

    A skipped file of the check's table is also an offender, since its content is unknown. It does not block: the run's own files are
    readable.
    """
    partitioned = context.has_partition_key or context.has_partition_key_range
    run_keys = set(select_partitions(context)) - read_failed_partitions(context) if partitioned else set()
    holds_up = run_keys.intersection(key for key, _ in offenders)
    first = sorted([*offenders, *_list_skipped_offenders(context)], key=lambda offender: offender[0] not in run_keys)
    result = verdict([f"{key}: {fault}" for key, fault in first], n_checked=n_checked, severity=severity)
    keys = list(dict.fromkeys(key for key, _ in first))
    result = result.with_metadata({**(result.metadata or {}), "partitions": dg.MetadataValue.json(keys)})
    return result if holds_up else make_nonblocking(result)


def _list_skipped_offenders(context: dg.AssetCheckExecutionContext) -> Iterator[Offender]:
    warehouse: Warehouse = context.resources.store.warehouse
    tables = {check.asset_key.to_user_string() for check in context.selected_asset_check_keys}
    for path, fault in warehouse.skipped.items():
        table, levels = warehouse.place(path)
        space = TABLES[table].space
        if space and table in tables:
            yield space.key(levels[space.first], levels[space.second]) if space.second else levels[space.first], fault


def verdict(
    offenders: Sequence[str], *, n_checked: int, severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR
) -> dg.AssetCheckResult:
    """Return a check's result: counts and the first offenders."""
    return dg.AssetCheckResult(
        passed=not offenders,
        severity=severity,
        metadata={"checked": n_checked, "offenders": len(offenders), "first": dg.MetadataValue.json(list(offenders[:10]))},
    )
