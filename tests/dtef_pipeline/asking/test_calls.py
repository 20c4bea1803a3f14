"""A table of calls, in which two tasks stand in one prompt; requests of both forms, whose identity does not depend on the role."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.asking.calls import CallTable
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import ROLES, Failure, Message, Request, Response
from dtef_pipeline.asking.request_list import RequestList
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.tables import CALL, PROMPT_FIELD, field
from resources.responses.store import RESPONSES

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


@pytest.mark.parametrize("role", ["", "System", "developer"])
def test_a_message_of_an_unknown_role_is_refused(role: str) -> None:
    with pytest.raises(ConfigError, match=f"role of a message '{role}': allowed: system, user, assistant, tool"):
        Message(role, "text")


def test_a_request_is_not_of_both_forms() -> None:
    with pytest.raises(ConfigError, match="one of the two forms"):
        plain(messages=TALK)


def test_a_conversation_has_a_message() -> None:
    with pytest.raises(ConfigError, match="at least one"):
        Request.build_request([], MODEL, 0, "base")


def test_both_forms_are_sent_as_a_conversation() -> None:
    assert plain().conversation == (Message("system", "s"), Message("user", "u"))
    assert Request.build_request(TALK, MODEL, 0, "base").conversation == TALK


@pytest.mark.parametrize("system", [None, ""])
def test_without_a_system_text_there_is_no_system_message(system: str | None) -> None:
    assert plain(system).conversation == (Message("user", "u"),)


def test_the_role_changes_no_identity() -> None:
    assert len({plain(role=role).key for role in ROLES}) == 1
    assert len({Request.build_request(TALK, MODEL, 0, "base", role=role).key for role in ROLES}) == 1


def test_a_conversation_has_its_id_from_everything_the_model_sees() -> None:
    ids = {Request.build_request(TALK[:end], MODEL, 0, "base").prompt_id for end in range(1, 5)}
    ids |= {Request.build_request(TALK[::-1], MODEL, 0, "base").prompt_id}
    ids |= {Request.build_request(TALK, MODEL, 0, "base", response_schema="{}").prompt_id}
    ids |= {Request.build_request(TALK, MODEL, 0, "base", answer_tokens=9).prompt_id}
    assert len(ids) == 7
