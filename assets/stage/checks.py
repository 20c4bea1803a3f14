"""What the asset checks share: which partitions to look at, and how offenders are reported."""

from collections.abc import Iterator, Sequence

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.stage.partitions import chosen_partitions, failed_partitions
from assets.stage.resources import Store
from resources.warehouse import TABLES


def read_keys(
    context: dg.AssetCheckExecutionContext, store: Store, table: str, columns: Sequence[str]
) -> Iterator[tuple[str, pa.Table]]:
    """(key, rows) of the run's partitions that did not fail; all snapshots of a partition together, less what cannot be read."""
    failed, space = failed_partitions(context), TABLES[table].space
    assert space is not None, f"{table} is not kept by partition"
    for key in chosen_partitions(context):
        if key not in failed:
            yield key, store.reader.rows(table, columns=columns, **space.levels(key))


def verdict(
    offenders: Sequence[str], *, checked: int, severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR
) -> dg.AssetCheckResult:
    """A check's result: counts and the first offenders."""
    return dg.AssetCheckResult(
        passed=not offenders,
        severity=severity,
        metadata={"checked": checked, "offenders": len(offenders), "first": dg.MetadataValue.json(list(offenders[:10]))},
    )


def keys_repeated(
    context: dg.AssetCheckExecutionContext, store: Store, table: str, key_columns: Sequence[str]
) -> dg.AssetCheckResult:
    """Fails for key values that stand more than once within a partition."""
    offenders, checked = [], 0
    for key, rows in read_keys(context, store, table, key_columns):
        checked += len(rows)
        counts = rows.group_by(list(key_columns)).aggregate([([], "count_all")])
        repeated = counts.filter(pc.greater(counts["count_all"], 1)).select(list(key_columns))
        offenders += [f"{key} {' '.join(str(value) for value in row.values())}" for row in repeated.to_pylist()]
    return verdict(offenders, checked=checked)


FAILED_SHARE = 0.01
"""Share of a model's calls that failed for good, above which one is warned."""


def models_that_failed(
    context: dg.AssetCheckExecutionContext, store: Store, table: str, state: str, what: str
) -> dg.AssetCheckResult:
    """Warns of models for which more than FAILED_SHARE of `what` failed for good: rows whose column `state` says `error`."""
    tables = [rows for _, rows in read_keys(context, store, table, ["model", state])]
    offenders: list[str] = []
    if tables:
        frame = pa.concat_tables(tables).to_pandas()
        failed = (frame[state] == "error").groupby(frame["model"]).mean()
        offenders = [f"{model}: {share:.1%} of the {what} failed" for model, share in failed[failed > FAILED_SHARE].items()]
    return verdict(offenders, checked=sum(map(len, tables)), severity=dg.AssetCheckSeverity.WARN)
