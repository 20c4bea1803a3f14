"""Costs: each request is counted and paid once, whatever rests on it, and an unknown price is not zero."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.boards.costs import costs, count_calls_once, load_costs, sum_usage, sum_usage_by_model
from dtef_pipeline.boards.family_calls import Calls, FamilyCalls
from dtef_pipeline.drift.verdict_tables import ANCHORS
from dtef_pipeline.qa.tables import QA_CALL_TABLES, QA_JUDGEMENTS, QA_RESPONSES
from dtef_pipeline.rubric.tables import RUBRIC_CALL_TABLES, RUBRIC_RESPONSES
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.stages import SURVEY_CALL_TABLES
from dtef_pipeline.survey.tables import PREDICTIONS
from resources.responses.store import SUMMARY

Row = Mapping[str, Any]


def stored(keys: Sequence[str]) -> pa.Table:
    """Each call of the store has 5 + 1 tokens and costs a cent."""
    n = len(keys)
    return pa.table({"request_key": list(keys), "prompt_tokens": [5] * n, "completion_tokens": [1] * n, "cost_usd": [0.01] * n})


def connected(**tables: tuple[Sequence[Row], pa.Schema]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    for name, (rows, schema) in tables.items():
        connection.register(name, pa.Table.from_pylist([dict(row) for row in rows], schema=schema))
    return connection


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


def of_predictions(*rows: Row) -> duckdb.DuckDBPyConnection:
    return connected(predictions=([prediction(**row) for row in rows], PREDICTIONS))


def of_survey(*rows: Row) -> list[dict[str, Any]]:
    return list(costs(of_predictions(*rows), "survey", SURVEY_CALL_TABLES, stored).to_pylist())


def response(key: str, cost: float | None = 0.1, **given: Any) -> dict[str, Any]:
    usual = {"suite": "gsm8k", "part": "all", "item_id": key, "model": "m", "model_variant": "m[t=0]", "snapshot": "base"}
    usage = {"call_status": "answered", "prompt_tokens": 10, "completion_tokens": 2, "cost_usd": cost}
    return {**usual, "request_key": key, **usage, **given}


def judgement(*keys: str, cost: float | None = 0.01, **given: Any) -> dict[str, Any]:
    usual = {"suite": "gsm8k", "part": "all", "evaluator": "semantic", "judge_model": "j", "judge_variant": "j[t=0]"}
    usage = {"prompt_tokens": 5 * len(keys), "completion_tokens": len(keys), "cost_usd": cost, "snapshot": "base"}
    return {**usual, "request_keys": list(keys), "raw": ["r"] * len(keys), **usage, **given}


def of_qa(
    responses: Sequence[Row], judgements: Sequence[Row] = (), anchors: Sequence[Row] = (), unknown: pa.Table | None = None
) -> list[dict[str, Any]]:
    tables = {"qa_responses": (responses, QA_RESPONSES), "qa_judgements": (judgements, QA_JUDGEMENTS)}
    connection = connected(**tables, **({"anchors": (anchors, ANCHORS)} if anchors else {}))
    return list(costs(connection, "qa", QA_CALL_TABLES, stored, unknown=unknown).to_pylist())


def test_a_response_that_was_not_imported_was_stopped_by_no_budget() -> None:
    """`dtef run` told of a budget that was reached."""
    rows = ({"request_key": "a", "call_status": "missing"}, {"request_key": "b", "call_status": "missing"})
    assert of_survey(*rows) == []
    table = pa.Table.from_pylist([prediction(**row) for row in rows], schema=PREDICTIONS)
    assert [row["budget_stopped"] for row in sum_usage_by_model(table, SURVEY_CALL_TABLES).to_pylist()] == [0]


def test_failed_calls_and_calls_stopped_by_a_budget_are_distinguished_with_a_reason_each() -> None:
    rows = (
        {"request_key": "a"},
        {"request_key": "b", "call_status": "error", "error": "too long"},
        {"request_key": "c", "call_status": "budget", "error": "max_calls of 2 was reached"},
        {"request_key": "d", "call_status": "budget", "error": "max_calls of 2 was reached"},
    )
    (row,) = of_survey(*rows)
    assert (row["answered"], row["failed"], row["budget_stopped"], row["unpriced"]) == (1, 1, 2, 0)
    (shown,) = load_costs(of_predictions(*rows), SURVEY_CALL_TABLES, ["model"]).to_dict("records")
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


@given(ROWS, st.sampled_from(["model", "first_level", "second_level", "snapshot", "purpose"]))
def test_sums_agree_with_a_plain_loop_over_requests(rows: list[dict[str, Any]], view: str) -> None:
    by_request: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_request[row["request_key"]].append(prediction(**row))
    wanted: dict[tuple[str, str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for of_request in by_request.values():
        statuses = {row["call_status"] for row in of_request}
        status = next(name for name in ("answered", "error", "budget", "missing") if name in statuses)
        if status == "missing":
            continue
        place = min((row["round"], row["segment"], row["condition"]) for row in of_request)
        wanted[place][status] += 1
        wanted[place]["prompt_tokens"] += max(row["prompt_tokens"] or 0 for row in of_request)
        answered = [row for row in of_request if row["call_status"] == "answered"]
        priced = [row["cost_usd"] for row in answered if row["cost_usd"] is not None]
        wanted[place]["cost_usd"] += max(priced, default=0)
        wanted[place]["unpriced"] += bool(answered) and not any(priced) and len(priced) < len(answered)
    connection = of_predictions(*rows)
    counted_rows = costs(connection, "survey", SURVEY_CALL_TABLES, stored).to_pylist()
    got = {(row["first_level"], row["second_level"], row["purpose"]): row for row in counted_rows}
    assert set(got) == set(wanted)
    for place, sums in wanted.items():
        counted = (got[place]["answered"], got[place]["failed"], got[place]["budget_stopped"], got[place]["prompt_tokens"])
        assert counted == (sums["answered"], sums["error"], sums["budget"], sums["prompt_tokens"])
        assert ((got[place]["cost_usd"] or 0), got[place]["unpriced"]) == (pytest.approx(sums["cost_usd"]), sums["unpriced"])
    frame = load_costs(connection, SURVEY_CALL_TABLES, [view])
    assert frame["answered"].sum() == sum(sums["answered"] for sums in wanted.values())
    assert frame["cost_usd"].sum() == pytest.approx(sum(sums["cost_usd"] for sums in wanted.values()))


def test_calls_are_added_up_by_role_partition_and_purpose() -> None:
    rows = of_qa(
        [response("a"), response("b"), response("c", suite="mmlu")],
        [judgement("ja"), judgement("jb"), judgement("fa", evaluator="factuality")],
    )
    told = [(row["role"], row["first_level"], row["purpose"], row["calls"], row["cost_usd"]) for row in rows]
    assert told == [
        ("candidate", "gsm8k", None, 2, pytest.approx(0.2)),
        ("candidate", "mmlu", None, 1, pytest.approx(0.1)),
        ("judge", "gsm8k", "semantic", 2, pytest.approx(0.02)),
        ("judge", "gsm8k", "factuality", 1, pytest.approx(0.01)),
    ]
    assert sum(row["prompt_tokens"] for row in rows) == 45
    assert {(row["family"], row["second_level"], row["snapshot"]) for row in rows} == {("qa", "all", "base")}


def test_a_call_that_several_rows_rest_on_counts_once() -> None:
    shared = [response("a"), response("a", cost=0.0, part="other", prompt_tokens=0), response("a", suite="aaa", cost=0.0)]
    again = [judgement("j"), judgement("j", snapshot="2026-01-02"), judgement("j", suite="aaa")]
    rows = of_qa(shared, again)
    assert [(row["role"], row["first_level"], row["calls"], row["prompt_tokens"]) for row in rows] == [
        ("candidate", "aaa", 1, 10),
        ("judge", "aaa", 1, 5),
    ]
    assert sum(row["cost_usd"] for row in rows) == pytest.approx(0.11)


def test_a_judgement_that_shares_its_first_reply_with_another_is_counted_by_calls() -> None:
    rows = of_qa([], [judgement("j1"), judgement("j1", "j2", cost=0.02)])
    assert [(row["calls"], row["cost_usd"], row["prompt_tokens"]) for row in rows] == [(2, pytest.approx(0.02), 10)]


def test_what_the_judge_says_of_anchors_is_paid_for_too() -> None:
    place = {"family": "qa", "partition": "gsm8k/all"}
    anchors = [judgement("j2", snapshot=night, **place) for night in ("n1", "n1", "n2")]
    anchors.append(judgement("j3", **{**place, "family": "rubric"}))
    rows = of_qa([response("a")], [judgement("j1")], anchors)
    assert [(row["role"], row["second_level"], row["snapshot"], row["calls"], row["cost_usd"]) for row in rows[1:]] == [
        ("judge", "all", "base", 1, pytest.approx(0.01)),
        ("judge", "all", "n1", 1, pytest.approx(0.01)),
    ]


def test_failed_calls_are_counted_and_cost_nothing_and_judgements_without_a_reply_have_no_row() -> None:
    (row,) = of_qa([response("a", call_status="error", cost=None)], [judgement(raw=[], cost=None)])
    assert (row["failed"], row["answered"], row["calls"], row["cost_usd"]) == (1, 0, 0, None)


def test_attempts_of_unknown_cost_are_counted_with_the_most_that_they_may_have_cost() -> None:
    """They were in no table of costs of questions; of a model that always timed out there was not even a row."""
    failed = response(
        "b", None, call_status="error", model="n", model_variant="n[t=0]", prompt_tokens=None, completion_tokens=None
    )
    unknown = pa.table({"request_key": ["a", "b"], "unknown_cost_attempts": [1, 7], "unknown_cost_usd_most": [0.5, 3.5]})
    rows = of_qa([response("a"), failed], unknown=unknown)
    names = ("model", "answered", "calls", "cost_usd", "unpriced", "unknown_cost_attempts", "unknown_cost_usd_most")
    told = [("m", 1, 1, pytest.approx(0.1), 0, 1, 0.5), ("n", 0, 0, None, 0, 7, 3.5)]
    assert [tuple(row[name] for name in names) for row in rows] == told
    rows_say = [response("a", unknown_cost_attempts=1, unknown_cost_usd_most=0.5), failed | {"unknown_cost_attempts": 7}]
    known = [tuple(row[name] for name in names) for row in of_qa(rows_say, unknown=unknown)]
    assert known == [told[0], (*told[1][:-1], None)]


def test_what_embedders_cost_is_reported_by_the_response_store() -> None:
    row = {"blueprint": "b", "snapshot": "base", "model": "m", "model_variant": "m", "request_keys": ["a"], "turns": 1}
    asked = [
        {"model": "e", "snapshot": "base", "role": role, "responses": 3, "prompt_tokens": 9} for role in ("embedder", "judge")
    ]
    summary = pa.Table.from_pylist(asked, schema=SUMMARY)
    connection = connected(rubric_responses=([row | {"cost_usd": 1.0, "prompt_tokens": 1}], RUBRIC_RESPONSES))
    rows = costs(connection, "rubric", RUBRIC_CALL_TABLES, stored, summary=summary).to_pylist()
    assert [(row["role"], row["model"], row["first_level"], row["calls"], row["cost_usd"]) for row in rows] == [
        ("candidate", "m", "b", 1, 1.0),
        ("embedder", "e", None, 3, None),
    ]


CONVERSATIONS = FamilyCalls(SPACE, (Calls("asked", replies="replies"),))
USED = {"round": "S1", "segment": "a:x", "snapshot": "base", "model": "m", "model_variant": "m"}


def in_all(rows: Sequence[Row], unknown: pa.Table | None = None) -> dict[str, Any]:
    with duckdb.connect() as connection:
        connection.register("asked", pa.Table.from_pylist([{**USED, **row} for row in rows]))
        count_calls_once(connection, CONVERSATIONS, lambda keys: pa.table({}), unknown)
        return sum_usage(connection)


def test_every_call_of_a_row_without_a_known_cost_is_unpriced() -> None:
    """A conversation of three turns counted as one call whose cost is not known, and as three calls."""
    found = in_all(
        [
            {"request_keys": list("abc"), "replies": 3, "prompt_tokens": 30, "completion_tokens": 3, "cost_usd": None},
            {"request_keys": ["d"], "replies": 1, "prompt_tokens": 10, "completion_tokens": 1, "cost_usd": 0.5},
            {"request_keys": ["e"], "replies": 0, "prompt_tokens": None, "completion_tokens": None, "cost_usd": None},
        ]
    )
    wanted = {"calls": 4, "prompt_tokens": 40, "completion_tokens": 4, "cost_usd": 0.5, "unpriced": 3}
    assert {name: found[name] for name in wanted} == wanted
    assert (found["unknown_cost_attempts"], found["unknown_cost_usd_most"]) == (0, None)


def test_attempts_of_unknown_cost_count_once_also_of_rows_without_a_reply() -> None:
    """They were in no table of costs of rubrics, questions and games."""
    twice = {"request_keys": ["a", "b"], "replies": 2, "prompt_tokens": 30, "completion_tokens": 3, "cost_usd": 0.5}
    failed = {"request_keys": ["c"], "replies": 0, "prompt_tokens": None, "completion_tokens": None, "cost_usd": None}
    unknown = {"request_key": ["b", "c", "z"], "unknown_cost_attempts": [2, 7, 1], "unknown_cost_usd_most": [0.25, None, 9.0]}
    found = in_all([twice, twice, failed], pa.table(unknown))
    assert (found["calls"], found["cost_usd"], found["unpriced"]) == (2, 0.5, 0)
    assert (found["unknown_cost_attempts"], found["unknown_cost_usd_most"]) == (9, 0.25)
