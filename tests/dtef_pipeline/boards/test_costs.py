"""Costs: each request is counted and paid once, and an unknown price is not zero."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.boards.costs import cost_breakdown, cost_views, costs, usage_by_model
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.tables import PREDICTIONS


def prediction(**given: Any) -> dict[str, Any]:
    """One `predictions` row of a language model; what is not given is plain."""
    row: dict[str, Any] = {
        "round": "S1",
        "segment": "country:kenya",
        "snapshot": "base",
        "question_id": "q0",
        "context_level": "0",
        "condition": "distribution/attribute-label",
        "model": "m",
        "model_variant": "openai/m[temperature=0]",
        "draw": 0,
        "request_key": "k0",
        "call_status": "answered",
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "cost_usd": 0.5,
        **given,
    }
    if row["call_status"] != "answered":
        row |= {"prompt_tokens": None, "completion_tokens": None, "cost_usd": None}
    return row


@contextmanager
def predictions(*rows: dict[str, Any]) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.register("predictions", pa.Table.from_pylist([prediction(**row) for row in rows], schema=PREDICTIONS))
        yield connection


def table(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    with predictions(*rows) as connection:
        found: list[dict[str, Any]] = costs(connection, KEYS).to_pylist()
        return found


def breakdown(by: list[str], *rows: dict[str, Any], **chosen: Any) -> pd.DataFrame:
    with predictions(*rows) as connection:
        return cost_breakdown(connection, by, KEYS, **chosen)


def test_an_unknown_view_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="costs by colour: allowed: model, round, segment, snapshot, condition"):
        breakdown(["model", "colour"], {})


def test_a_response_that_was_not_imported_was_stopped_by_no_budget() -> None:
    """`dtef run` told of a budget that was reached."""
    rows = ({"request_key": "a", "call_status": "missing"}, {"request_key": "b", "call_status": "missing"})
    assert [row["budget_stopped"] for row in table(*rows)] == [0]
    same = usage_by_model(pa.Table.from_pylist([prediction(**row) for row in rows], schema=PREDICTIONS), KEYS).to_pylist()
    assert [row["budget_stopped"] for row in same] == [0]


def test_failed_calls_and_calls_stopped_by_a_budget_are_told_apart_with_a_reason_each() -> None:
    rows = (
        {"request_key": "a"},
        {"request_key": "b", "call_status": "error", "error": "too long"},
        {"request_key": "c", "call_status": "budget", "error": "max_calls of 2 was reached"},
        {"request_key": "d", "call_status": "budget", "error": "max_calls of 2 was reached"},
    )
    (row,) = table(*rows)
    assert (row["answered"], row["failed"], row["budget_stopped"], row["unpriced"]) == (1, 1, 2, 0)
    (shown,) = breakdown(["model"], *rows).to_dict("records")
    assert (shown["reason"], shown["stop_reason"]) == ("too long", "max_calls of 2 was reached")


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "round": st.sampled_from(["S1", "S2"]),
            "segment": st.sampled_from(["a:x", "a:y"]),
            "condition": st.sampled_from(["distribution/narrative", "shift/narrative"]),
            "question_id": st.sampled_from(["q0", "q1"]),
            "request_key": st.sampled_from(["a", "b", "c"]),
            # Most are answered, so that often several answered rows stand on one request.
            "call_status": st.sampled_from([*["answered"] * 4, "error", "budget", "missing"]),
            "prompt_tokens": st.integers(0, 50),
            "cost_usd": st.sampled_from([None, None, 0.0, 0.0, 0.25, 0.5, 3.0]),
        }
    ),
    min_size=3,
    max_size=12,
)


@given(ROWS)
def test_sums_are_those_of_a_plain_loop_over_requests_in_every_view(rows: list[dict[str, Any]]) -> None:
    by_request: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_request[row["request_key"]].append(prediction(**row))
    wanted: dict[tuple[str, str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for of_request in by_request.values():
        place = min((row["round"], row["segment"], row["condition"]) for row in of_request)
        statuses = {row["call_status"] for row in of_request}
        status = next(name for name in ("answered", "error", "budget", "missing") if name in statuses)
        wanted[place][status] += 1
        wanted[place]["prompt_tokens"] += max(row["prompt_tokens"] or 0 for row in of_request)
        answered = [row for row in of_request if row["call_status"] == "answered"]
        priced = [row["cost_usd"] for row in answered if row["cost_usd"] is not None]
        wanted[place]["cost_usd"] += max(priced, default=0)
        wanted[place]["unpriced"] += bool(answered) and not any(priced) and len(priced) < len(answered)
    with predictions(*rows) as connection:
        table = costs(connection, KEYS).to_pylist()
        frames = [cost_breakdown(connection, [view], KEYS) for view in cost_views(KEYS)]
    got = {(row["round"], row["segment"], row["condition"]): row for row in table}
    assert set(got) == set(wanted)
    for place, sums in wanted.items():
        counted = (got[place]["answered"], got[place]["failed"], got[place]["budget_stopped"], got[place]["prompt_tokens"])
        assert counted == (sums["answered"], sums["error"], sums["budget"], sums["prompt_tokens"])
        assert ((got[place]["cost_usd"] or 0), got[place]["unpriced"]) == (pytest.approx(sums["cost_usd"]), sums["unpriced"])
    for frame in frames:
        assert frame["answered"].sum() == sum(sums["answered"] for sums in wanted.values())
        assert frame["cost_usd"].sum() == pytest.approx(sum(sums["cost_usd"] for sums in wanted.values()))


@given(ROWS, st.booleans(), st.integers(1, 3))
def test_the_usage_of_a_partition_is_that_of_the_breakdown_by_model(
    rows: list[dict[str, Any]], shared: bool, models: int
) -> None:
    for place, row in enumerate(rows):
        variant = f"openai/m{place % models}" if place % 5 else "baseline/uniform"
        row |= {"model": f"m{place % models}", "model_variant": variant, "round": "S1", "segment": "a:x"}
        row["request_key"] = row["request_key"] + ("" if shared else str(place))
    table = pa.Table.from_pylist([prediction(**row) for row in rows], schema=PREDICTIONS)
    with predictions(*rows) as connection:
        expected = cost_breakdown(connection, ["model"], KEYS).drop(columns=["reason", "stop_reason"])
    wanted = pa.Table.from_pandas(expected, preserve_index=False).to_pylist()
    assert usage_by_model(table, KEYS).to_pylist() == [{**row, "cost_usd": pytest.approx(row["cost_usd"])} for row in wanted]
