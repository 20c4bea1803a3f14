"""The executive summary of a blueprint in one snapshot: the request, a second request for missing parts, and the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import pyarrow as pa

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Message, Request, Response
from dtef_pipeline.judging.hidden_names import collect_hidden_names
from dtef_pipeline.rubric.settings import REPORT_CHARACTERS
from dtef_pipeline.rubric.summaries.analyst_report import (
    DIMENSIONS,
    AnalystReply,
    AnalystReport,
    SummaryMaterial,
    build_analyst_messages,
    build_analyst_report,
    build_missing_messages,
    format_summary_text,
    read_replies,
    replace_refs,
)
from dtef_pipeline.rubric.summaries.anonymise import Pseudonyms, derive_summary_seed, draw_pseudonyms
from dtef_pipeline.tables import SNAPSHOT_FIELD, field
from dtef_pipeline.text.number_words import list_first_names

ANALYST_ROLE = "analyst"
SUMMARY_STATUSES = ("ok", "partial", "unreadable", "error", "budget")
"""All blocks are there; some are; none is; a call failed for good; a budget was reached before it."""
STATUSES_WITHOUT_REQUEST, NAME_LEFT = "none", "name left"
"""Statuses of a row without a request: there is no analyst or no response, or a name was still in the report."""

_FINDING_TOKENS = 2_000
_GRADE_TOKENS = 80
_MOST_REPLY_TOKENS = 16_000
"""Many models accept no larger limit. What a reply has no room for is requested once more."""

_BLUEPRINT_COLUMN = field("blueprint", pa.string(), "Blueprint of the summary")
_ANALYST_COLUMNS = (
    field("analyst", pa.string(), "Model that wrote the summary; null: no summary"),
    field(
        "analyst_variant",
        pa.string(),
        "Model string and sampling parameters of the analyst in the models file; a reply may be longer than its max_tokens",
    ),
)
SUMMARIES = pa.schema(
    [
        _BLUEPRINT_COLUMN,
        SNAPSHOT_FIELD,
        field("test_hash", pa.string(), "Hash of the prompts and criteria of the summary"),
        *_ANALYST_COLUMNS,
        field(
            "status",
            pa.string(),
            "Status of the summary: ok, partial, unreadable, error, budget, none (no request) or name left (in the report)",
        ),
        field("reason", pa.string(), "Why the summary is incomplete; null: it is complete"),
        field(
            "findings",
            pa.list_(pa.struct([pa.field("kind", pa.string()), pa.field("text", pa.string())])),
            "Key findings, strengths, weaknesses, patterns and topics, with names in place of opaque ids",
        ),
        field("n_grades", pa.int32(), "Readable grades"),
        field("n_dropped", pa.int32(), "Grades that do not count: of an unknown model or dimension, or given twice"),
        field("missing", pa.list_(pa.string()), "Missing blocks, by kind, or by opaque ids and dimension"),
        field("share", pa.float64(), "Share of each text shown to the analyst, 0-1; 1: the whole text"),
        field("max_tokens", pa.int32(), "Token limit of the first request, enough for all grades; null: no limit"),
        field("raw", pa.list_(pa.string()), "Replies, unchanged, with opaque ids"),
        field("request_keys", pa.list_(pa.string()), "Keys of the requests in the response store"),
    ]
)
"""One row per analyst of a blueprint in a snapshot."""
GRADES = pa.schema(
    [
        _BLUEPRINT_COLUMN,
        SNAPSHOT_FIELD,
        *_ANALYST_COLUMNS,
        field("model", pa.string(), "Model string without settings; all variants of a model share a grade"),
        field("dimension", pa.string(), f"Dimension: {', '.join(DIMENSIONS)}"),
        field("grade", pa.float64(), "Grade by the analyst, 1-10: higher is better; null: none"),
        field("reasoning", pa.string(), "Reason given by the analyst, with names in place of opaque ids"),
    ]
)
"""One row per analyst, model and dimension that was graded."""


@dataclass(frozen=True, slots=True)
class SummaryCase:
    """The material, the anonymous report, and the ids for mapping it back."""

    material: SummaryMaterial
    ids: Pseudonyms
    report: AnalystReport


@dataclass(frozen=True, slots=True)
class ExecutiveSummary:
    """The summary of one analyst."""

    status: str
    """One of `SUMMARY_STATUSES`."""
    reason: str | None
    """Why it is not whole; None: it is."""
    reply: AnalystReply
    raws: tuple[str, ...]
    """Replies as they came."""
    request_keys: tuple[str, ...]


def prepare_case(material: SummaryMaterial, size: int = REPORT_CHARACTERS) -> SummaryCase:
    """Draw ids, hide names, and build a report of at most `size` characters.

    Raises:
        ConfigError: the report does not fit even if cut.
        NameLeak: the report has a name of a maker, model or provider.
    """
    seed = derive_summary_seed(material.blueprint, material.snapshot, material.test_hash)
    ids = draw_pseudonyms(material.participants, seed)
    names = collect_hidden_names([participant.model for participant in material.participants], material.model_aliases)
    return SummaryCase(material, ids, build_analyst_report(material, ids, names, seed, size))


def build_summary_request(case: SummaryCase, analyst: ModelSpec) -> Request:
    """Return the request to an analyst, in the snapshot that it summarises."""
    return _request(build_analyst_messages(case.report.text, case.ids), case, analyst, len(case.ids.models) * len(DIMENSIONS))


def build_further_summary_request(case: SummaryCase, first: Request, replies: Sequence[str]) -> Request | None:
    """Return the second request, for the blocks that the first reply lacks, or None if there is none to make. `replies`: unedited texts."""
    if len(replies) != 1:
        return None
    missing = _read(case, replies).missing_blocks
    if not missing:
        return None
    return _request(build_missing_messages(first.messages, replies[0], missing), case, first.model, len(missing))


def _request(messages: Sequence[Message], case: SummaryCase, analyst: ModelSpec, grades: int) -> Request:
    room = count_reply_tokens(grades)
    return Request.build_request(messages, analyst, 0, case.material.snapshot, role=ANALYST_ROLE, answer_tokens=room)


def count_reply_tokens(grades: int) -> int:
    """Return the least token limit of a reply with this many grades, regardless of the model's limit."""
    return min(_MOST_REPLY_TOKENS, _FINDING_TOKENS + ceil(_GRADE_TOKENS * grades))


