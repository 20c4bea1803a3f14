"""Two models that a provider served under one name in one snapshot are reported."""

from __future__ import annotations

import duckdb
import pytest

from dtef_pipeline.boards.item_board import list_mixed_served


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    """Model m was served by `old` and `new` in snapshot a, and by `new` in b; model n by one in each; one call failed."""
    made = duckdb.connect()
    made.execute(
        """
        CREATE TABLE responses AS SELECT * FROM (VALUES
            ('p1', 'm', 'm[t=0]', 'a', 0, 'old', 'k1'), ('p2', 'm', 'm[t=0]', 'a', 0, 'old', 'k2'), ('p2', 'm', 'm[t=0]', 'a', 0, 'old', 'k2'),
            ('p3', 'm', 'm[t=0]', 'a', 0, 'new', 'k3'), ('p4', 'm', 'm[t=0]', 'a', 0, NULL, 'k4'), ('p1', 'm', 'm[t=0]', 'b', 0, 'new', 'k5'),
            ('p1', 'n', 'n[t=0]', 'a', 0, 'one', 'k6'), ('p1', 'n', 'n[t=0]', 'b', 0, 'other', 'k7')
        ) AS given(prompt_id, model, model_variant, snapshot, draw, served_model, request_key);
        """
    )
    return made


def test_a_model_of_two_in_one_snapshot_is_reported_with_both_and_their_counts(connection: duckdb.DuckDBPyConnection) -> None:
    """The board mixed them without a word."""
    (line,) = list_mixed_served(connection, "responses")
    assert "m in snapshot a was served by 2 models" in line
    assert "old (2 responses) and new (1 response)" in line
    assert list(list_mixed_served(connection, "responses", "a")) == [line]
    assert list(list_mixed_served(connection, "responses", "b")) == []
