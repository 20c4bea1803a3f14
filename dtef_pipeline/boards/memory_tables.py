"""Tables copied into memory for several boards."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import duckdb

from dtef_pipeline.asking.snapshot_order import TIMES_TABLE, build_times_sql
from dtef_pipeline.boards.cells import has_table, require_current_scores
from dtef_pipeline.keys import Keys

_SCHEMA = "held"


def copy_into_memory(
    connection: duckdb.DuckDBPyConnection, columns: Mapping[str, Sequence[str]], coded_columns: Collection[str], keys: Keys
) -> None:
    """Copy tables into memory for `open_memory_copy`, so that files are read once for all boards.

    A million scores take about 200 MB.

    Args:
        connection: has the tables as views; only the first is required.
        columns: columns to copy, by table; `*` stands for all.
        coded_columns: text columns of the first table that repeat. As codes they are grouped and sorted several times faster.
        keys: the family's, for the message about scores of an earlier version.
    """
    connection.execute(f"CREATE SCHEMA {_SCHEMA}")
    first = next(iter(columns))
    with require_current_scores(keys):
        connection.execute(f"CREATE TABLE {_SCHEMA}.{TIMES_TABLE} AS {build_times_sql(first)}")
    for table, names in columns.items():
        if not has_table(connection, table):
            continue
        coded_names = coded_columns if table == first else ()
        for name in coded_names:
            # In the order of the text, which is that of the codes.
            with require_current_scores(keys):
                connection.execute(
                    f"CREATE TYPE {_SCHEMA}.{name}_code AS ENUM (SELECT DISTINCT {name} FROM {table} ORDER BY ALL)"
                )
        fields = ", ".join(f"{name}::{_SCHEMA}.{name}_code AS {name}" if name in coded_names else name for name in names)
        with require_current_scores(keys):
            connection.execute(f"CREATE TABLE {_SCHEMA}.{table} AS SELECT {fields} FROM {table}")


@contextmanager
def open_memory_copy(connection: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a connection to the tables of `copy_into_memory`, for use like one to the originals."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET search_path = '{_SCHEMA}'")
        yield cursor