def _read(case: SummaryCase, replies: Sequence[str]) -> AnalystReply:
    return read_replies(tuple(replies), case.ids, case.report.prompts)


def resolve_summary(case: SummaryCase, outcomes: Sequence[Response | Failure]) -> ExecutiveSummary:
    """Return the summary from the outcomes of an analyst's requests, in order. Readable parts count, even if others are missing."""
    responses = [outcome for outcome in outcomes if isinstance(outcome, Response)]
    reply = _read(case, [response.text for response in responses])
    failure = next((outcome for outcome in reversed(outcomes) if isinstance(outcome, Failure)), None)
    status, reason = _find_summary_state(reply, responses, failure)
    keys = tuple(outcome.request_key for outcome in outcomes)
    return ExecutiveSummary(status, reason, reply, tuple(response.text for response in responses), keys)


def _find_summary_state(reply: AnalystReply, responses: Sequence[Response], failure: Failure | None) -> tuple[str, str | None]:
    if not responses:
        return (failure.status, failure.message) if failure else ("error", "was not sent")
    if not reply.missing_blocks:
        return "ok", None
    cut = "; the last reply was cut off by its token limit" if responses[-1].finish_reason == "length" else ""
    retry_note = f"; second request: {failure.message}" if failure else ""
    few = list_first_names(reply.missing_blocks, 5)
    if reply.findings or reply.grades:
        return "partial", f"without {few}{cut}{retry_note}"
    return "unreadable", f"no block in the requested form{cut}{retry_note}"


def build_summaries_table(case: SummaryCase, summaries: Mapping[ModelSpec, ExecutiveSummary]) -> pa.Table:
    """Return `SUMMARIES`: one row per analyst, in their order."""
    rows = [
        {
            **_identify_summary(case, analyst),
            "test_hash": case.material.test_hash,
            "status": summary.status,
            "reason": summary.reason,
            "findings": [
                {"kind": finding.kind, "text": format_summary_text(finding.text, case.material.names)}
                for finding in summary.reply.findings
            ],
            "n_grades": sum(grade.score is not None for grade in summary.reply.grades),
            "n_dropped": sum(summary.reply.dropped_grades.values()),
            "missing": list(summary.reply.missing_blocks),
            "share": case.report.share,
            "max_tokens": build_summary_request(case, analyst).max_tokens,
            "raw": list(summary.raws),
            "request_keys": list(summary.request_keys),
        }
        for analyst, summary in summaries.items()
    ]
    return pa.Table.from_pylist(rows, schema=SUMMARIES)


def build_grades_table(case: SummaryCase, summaries: Mapping[ModelSpec, ExecutiveSummary]) -> pa.Table:
    """Return `GRADES`: one row per analyst, model and dimension, in this order."""
    rows = [
        {
            **_identify_summary(case, analyst),
            "model": case.material.names.get(grade.model, grade.model),
            "dimension": grade.dimension,
            "grade": grade.score,
            "reasoning": format_summary_text(replace_refs(grade.reasoning, case.ids, case.report.prompts), case.material.names),
        }
        for analyst, summary in summaries.items()
        for grade in sorted(summary.reply.grades, key=lambda grade: (grade.model, list(DIMENSIONS).index(grade.dimension)))
    ]
    return pa.Table.from_pylist(rows, schema=GRADES)


def _identify_summary(case: SummaryCase, analyst: ModelSpec) -> dict[str, str]:
    names = {"analyst": analyst.name, "analyst_variant": analyst.variant}
    return {"blueprint": case.material.blueprint, "snapshot": case.material.snapshot, **names}
