"""What pages are made of: rows of a family's tables, read by name. A table or a column that is not there is no error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.cells import has_table

StoredRow = dict[str, Any]
"""One row of a table; a column that the table lacks is None."""


class StoredRows:
    """The tables of a connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._columns: dict[str, frozenset[str]] = {}

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """Where the tables are, for parts of a page that ask it themselves."""
        return self._connection

    def has(self, name: str) -> bool:
        return has_table(self._connection, name)

    def columns(self, name: str) -> frozenset[str]:
        """The columns of a table, or of a query in brackets; none where it is not there."""
        if name.startswith("("):
            return frozenset(self._connection.sql(f"SELECT * FROM {name} LIMIT 0").columns)
        if name not in self._columns:
            there = self._connection.sql(f"SELECT * FROM {name} LIMIT 0").columns if self.has(name) else []
            self._columns[name] = frozenset(there)
        return self._columns[name]

    def table(self, name: str, wanted: Sequence[str], where: Mapping[str, Any], order: Sequence[str] = ()) -> pa.Table:
        """The wanted columns of the rows that have the values of `where`, in order; without the table, no rows.

        A wanted `name=expression` is computed. Conditions and places in the order on columns that are not there are left out.
        """
        there = self.columns(name)
        if not there:
            return pa.table({one.partition("=")[0]: pa.nulls(0) for one in wanted})
        shown = ", ".join(_selected(one, there) for one in wanted)
        conditions = [column for column in where if column in there]
        asked = "".join(f' {"AND" if at else "WHERE"} "{column}" = ?' for at, column in enumerate(conditions))
        ordered = ", ".join(f'"{column}" NULLS FIRST' for column in order if column in there)
        query = f"SELECT {shown} FROM {name}{asked}" + (f" ORDER BY {ordered}" if ordered else "")
        return self._connection.sql(query, params=[where[column] for column in conditions]).to_arrow_table()

    def rows(self, name: str, wanted: Sequence[str], where: Mapping[str, Any], order: Sequence[str] = ()) -> list[StoredRow]:
        """The same as one mapping per row."""
        found: list[StoredRow] = self.table(name, wanted, where, order).to_pylist()
        return found

    def frame(self, name: str, where: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """All columns of the rows, as they are; empty without the table."""
        there = sorted(self.columns(name))
        return self.table(name, there, where or {}).to_pandas() if there else pd.DataFrame()


def _selected(wanted: str, there: frozenset[str]) -> str:
    name, _, expression = wanted.partition("=")
    return f'{expression} AS "{name}"' if expression else f'"{name}"' if name in there else f'NULL AS "{name}"'
