"""The sums over calls that rows rest on."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from dtef_pipeline.boards.used_calls import count_calls_once, spent_in_all


def test_every_call_of_a_row_without_a_known_cost_is_unpriced() -> None:
    """A conversation of three turns counted as one call whose cost is not known, and as three calls."""
    rows = {
        "role": ["candidate"] * 3,
        "model": ["m"] * 3,
        "model_variant": ["m"] * 3,
        "request_keys": [["a", "b", "c"], ["d"], ["e"]],
        "replies": [3, 1, 0],
        "prompt_tokens": [30, 10, None],
        "completion_tokens": [3, 1, None],
        "cost_usd": [None, 0.5, None],
    }
    with duckdb.connect() as connection:
        connection.register("asked", pa.table(rows))
        count_calls_once(connection, "SELECT * FROM asked", lambda keys: pa.table({}))
        found = spent_in_all(connection)
    unknown = {"unknown_cost_attempts": None, "unknown_cost_usd_most": None}
    assert found == {"calls": 4, "prompt_tokens": 40, "completion_tokens": 4, "cost_usd": 0.5, "unpriced": 3, **unknown}


def test_attempts_of_unknown_cost_count_once_also_of_rows_without_a_reply() -> None:
    """They were in no table of costs of rubrics, questions and games."""
    rows = {
        "role": ["judge"] * 3,
        "model": ["m"] * 3,
        "model_variant": ["m"] * 3,
        "request_keys": [["a", "b"], ["a", "b"], ["c"]],
        "replies": [2, 2, 0],
        "prompt_tokens": [30, 30, None],
        "completion_tokens": [3, 3, None],
        "cost_usd": [0.5, 0.5, None],
    }
    unknown = pa.table(
        {"request_key": ["b", "c", "z"], "unknown_cost_attempts": [2, 7, 1], "unknown_cost_usd_most": [0.25, None, 9.0]}
    )
    with duckdb.connect() as connection:
        connection.register("asked", pa.table(rows))
        count_calls_once(connection, "SELECT * FROM asked", lambda keys: pa.table({}), unknown=unknown)
        found = spent_in_all(connection)
    assert (found["calls"], found["cost_usd"], found["unpriced"]) == (2, 0.5, None)
    assert (found["unknown_cost_attempts"], found["unknown_cost_usd_most"]) == (9, 0.25)
