"""What judgements of an answer come to: one further request after a reply that cannot be read, budgets, and judges of the answer's maker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pytest

from dtef_pipeline.asking.episodes import EpisodeResult, play
from dtef_pipeline.asking.models import load_models
from dtef_pipeline.asking.request import Failure, Request, Response
from dtef_pipeline.judging.judges import is_self_judged
from dtef_pipeline.qa.judging.arbiter import EVALUATORS, Arbiter
from dtef_pipeline.qa.judging.arbitration import (
    Arbitration,
    compute_arbiter_score,
    iterate_arbitrations,
    make_verdict_row,
)
from tests.made.responses import response
from tests.made.shared_cases import cases

(JUDGE,) = load_models("models: {mini: {model: openai/mini, max_tokens: 300}}").resolve(["mini"])
ARBITER = Arbiter(JUDGE)
GOOD_REPLY = '{"score": 0.8, "reason": "A slip."}'


def answering(
    replies: Mapping[int, str], asked: list[Request]
) -> tuple[Callable[..., dict[str, Failure]], Callable[..., pa.Table]]:
    """A gateway and a store in which draw n is replied to with `replies[n]`; a draw that is missing fails for its budget."""
    kept: dict[str, Response] = {}

    def ask(requests: Sequence[Request]) -> dict[str, Failure]:
        failures = {}
        for one in requests:
            if one.draw not in replies:
                failures[one.key] = Failure(one.key, "the judges' daily limit of 10 was reached", 0, "budget")
            elif one.key not in kept:
                asked.append(one)
                kept[one.key] = response(
                    0, request_key=one.key, text=replies[one.draw], role="judge", cost_usd=0.001, draw=one.draw,
                    finish_reason="length" if "cut" in replies[one.draw] else "stop",
                )  # fmt: skip
        return failures

    def stored(keys: Sequence[str]) -> pa.Table:
        rows = [{name: getattr(kept[key], name) for name in Response.__slots__} for key in keys if key in kept]
        return pa.Table.from_pylist(rows) if rows else pa.table({name: [] for name in Response.__slots__})

    return ask, stored


def judged(replies: Mapping[int, str], asked: list[Request] | None = None) -> tuple[Arbitration, EpisodeResult]:
    ask, stored = answering(replies, [] if asked is None else asked)
    one = Arbitration("semantic", "q", "r", "a", JUDGE)
    (came,) = play([one], ask, stored)
    return one, came


def test_a_reply_that_cannot_be_read_is_asked_for_once_more_and_then_failed() -> None:
    asked: list[Request] = []
    verdict = make_verdict_row(*judged({0: "I would say 0.7", 1: GOOD_REPLY}, asked), "")
    assert (verdict["score"], verdict["explanation"]) == (0.8, "A slip.")
    assert [one.draw for one in asked] == [0, 1]
    assert asked[0].messages == asked[1].messages
    stubborn: list[Request] = []
    row = make_verdict_row(*judged({0: "high", 1: "8", 2: GOOD_REPLY}, stubborn), "anthropic/claude-haiku")
    assert len(stubborn) == 2
    assert (row["score"], row["reason"], row["attempts"], row["raw"]) == (None, "unreadable", 2, ["high", "8"])
    assert row["cost_usd"] == pytest.approx(0.002)


def test_after_a_reply_that_was_cut_the_judge_has_twice_the_room() -> None:
    asked: list[Request] = []
    verdict = make_verdict_row(*judged({0: "Let me think, cut", 1: "cut again"}, asked), "")
    assert [one.model.max_tokens for one in asked] == [300, 600]
    assert (verdict["score"], verdict["reason"]) == (None, "cut")


def test_a_judgement_beyond_a_budget_is_skipped_and_says_which() -> None:
    row = make_verdict_row(*judged({}), "openai/gpt-4o[temperature=0]")
    assert (row["score"], row["reason"], row["error"]) == (None, "skipped_budget", "the judges' daily limit of 10 was reached")
    assert (row["attempts"], row["self_judged"]) == (0, True)
    failed = EpisodeResult(failure=Failure("k", "timeout", 6))
    assert make_verdict_row(Arbitration("semantic", "q", "r", "a", JUDGE), failed, "")["reason"] == "error"


def test_a_blank_answer_needs_no_judge() -> None:
    assert list(iterate_arbitrations("q", "r", " <think>72</think>\n", ARBITER)) == []
    assert [one.evaluator for one in iterate_arbitrations("q", "r", "72", ARBITER)] == ["semantic", "factuality"]


def test_shared_means_of_judges_hold() -> None:
    for case in cases("benchmarks", "judge_mean"):
        found = compute_arbiter_score(case["in"]["judges"])
        told = {"value": found.value, "status": found.status, "partial": "partial" in found.flags}
        wanted = {name: case["out"][name] for name in told}
        assert told == {**wanted, "value": wanted["value"] and pytest.approx(wanted["value"], abs=case["tol"])}


def test_without_any_score_there_is_null_and_a_reason_and_never_a_middle() -> None:
    failed = compute_arbiter_score({"semantic": None, "factuality": None}, {"semantic": "unreadable", "factuality": "error"})
    assert (failed.status, failed.value, failed.score) == ("judge_failed", None, None)
    assert failed.reason == "semantic: unreadable; factuality: error"
    skipped = compute_arbiter_score(dict.fromkeys(EVALUATORS), dict.fromkeys(EVALUATORS, "skipped_budget"))
    assert (skipped.status, skipped.score) == ("skipped_budget", None)
    assert compute_arbiter_score({}).status == "judge_failed"
    assert compute_arbiter_score({"semantic": 0.8, "factuality": 0.0}).value == pytest.approx(0.4)


def test_a_reason_of_a_budget_names_the_error_of_the_call_that_used_it_up() -> None:
    first, second = EVALUATORS[:2]
    limit = "not sent: the run's max_calls of 1 was reached"
    errors = {first: limit, second: f"{limit}; last error: judge: HTTP 500: no luck"}
    skipped = compute_arbiter_score(dict.fromkeys(errors), dict.fromkeys(errors, "skipped_budget"), errors=errors)
    assert "HTTP 500: no luck" in (skipped.reason or "")


def test_a_judge_of_the_answers_maker_is_flagged() -> None:
    assert is_self_judged("openai/gpt-4o-mini", "openrouter/openai/gpt-4o[temperature=0]")
    assert not is_self_judged("openai/gpt-4o-mini", "anthropic/claude-haiku-4-5")
    assert not is_self_judged("mystery", "riddle")
    assert is_self_judged("mystery", "mystery[temperature=0]"), "the judge itself"


def test_models_on_a_server_of_ones_own_are_not_of_openai_for_speaking_its_protocol() -> None:
    """Every judgement of two private models was flagged as that of a judge of the same maker."""
    private = {"openai/ours", "openai/theirs", "openai/gpt-oss-20b", "openai/Qwen3-8B"}
    assert is_self_judged("openai/ours", "openai/theirs[temperature=0]")
    assert not is_self_judged("openai/ours", "openai/theirs[temperature=0]", private)
    assert not is_self_judged("openai/gpt-oss-20b", "openai/Qwen3-8B", private)
    assert is_self_judged("openai/gpt-oss-20b", "openai/gpt-4o", private), "the name tells"
    assert is_self_judged("openai/ours", "openai/ours[temperature=1]", private)


def test_a_score_of_such_a_judge_has_the_flag() -> None:
    assert compute_arbiter_score({"semantic": 1.0}, self_judged=True).flags == ("self_judged",)
