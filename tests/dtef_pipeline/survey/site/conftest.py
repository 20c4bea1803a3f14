"""Small surveys that pages are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tests.made.scores import scores_table
from tests.made.survey_boards import store_boards

Open = Callable[..., duckdb.DuckDBPyConnection]


@pytest.fixture
def open_tables() -> Iterator[Open]:
    """Makes a connection with rows of `scores`, further tables, and the boards that pages need unless a leaderboard is among the tables."""
    opened: list[duckdb.DuckDBPyConnection] = []

    def connect(scores: list[dict[str, Any]], **tables: pa.Table) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(config={"threads": 1})
        opened.append(connection)
        for name, table in {"scores": scores_table(scores), **tables}.items():
            connection.register(f"_{name}", table)
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM _{name}")
        if "leaderboard" not in tables:
            store_boards(connection)
        return connection

    yield connect
    for connection in opened:
        connection.close()
