"""Shared parts of families' roll-ups: tables from scores, with clean targets and with all, and their results in the warehouse."""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dagster as dg
import duckdb
import pandas as pd
import pyarrow as pa

from assets.stage.resources import Store
from dtef_pipeline.boards.boards import BoardEvidence, load_evidence
from dtef_pipeline.boards.cells import TARGETS, BoardOptions, copy_into_memory, open_memory_copy
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.keys import Keys
from resources.warehouse import TABLES, build_family_levels

Connection = duckdb.DuckDBPyConnection
Make = Callable[[Connection, BoardOptions, BoardEvidence | None], Mapping[str, pd.DataFrame]]
"""Returns frames by table name, given a connection with the roll-up's input tables."""


def publish(
    store: Store,
    columns: Mapping[str, Sequence[str]],
    coded_columns: Collection[str],
    options: Callable[[str], BoardOptions],
    make: Make,
    family: str,
) -> dict[str, pa.Table]:
    """Write the tables that `make` returns by name, and return them.

    `columns`: the columns to read by table, the required table first; `coded_columns`: see `copy_into_memory`. `options`: returns the
    board's options for the targets; `family`: its part of tables over all families. Raises WarehouseError before anything is scored.
    """
    first = next(iter(columns))
    space = TABLES[first].space
    if space and not store.warehouse.values(first, space.first):
        raise WarehouseError(f"no {first} yet: materialize the stages of a {space.first} first")
    tables = _load_tables(store, columns, coded_columns, options(TARGETS[0]).subject.keys)

    def make_frames(targets: str) -> Mapping[str, pd.DataFrame]:
        board_options = options(targets)
        with open_memory_copy(tables) as connection:
            return make(connection, board_options, _build_evidence(store, connection, board_options))

    frames: dict[str, list[pd.DataFrame]] = {}
    # About half of the work runs without Python's lock.
    with ThreadPoolExecutor(len(TARGETS)) as threads:
        for targets, target_frames in zip(TARGETS, threads.map(make_frames, TARGETS), strict=True):
            for table, frame in target_frames.items():
                frames.setdefault(table, []).append(frame.assign(targets=targets))
    results = {table: build_published_table(parts, TABLES[table].schema, family) for table, parts in frames.items()}
    publish_tables(store, results, family=family)
    return results


def _load_tables(store: Store, columns: Mapping[str, Sequence[str]], coded_columns: Collection[str], keys: Keys) -> Connection:
    """Return the tables in memory. The roll-ups of one run share the scores, which are read once."""
    if (tables := store.roll_ups.tables) is None:
        tables = store.roll_ups.tables = store.warehouse.connection(
            lambda connection: copy_into_memory(connection, columns, coded_columns, keys), only=columns
        )
    return tables


def _build_evidence(store: Store, connection: Connection, options: BoardOptions) -> BoardEvidence | None:
    """Return the data of intervals, computed once for all roll-ups of a run, or None without intervals."""
    evidence = store.roll_ups.evidence
    if options.intervals and options not in evidence:
        evidence[options] = load_evidence(connection, options)
    return evidence.get(options)


def build_published_table(frames: Sequence[pd.DataFrame], schema: pa.Schema | None, family: str) -> pa.Table:
    parts = [frame for frame in frames if len(frame)]
    rows = pd.concat(parts, ignore_index=True) if parts else frames[0]
    if schema is not None and "family" in schema.names:  # for tables that also have columns of other families
        rows = rows.assign(family=family).reindex(columns=schema.names)
    elif schema is not None:
        rows = rows[schema.names]
    return pa.Table.from_pandas(rows, schema=schema, preserve_index=False).replace_schema_metadata(None)


def clean(rows: pa.Table) -> pa.Table:
    return rows.filter(pa.compute.equal(rows["targets"], "clean"))


def require_made(store: Store, table: str, noun: str, command: str) -> None:
    """Raise WarehouseError if the table has no rows. `noun`: the noun for partitions whose stages make it; `command`: an alternative."""
    if not store.warehouse.tables([table]):
        raise WarehouseError(f"no {table} yet: materialize the stages of a {noun} first, or `{command}`")


def publish_tables(
    store: Store, tables: Mapping[str, pa.Table], *, family: str = "", **metadata: Any
) -> dg.MaterializeResult[Any]:
    """Write the tables, the asset's first, and return the asset's result. `family`: its part of tables over all families."""
    for name, rows in tables.items():
        store.warehouse.write(name, rows, **build_family_levels(name, family))
    store.warehouse.refresh_database()
    first, *extras = tables
    counts = {"dagster/row_count": len(tables[first]), **{f"{name}_rows": len(tables[name]) for name in extras}}
    return dg.MaterializeResult(metadata={**counts, **metadata})
