"""A small survey that sections of the report are made of."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from tests.made.scores import scores_table, survey_rows


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    survey = survey_rows(*({"question_id": "q0", "segment": segment} for segment in ("country:kenya", "country:chile")))
    scores = scores_table([{"status": "refused", "score": 0.0, "reason": "an apology"}, {"draw": 1}])
    with duckdb.connect() as connection:
        for name, table in {"scores": scores, "survey_responses": survey}.items():
            connection.register(f"_{name}", table)
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM _{name}")
        yield connection
