"""Read rows of a family's tables by name for pages. A missing table or column is not an error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.cells import has_table

StoredRow = dict[str, Any]
"""One row of a table; a column that the table lacks is None."""


class StoredRows:
    """The tables of a connection, which parts of a page may query directly."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._columns: dict[str, frozenset[str]] = {}

    def has(self, name: str) -> bool:
        return has_table(self.connection, name)

    def columns(self, name: str) -> frozenset[str]:
        """Return the columns of a table or of a query in brackets; empty if it does not exist."""
        if name.startswith("("):
            return frozenset(self.connection.sql(f"SELECT * FROM {name} LIMIT 0").columns)
        if name not in self._columns:
            names = self.connection.sql(f"SELECT * FROM {name} LIMIT 0").columns if self.has(name) else []
            self._columns[name] = frozenset(names)
        return self._columns[name]

    def table(self, name: str, names: Sequence[str], where: Mapping[str, Any], order: Sequence[str] = ()) -> pa.Table:
        """Return the wanted columns of the rows that have the values of `where`, in order; no rows if the table does not exist.

        A wanted `name=expression` is computed. Conditions and sort keys on missing columns are ignored.
        """
        columns = self.columns(name)
        if not columns:
            return pa.table({term.partition("=")[0]: pa.nulls(0) for term in names})
        terms = ", ".join(_build_select_term(term, columns) for term in names)
        conditions = [column for column in where if column in columns]
        clause = "".join(f' {"AND" if index else "WHERE"} "{column}" = ?' for index, column in enumerate(conditions))
        order_by = ", ".join(f'"{column}" NULLS FIRST' for column in order if column in columns)
        query = f"SELECT {terms} FROM {name}{clause}" + (f" ORDER BY {order_by}" if order_by else "")
        return self.connection.sql(query, params=[where[column] for column in conditions]).to_arrow_table()

    def rows(self, name: str, names: Sequence[str], where: Mapping[str, Any], order: Sequence[str] = ()) -> list[StoredRow]:
        """Return the rows of `table` as one mapping each."""
        result: list[StoredRow] = self.table(name, names, where, order).to_pylist()
        return result

    def frame(self, name: str, where: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """Return all columns of the rows unchanged; empty if the table does not exist."""
        names = sorted(self.columns(name))
        return self.table(name, names, where or {}).to_pandas() if names else pd.DataFrame()


def _build_select_term(term: str, columns: frozenset[str]) -> str:
    name, _, expression = term.partition("=")
    return f'{expression} AS "{name}"' if expression else f'"{name}"' if name in columns else f'NULL AS "{name}"'


MAX_DECIMALS = 5
_OF_COSTS, _MAX_OF_COSTS = 4, 12
_DECIMALS_WITHOUT_INTERVAL = 3
"""Decimals of a number up to 1 that has no interval."""


def count_decimals(value: float, low: float = math.nan, high: float = math.nan) -> int:
    """Return the decimals of a value and of its interval's ends; below 0 means tens, hundreds.

    Two digits of the interval's half-width decide: ±0.047 gives 3 decimals, ±12 none, ±970 tens. If only one end is finite, its
    distance to the value replaces the half-width. Without an interval of positive width, a number up to 1 has 3 decimals, and a
    larger one two digits. Never more than MAX_DECIMALS.
    """
    ends = [end for end in (low, high) if pd.notna(end) and math.isfinite(end)]
    half = abs(ends[1] - ends[0]) / 2 if len(ends) == 2 else abs(ends[0] - value) if ends else 0.0
    if half < 10**-MAX_DECIMALS:
        return _DECIMALS_WITHOUT_INTERVAL if abs(value) <= 1 else _count_two_digit_decimals(value)
    return min(_count_two_digit_decimals(half), MAX_DECIMALS)


def format_decimals(value: float, places: int, *, sign: str = "") -> str:
    """Format a number with this many decimals (see `count_decimals`) and grouped thousands; `sign` "+" also signs positive numbers, but
    never zero.
    """
    number = round(value, places) + 0.0
    return f"{number:{sign if number else ''},.{max(places, 0)}f}"


def count_cost_decimals(dollars: float) -> int:
    """Return the decimals of an amount in US dollars: four, or for small amounts enough for three digits, at most twelve."""
    if not 0 < abs(dollars) < 0.1:
        return _OF_COSTS
    return min(_count_two_digit_decimals(dollars) + 1, _MAX_OF_COSTS)


def format_p_value(p: float) -> str:
    """Format a probability with three decimals, or as below .001."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _count_two_digit_decimals(size: float) -> int:
    return 1 - math.floor(math.log10(abs(size)))
