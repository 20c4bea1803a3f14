"""What an analyst will be asked is what it is asked in a run, or as long as that."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from dtef_pipeline.asking.embeddings import text_hash
from dtef_pipeline.asking.models import Models, ModelSpec
from dtef_pipeline.asking.tokens import estimate_tokens
from dtef_pipeline.judging.call_ledger import PlannedCalls
from dtef_pipeline.rubric.candidates import Candidates
from dtef_pipeline.rubric.conversations import response_text
from dtef_pipeline.rubric.plan import AskedBlueprint, plan
from dtef_pipeline.rubric.space import RUBRIC_CELL
from dtef_pipeline.rubric.summary import REPORT_CHARACTERS, first_request, next_request, prepared
from dtef_pipeline.rubric.summary_rows import MaterialTables, summary_material
from dtef_pipeline.rubric.tables import RUBRIC_SCORES
from tests.dtef_pipeline.rubric.test_plan import (
    BLUEPRINT,
    Stored,
    all_replies,
    asked,
    by_role,
    ledger_of,
    made,
    response_table,
    spoken,
)

ANALYST = ModelSpec(name="a", model="openai/a")
SIMPLE = made(
    {"models": ["openai:m", "openai:n"]}, [{"id": "p", "prompt": "Why?", "should": [{"$contains": "1"}], "ideal": "Yes."}]
)


def scored(one: AskedBlueprint, stored: Stored, coverage: float = 0.5) -> MaterialTables:
    """The tables of a snapshot of SIMPLE, in which every response has this coverage."""
    responses = response_table(spoken(one, stored)[2], one.snapshot)
    rows = [{**row, "level": "cell", "coverage": coverage} for row in responses.select(list(RUBRIC_CELL)).to_pylist()]
    head = pa.Table.from_pylist([{"blueprint": "simple", "test_hash": "t"}])
    return MaterialTables(head, one.prompts, one.criteria, responses, pa.Table.from_pylist(rows, schema=RUBRIC_SCORES))


def analyst_row(one: AskedBlueprint, stored: Stored) -> PlannedCalls:
    ledger = ledger_of(stored)
    plan(one, ledger)
    return by_role(ledger)["analyst"]


def embedded_texts(one: AskedBlueprint, stored: Stored) -> set[str]:
    return {text_hash(text) for text in ["Yes.", *(response_text(written) for *_, written in spoken(one, stored)[2])]}


def test_analyst_of_a_scored_snapshot_is_sent_the_very_report_of_a_run() -> None:
    one = asked(SIMPLE, analysts=(ANALYST,), judges=())
    stored = all_replies(one)
    tables = scored(one, stored)
    one = replace(one, scored=tables, embedded=embedded_texts(one, stored))
    request = first_request(prepared(summary_material(tables, one.snapshot)), ANALYST)
    row = analyst_row(one, stored)
    assert (row.calls, row.prompt_tokens) == (1, sum(estimate_tokens(message.text) for message in request.messages))
    assert (row.response_tokens, row.response_tokens_most) == (2_000 + 80 * 26, 2 * (2_000 + 80 * 26))
    stored |= {request.key: "<topic>x</topic>"}
    assert (row := analyst_row(one, stored)).calls == row.calls_most == 1
    again = next_request(prepared(summary_material(tables, one.snapshot)), request, ["<topic>x</topic>"])
    assert again is not None
    assert row.prompt_tokens == sum(estimate_tokens(message.text) for message in again.messages)
    assert analyst_row(one, {**stored, again.key: "whatever"}).replayed == 1


def test_analyst_is_asked_again_where_the_report_is_another() -> None:
    """A summary of the snapshot was taken for an answer to whatever is asked now."""
    one = asked(SIMPLE, analysts=(ANALYST,), judges=())
    stored = all_replies(one)
    tables = scored(one, stored)
    one = replace(one, scored=tables, embedded=embedded_texts(one, stored))
    case = prepared(summary_material(tables, one.snapshot))
    first = first_request(case, ANALYST)
    again = next_request(case, first, [""])
    assert again is not None
    stored |= {first.key: "", again.key: ""}
    assert analyst_row(one, stored).calls == 0
    assert analyst_row(replace(one, scored=scored(one, stored, 0.25)), stored).calls == 1
    assert analyst_row(replace(one, scored=None), stored).calls == 1
    assert analyst_row(replace(one, embedded=()), stored).calls == 1
    assert analyst_row(one, {key: text + "!" if "says" in text else text for key, text in stored.items()}).calls == 1
    assert analyst_row(one, dict(list(stored.items())[1:])).calls == 1


def test_report_of_what_is_yet_to_be_said_is_as_long_as_one_of_responses_of_the_usual_length() -> None:
    """The estimate left out all but the texts."""
    one = asked(BLUEPRINT, analysts=(ANALYST,))
    known = all_replies(one, "word " * 400 + "{}")
    row, sure = analyst_row(one, {}), analyst_row(one, known)
    assert 0.95 < row.prompt_tokens / sure.prompt_tokens < 1.05
    assert row.prompt_tokens_most > sure.prompt_tokens_most
    assert (row.calls, row.calls_most) == (1, 2)
    endless = Models({"m": ModelSpec(name="m", model="openai/m", max_tokens=None)}, {})
    most = analyst_row(replace(one, candidates=Candidates(endless, ["m"])), {}).prompt_tokens_most
    assert most < 2 * (REPORT_CHARACTERS / 4 + 20_000)


def test_what_no_analyst_would_be_sent_is_no_request() -> None:
    nothing = made({"models": ["openai:m"]}, [{"id": "p", "prompt": "x" * (2 * REPORT_CHARACTERS), "should": ["y"]}])
    one = asked(nothing, analysts=(ANALYST,))
    assert analyst_row(one, {}).calls == 1  # cut
    blank = asked(SIMPLE, analysts=(ANALYST,), judges=())
    stored = all_replies(blank, " ")
    tables = scored(blank, stored)
    row = analyst_row(replace(blank, scored=tables, embedded={text_hash("Yes.")}), stored)
    assert (row.planned, row.requests, row.calls) == (1, 0, 0)
