"""What analysts will be asked about a blueprint: the very request where responses and scores are known, else one that is as long.

Either is made by the code that makes it in a run. Of a response that is yet to be had there is a stand-in of its expected length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Message, Request
from dtef_pipeline.errors import ConfigError, NameLeak
from dtef_pipeline.judging.call_ledger import CallLedger, PlannedCalls, tokens_of
from dtef_pipeline.rubric.analyst_report import ReportedResponse, SummaryMaterial
from dtef_pipeline.rubric.anonymise import Participant
from dtef_pipeline.rubric.conversations import EMPTY, OK
from dtef_pipeline.rubric.summary import (
    ANALYST_ROLE,
    REPORT_CHARACTERS,
    SummaryCase,
    first_request,
    from_nothing,
    next_request,
    prepared,
)
from dtef_pipeline.rubric.summary_rows import MaterialTables, reported_prompts, shared_systems, summary_material

_STAND_IN_WORD = "say "
"""A token by `estimate_tokens`, and about as many characters as one of prose has."""
_ANY_SCORE = 0.0


@dataclass(frozen=True, slots=True)
class ExpectedReport:
    """A report of which some is yet to be had."""

    responses: Mapping[str, Sequence[ReportedResponse]]
    """By prompt, as of `expected_response`."""
    longer: float = 0.0
    """Tokens by which the responses that are yet to be had may be longer altogether."""
    called: tuple[str, ...] = ()
    """Names of the models."""


def expected_response(participant: Participant, text: str, more: float) -> ReportedResponse:
    """A response that begins with what is known of it. `more`: tokens that are still to be written."""
    filled = text + _STAND_IN_WORD * round(more)
    return ReportedResponse(participant, filled or None, _ANY_SCORE, _ANY_SCORE, None if filled else EMPTY)


def is_report_of(responses: pa.Table, texts: Mapping[str, Sequence[str]]) -> bool:
    """Whether the rows of `rubric_responses` have these texts, by prompt and in any order, and no others."""
    rows = responses.filter(pc.equal(responses["status"], OK))
    found = Counter(zip(rows["prompt"].to_pylist(), rows["text"].to_pylist(), strict=True))
    return found == Counter((prompt, text) for prompt, own in texts.items() for text in own)


def plan_known_summary(tables: MaterialTables, snapshot: str, analysts: Sequence[ModelSpec], ledger: CallLedger) -> None:
    """Enter what analysts are asked about a snapshot whose responses and scores are those that they will be shown."""
    has_texts = tables.responses["text"].null_count < len(tables.responses)
    case = _case(summary_material(tables, snapshot)) if has_texts else None
    for analyst in analysts:
        row = _planned(analyst, ledger)
        if case is not None:
            _enter(case, first_request(case, analyst), row, ledger)


def plan_summary(
    blueprint: str,
    snapshot: str,
    prompts: pa.Table,
    criteria: pa.Table,
    report: ExpectedReport,
    analysts: Sequence[ModelSpec],
    ledger: CallLedger,
) -> None:
    """Enter what analysts are asked about a blueprint of which something is yet to be had. Tables: `rubric_prompts`, `rubric_criteria`."""
    told = reported_prompts(prompts, criteria, report.responses)
    case = _case(SummaryMaterial(blueprint, snapshot, "", told, shared_systems(prompts), report.called))
    for analyst in analysts:
        row = _planned(analyst, ledger)
        if case is None:
            continue
        request = first_request(case, analyst)
        longer = min(report.longer, max(0, REPORT_CHARACTERS - len(case.report.text)) / len(_STAND_IN_WORD))
        row.requests += 1
        _send(case, request, row, longer)


def _planned(analyst: ModelSpec, ledger: CallLedger) -> PlannedCalls:
    row = ledger.row(ANALYST_ROLE, analyst)
    row.planned += 1
    return row


def _case(material: SummaryMaterial) -> SummaryCase | None:
    """None: the report would not be sent."""
    try:
        return prepared(material) if material.participants else None
    except (NameLeak, ConfigError):
        return None


def _enter(case: SummaryCase, first: Request, row: PlannedCalls, ledger: CallLedger) -> None:
    """The request, unless it was answered; then the one for what the reply lacks, unless that was answered too."""
    row.requests += 1
    reply = ledger.stored.texts([first.key]).get(first.key)
    if reply is None:
        _send(case, first, row)
        return
    again = next_request(case, first, [reply])
    if again is None or ledger.stored.known([again.key]):
        row.replayed += 1
        return
    row.send(1, _tokens(again.messages), again.answer_tokens or 0, _most(again))


def _send(case: SummaryCase, first: Request, row: PlannedCalls, longer: float = 0.0) -> None:
    prompt, most = _tokens(first.messages), _most(first)
    row.send(1, prompt, first.answer_tokens or 0, most)
    row.prompt_tokens_most += longer
    row.once_more(1, _tokens(from_nothing(case, first)) + longer + most, most)


def _tokens(messages: Sequence[Message]) -> int:
    return sum(tokens_of(message.text) for message in messages)


def _most(request: Request) -> float:
    return float("inf") if request.max_tokens is None else float(request.max_tokens)
