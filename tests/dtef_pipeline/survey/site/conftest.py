"""Small surveys that pages are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.site import contents
from tests.made.scores import scores_table

Open = Callable[..., duckdb.DuckDBPyConnection]


@pytest.fixture(autouse=True)
def no_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boards are computed without intervals, which take most of the time and stand on no page of these tests."""
    monkeypatch.setattr(contents, "SurveyBoardOptions", partial(SurveyBoardOptions, intervals=False))


@pytest.fixture
def boards_of_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the boards that pages of segments, questions and models need are computed where none is stored."""
    compute, needed = contents.compute_board, ("overall", "segment", "question", "attribute")

    def compute_needed(connection: duckdb.DuckDBPyConnection, view: str, *given: Any) -> pd.DataFrame:
        return compute(connection, view, *given) if view in needed else pd.DataFrame()

    monkeypatch.setattr(contents, "compute_board", compute_needed)


@pytest.fixture
def open_tables() -> Iterator[Open]:
    """Makes a connection with rows of `scores` and further tables."""
    opened: list[duckdb.DuckDBPyConnection] = []

    def connect(scores: list[dict[str, Any]], **tables: pa.Table) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(config={"threads": 1})
        opened.append(connection)
        for name, table in {"scores": scores_table(scores), **tables}.items():
            connection.register(f"_{name}", table)
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM _{name}")
        return connection

    yield connect
    for connection in opened:
        connection.close()
