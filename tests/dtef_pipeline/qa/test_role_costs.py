"""What candidates and judges cost: each call once, whatever rests on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.qa.result_tables import QA_ANCHORS
from dtef_pipeline.qa.role_costs import qa_costs
from tests.made.qa_scores import connected, table_of

Row = Mapping[str, Any]


def stored(keys: Sequence[str]) -> pa.Table:
    """Each call of the store has 5 + 1 tokens and costs a cent."""
    n = len(keys)
    return pa.table({"request_key": list(keys), "prompt_tokens": [5] * n, "completion_tokens": [1] * n, "cost_usd": [0.01] * n})


def response(key: str, cost: float | None = 0.1, **given: Any) -> dict[str, Any]:
    usual = {
        "suite": "gsm8k",
        "part": "all",
        "item_id": key,
        "model": "m",
        "model_variant": "m[t=0]",
        "call_status": "answered",
    }
    return {**usual, "request_key": key, "prompt_tokens": 10, "completion_tokens": 2, "cost_usd": cost, **given}


def judgement(*keys: str, cost: float | None = 0.01, **given: Any) -> dict[str, Any]:
    usual = {"suite": "gsm8k", "part": "all", "evaluator": "semantic", "judge_model": "j", "judge_variant": "j[t=0]"}
    usage = {"prompt_tokens": 5 * len(keys), "completion_tokens": len(keys), "cost_usd": cost}
    return {**usual, "request_keys": list(keys), "raw": ["r"] * len(keys), **usage, **given}


def costs(responses: Sequence[Row], judgements: Sequence[Row] | None = None) -> list[dict[str, Any]]:
    return list(qa_costs(connected([], responses, judgements), stored).to_pylist())


def test_calls_are_added_up_by_role_suite_and_evaluator() -> None:
    rows = costs(
        [response("a"), response("b"), response("c", suite="mmlu")],
        [judgement("ja"), judgement("jb"), judgement("fa", evaluator="factuality")],
    )
    told = [(row["role"], row["suite"], row["evaluator"], row["calls"], row["cost_usd"]) for row in rows]
    assert told == [
        ("candidate", "gsm8k", None, 2, pytest.approx(0.2)),
        ("candidate", "mmlu", None, 1, pytest.approx(0.1)),
        ("judge", "gsm8k", "semantic", 2, pytest.approx(0.02)),
        ("judge", "gsm8k", "factuality", 1, pytest.approx(0.01)),
    ]
    assert sum(row["prompt_tokens"] for row in rows) == 45


def test_a_call_that_several_rows_rest_on_counts_once() -> None:
    shared = [response("a"), response("a", cost=0.0, part="other", prompt_tokens=0), response("a", suite="aaa", cost=0.0)]
    again = [judgement("j"), judgement("j", snapshot="2026-01-02"), judgement("j", suite="aaa")]
    rows = costs(shared, again)
    assert [(row["role"], row["suite"], row["calls"], row["prompt_tokens"]) for row in rows] == [
        ("candidate", "aaa", 1, 10),
        ("judge", "aaa", 1, 5),
    ]
    assert sum(row["cost_usd"] for row in rows) == pytest.approx(0.11)


def test_a_judgement_that_shares_its_first_reply_with_another_is_counted_by_calls() -> None:
    rows = costs([], [judgement("j1"), judgement("j1", "j2", cost=0.02, snapshot="night")])
    assert [(row["calls"], row["cost_usd"], row["prompt_tokens"]) for row in rows] == [(2, pytest.approx(0.02), 10)]


def test_what_the_judge_says_of_anchors_is_paid_for_too() -> None:
    connection = connected([], [response("a")], [judgement("j1")])
    connection.register("qa_anchors", table_of([judgement("j2", snapshot=night) for night in ("n1", "n1", "n2")], QA_ANCHORS))
    rows = qa_costs(connection, stored).to_pylist()
    assert [(row["role"], row["evaluator"], row["calls"], row["cost_usd"]) for row in rows[1:]] == [
        ("judge", "semantic", 2, pytest.approx(0.02))
    ]


def test_a_call_without_a_known_price_is_counted_and_costs_nothing_that_is_known() -> None:
    rows = costs([response("a", cost=None), response("a", cost=0.0, part="other")], [judgement("j", cost=None)])
    assert [(row["cost_usd"], row["unpriced"]) for row in rows] == [(None, 1), (None, 1)]


def test_failed_calls_and_judgements_without_a_reply_cost_nothing() -> None:
    assert costs([response("a", call_status="error", cost=None)], [judgement(raw=[], cost=None)]) == []


def test_attempts_of_unknown_cost_are_counted_with_the_most_that_they_may_have_cost() -> None:
    """They were in no table of costs of questions; of a model that always timed out there was not even a row."""
    failed = response(
        "b", None, call_status="error", model="n", model_variant="n[t=0]", prompt_tokens=None, completion_tokens=None
    )
    unknown = pa.table({"request_key": ["a", "b"], "unknown_cost_attempts": [1, 7], "unknown_cost_usd_most": [0.5, 3.5]})
    rows = qa_costs(connected([], [response("a"), failed], None), stored, unknown).to_pylist()
    names = ("model", "answered", "calls", "cost_usd", "unpriced", "unknown_cost_attempts", "unknown_cost_usd_most")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("m", 1, 1, pytest.approx(0.1), 0, 1, 0.5),
        ("n", 0, 0, None, 0, 7, 3.5),
    ]
