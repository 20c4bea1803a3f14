"""A table of calls, in which two tasks stand in one prompt; requests of both forms, whose identity does not depend on the role."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.asking import daily_budget
from dtef_pipeline.asking.calls import CallTable
from dtef_pipeline.asking.daily_budget import DailyBudget
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import ROLES, Failure, Message, Request, Response
from dtef_pipeline.asking.request_list import RequestList, SharedResponse, count_distinct_requests, same_texts, sources
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import request_key
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from dtef_pipeline.survey.predictions import has_duplicates, list_options_in_prompt_order
from dtef_pipeline.tables import CALL, PROMPT_FIELD, field
from resources.responses.store import RESPONSES
from tests.made.scores import survey_rows
from tests.made.shared_cases import cases

TASK, HASH = field("task_id", pa.string(), "Task"), field("blueprint_hash", pa.string(), "Hash of the prompts")
CALLS = CallTable(
    pa.schema([TASK, HASH, *CALL]),
    prompt_columns=("task_id", "prompt_id", "blueprint_hash"),
    prompt_key=("prompt_id", "task_id"),
    list_options=lambda options, reading: tuple(options) if reading is None else (),
)
MODEL = ModelSpec(name="mini", model="openai/mini")
PROMPTS = pa.Table.from_pylist(
    [
        {"task_id": task, "prompt_id": prompt, "user": f"Do {prompt}.", "options": ["yes", "no"], "reading": reading}
        for task, prompt, reading in (("a", "p1", None), ("b", "p1", None), ("c", "p2", "free"))
    ],
    schema=pa.schema(
        [TASK, PROMPT_FIELD, HASH]
        + [(name, pa.string()) for name in ("system", "user", "reading", "response_schema")]
        + [("options", pa.list_(pa.string())), ("answer_tokens", pa.int32())]
    ),
)


def answered(*texts: str) -> pa.Table:
    """The rows after as many of the requests have got these responses; the others failed."""
    requests = RequestList([CALLS.plan_calls(PROMPTS, MODEL, 1, "base").requests])
    rows: list[dict[str, Any]] = [
        {
            **dict.fromkeys(Response.__slots__),
            "request_key": request.key,
            "text": text,
            "cost_usd": 0.5,
            "prompt_tokens": 7,
            "attempts": 2,
            "answered_at": datetime(2026, 1, 2, tzinfo=UTC),
        }
        for request, text in zip(requests, texts, strict=False)
    ]
    failures = {request.key: Failure(request.key, "HTTP 400", 3) for request in requests[len(texts) :]}
    return CALLS.build_answered_rows(PROMPTS, MODEL, 1, "base", pa.Table.from_pylist(rows, RESPONSES), failures)


def test_items_of_one_prompt_share_its_request() -> None:
    first, second = RequestList([CALLS.plan_calls(PROMPTS, MODEL, 1, "base").requests])
    assert (first.prompt_id, first.choices) == ("p1", ("yes", "no"))
    assert (second.prompt_id, second.choices) == ("p2", ())


def test_each_item_has_a_row_and_what_a_request_cost_stands_once() -> None:
    rows = answered("done", "well")
    assert rows.schema == CALLS.schema
    assert rows["task_id"].to_pylist() == ["a", "b", "c"]
    assert rows["response"].to_pylist() == ["done", "done", "well"]
    assert rows["cost_usd"].to_pylist() == [0.5, 0.0, 0.5]
    assert rows["prompt_tokens"].to_pylist() == [7, 0, 7]


def test_a_later_run_replaces_its_rows_and_keeps_the_others() -> None:
    before, after = answered("done"), answered("done", "well")
    assert before["call_status"].to_pylist() == ["answered", "answered", "error"]
    assert CALLS.merge_rows(before, after, PROMPTS)["response"].to_pylist() == ["done", "done", "well"]
    fewer = PROMPTS.slice(0, 2)
    assert CALLS.merge_rows(after, after.slice(0, 1), fewer)["task_id"].to_pylist() == ["a", "b"]


def test_what_a_failed_request_cost_stands_at_the_first_of_its_rows() -> None:
    first, second = RequestList([CALLS.plan_calls(PROMPTS, MODEL, 1, "base").requests])
    failures = {
        first.key: Failure(first.key, "no answer", 3, cost_usd=0.5, unknown_cost_attempts=2, unknown_cost_usd_most=4.0),
        second.key: Failure(second.key, "not asked", 0, "budget"),
    }
    rows = CALLS.build_answered_rows(PROMPTS, MODEL, 1, "base", RESPONSES.empty_table(), failures).to_pylist()
    told = [(row["attempts"], row["cost_usd"], row["unknown_cost_attempts"], row["unknown_cost_usd_most"]) for row in rows]
    assert told == [(3, 0.5, 2, 4.0), (3, None, None, None), (0, None, 0, None)]


TALK = (Message("system", "s"), Message("user", "u"), Message("assistant", "a"), Message("user", "v"))


def plain(system: str | None = "s", user: str = "u", **settings: Any) -> Request:
    return Request("p", system, user, MODEL, 0, "base", **settings)


def test_a_request_is_of_one_form_and_its_messages_are_of_known_roles() -> None:
    for role in ("", "System", "developer"):
        with pytest.raises(ConfigError, match=f"role of a message '{role}': allowed: system, user, assistant, tool"):
            Message(role, "text")
    with pytest.raises(ConfigError, match="one of the two forms"):
        plain(messages=TALK)
    with pytest.raises(ConfigError, match="at least one"):
        Request.build_request([], MODEL, 0, "base")


def test_both_forms_are_sent_as_a_conversation() -> None:
    assert plain().conversation == (Message("system", "s"), Message("user", "u"))
    assert plain(None).conversation == plain("").conversation == (Message("user", "u"),)
    assert Request.build_request(TALK, MODEL, 0, "base").conversation == TALK


def test_the_role_changes_no_identity() -> None:
    assert len({plain(role=role).key for role in ROLES}) == 1
    assert len({Request.build_request(TALK, MODEL, 0, "base", role=role).key for role in ROLES}) == 1


def test_a_conversation_has_its_id_from_everything_the_model_sees() -> None:
    ids = {Request.build_request(TALK[:end], MODEL, 0, "base").prompt_id for end in range(1, 5)}
    ids |= {Request.build_request(TALK[::-1], MODEL, 0, "base").prompt_id}
    ids |= {Request.build_request(TALK, MODEL, 0, "base", response_schema="{}").prompt_id}
    ids |= {Request.build_request(TALK, MODEL, 0, "base", answer_tokens=9).prompt_id}
    assert len(ids) == 7


VARIANT = "openai/m"
AGAIN = {"question_text": "How is it?", "duplicate_of": "q0"}
SURVEY = survey_rows({"question_text": "How is it?"}, {}, AGAIN, AGAIN, {**AGAIN, "options": ["Good", "So-so", "Bad"]})
DUPLICATES = build_blueprints(SURVEY, BlueprintOptions())
FIRST, OTHER, SECOND, THIRD, DIFFERENT = DUPLICATES["prompt_id"].to_pylist()
SAME = same_texts(DUPLICATES, list_options_in_prompt_order)


def key(prompt: str, draw: int = 0) -> str:
    return request_key(prompt, VARIANT, draw, "base")


def served(*prompts: str, stored: Collection[str] = (), draws: int = 1) -> dict[str, SharedResponse]:
    return sources(prompts, SAME, VARIANT, draws, "base", lambda keys: set(keys) & set(stored))


def test_prompts_of_the_same_text_and_options_are_found() -> None:
    found, members = same_texts(DUPLICATES, list_options_in_prompt_order), (FIRST, SECOND, THIRD)
    assert found == dict.fromkeys(members, members)
    assert len({FIRST, OTHER, SECOND, THIRD, DIFFERENT}) == 5


def test_a_batch_is_no_duplicate_of_itself() -> None:
    """Its questions share one prompt id."""
    batch = build_blueprints(survey_rows({}, {}, {}), BlueprintOptions(task="batch", batch_size=3))
    assert same_texts(batch, list_options_in_prompt_order) == {}


def test_a_survey_without_a_question_that_stands_twice_is_known_at_once() -> None:
    assert has_duplicates(SURVEY)
    assert not has_duplicates(survey_rows({}, {}))
    assert not has_duplicates(SURVEY.slice(0, 0))


def test_one_request_of_each_text_serves_all() -> None:
    first, second, third = (SharedResponse(prompt, key(prompt)) for prompt in (FIRST, SECOND, THIRD))
    assert served(FIRST, OTHER, SECOND, THIRD, DIFFERENT) == {key(SECOND): first, key(THIRD): first}
    assert served(THIRD) == {key(THIRD): first}, "of two runs over other questions, both send the same request"
    assert served(FIRST, SECOND, THIRD, stored=[key(THIRD)]) == {key(FIRST): third, key(SECOND): third}
    # Responses that were bought before each text was requested once.
    assert served(FIRST, SECOND, THIRD, stored=[key(FIRST), key(SECOND), key(THIRD)]) == {}
    assert served(FIRST, SECOND, THIRD, stored=[key(SECOND), key(THIRD)]) == {key(FIRST): second}


def test_each_draw_has_its_own_answer() -> None:
    found = served(FIRST, SECOND, stored=[key(SECOND, 1)], draws=2)
    assert found == {key(SECOND): SharedResponse(FIRST, key(FIRST)), key(FIRST, 1): SharedResponse(SECOND, key(SECOND, 1))}


def test_requests_are_counted_as_they_are_sent() -> None:
    everything = {FIRST, OTHER, SECOND, THIRD, DIFFERENT}
    assert count_distinct_requests(everything, 2, served(*everything, draws=2)) == 6
    assert count_distinct_requests({SECOND, THIRD}, 1, served(SECOND, THIRD)) == 1
    assert count_distinct_requests({FIRST, SECOND}, 1, served(FIRST, SECOND, stored=[key(FIRST), key(SECOND)])) == 2


def test_without_a_question_that_stands_twice_the_store_is_not_asked() -> None:
    def fail(_: object) -> set[str]:
        raise AssertionError

    assert sources([OTHER, DIFFERENT], SAME, VARIANT, 3, "base", fail) == {}


class Ledger:
    """What a store would say."""

    def __init__(self) -> None:
        self.today, self.now, self.reads = 0.0, 0.0, 0

    def spent(self) -> float:
        self.reads += 1
        return self.today


def begun(budget: DailyBudget, most: float) -> bool:
    """Whether a call that may cost so much has begun."""
    fits = budget.fits(most)
    if fits:
        budget.take(most)
    return fits


def test_shared_budgets_hold() -> None:
    for case in cases("benchmarks", "budget"):
        limit, each, wanted = (case["in"][name] for name in ("limit", "each", "wanted"))
        ledger, judged = Ledger(), 0
        budget = DailyBudget(limit, ledger.spent)
        for _ in range(wanted):
            if begun(budget, each):
                judged += 1
                ledger.today += each
                budget.settle(each, each)
        assert (judged, wanted - judged) == (case["out"]["judged"], case["out"]["skipped_budget"])
        assert ledger.today == pytest.approx(case["out"]["spent"], abs=case["tol"])


def test_the_limit_can_be_reached_whatever_rounding_makes_of_the_sum() -> None:
    budget = DailyBudget(0.009, lambda: 0.0)
    assert [begun(budget, 0.003) for _ in range(4)] == [True, True, True, False]


def test_runs_at_once_share_the_ledger_which_is_not_read_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run read it when it began and before a refusal alone, so that two together spent twice the limit."""
    ledger = Ledger()
    monkeypatch.setattr(daily_budget.time, "monotonic", lambda: ledger.now)
    runs = [DailyBudget(1.0, ledger.spent) for _ in range(2)]
    judged = 0
    for at in range(40):
        ledger.now += 8.0
        if begun(runs[at % 2], 0.1):
            judged += 1
            ledger.today += 0.1
            runs[at % 2].settle(0.1, 0.1)
    assert judged == 10
    before = ledger.reads
    assert [runs[0].fits(0.0) for _ in range(50)] == [True] * 50
    assert ledger.reads <= before + 1


@given(st.lists(st.tuples(st.floats(0.01, 2), st.floats(0, 1), st.booleans()), max_size=80), st.floats(0, 20))
def test_no_order_of_calls_passes_the_limit(calls: list[tuple[float, float, bool]], limit: float) -> None:
    ledger, under_way = Ledger(), []
    budget = DailyBudget(limit, ledger.spent)
    for most, part, ends in calls:
        if begun(budget, most):
            under_way.append((most, most * part))
        if ends and under_way:
            reserved, actual = under_way.pop(0)
            ledger.today += actual
            budget.settle(reserved, actual)
        assert ledger.today + sum(reserved for reserved, _ in under_way) <= limit * (1 + 1e-6)


@pytest.mark.parametrize("limit", [-1.0, float("nan")])
def test_a_limit_that_is_none_is_refused(limit: float) -> None:
    with pytest.raises(ConfigError, match=r"daily_budget: got .*; allowed: 0 or more"):
        DailyBudget(limit, lambda: 0.0)
