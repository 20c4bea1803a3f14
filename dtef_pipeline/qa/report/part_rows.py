"""The rows of one part of a suite, as its pages show them: of each way of asking and model the snapshots that the boards are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.snapshot_order import in_order
from dtef_pipeline.report.stored_rows import StoredRow, StoredRows

ResponseName = tuple[str, str, str, int, str]
"""Item, condition, model variant, draw, snapshot: one response of a part."""
RunName = tuple[str, str, str]
"""Condition, model variant, snapshot."""
PartName = tuple[str, str]
"""Suite and part."""
_RESPONSE_NAMED = ("item_id", "condition", "model_variant", "draw", "snapshot")
_RESPONSE_TOLD = ("model", "call_status", "response", "error", "finish_reason")
_SCORE_TOLD = ("scorer", "metric", "measured_by", "status", "score", "how", "flags", "detail", "reason")
_JUDGEMENT_TOLD = (
    "evaluator",
    "judge_model",
    "judge_variant",
    "score",
    "reason",
    "explanation",
    "attempts",
    "raw",
    "error",
    "self_judged",
)
_EXECUTION_TOLD = ("verdict", "message", "wall_s", "isolation", "python", "flags")
_CITATION_TOLD = ("position", "source_index", "doc_id", "quote", "exact", "relaxed", "reason", "begin", "end")
_ITEM_TOLD = (
    "item_id",
    "position",
    "type",
    "scorers",
    "text",
    "options",
    "reference",
    "solution",
    "cluster",
    "quotes",
    "flags",
    "source_line",
)
_PROMPT_TOLD = ("item_id", "condition", "option_order", "n_examples")
_CONTEXT_TOLD = ("item_id", "condition", "rank", "doc_id", "relevance", "page_content", "problem", "holds_quote")
_RETRIEVAL_TOLD = ("item_id", "condition", "k", "n_relevant", "precision", "recall", "hit", "mrr", "ndcg")
_DOCUMENT_TOLD = ("doc_id", "page_content", "name", "project", "geography", "country", "month", "year")


class ShownRuns(NamedTuple):
    """Of each part the runs whose responses its pages show."""

    runs: Mapping[PartName, frozenset[RunName]]
    order: Sequence[str]
    """All snapshots of the family, the earliest first."""


@dataclass(slots=True)
class PartRows:
    """What is known of one part, by item or by response."""

    suite: str
    part: str
    items: Sequence[StoredRow]
    """In the order of the file; items that are no more and still have responses follow."""
    prompts: Mapping[str, Sequence[StoredRow]]
    context: Mapping[str, Sequence[StoredRow]]
    retrieval: Mapping[str, Sequence[StoredRow]]
    documents: Mapping[str, StoredRow]
    """By id."""
    responses: Mapping[str, Sequence[StoredRow]]
    scores: Mapping[ResponseName, Sequence[StoredRow]]
    judgements: Mapping[ResponseName, Sequence[StoredRow]] = field(default_factory=dict)
    executions: Mapping[ResponseName, Sequence[StoredRow]] = field(default_factory=dict)
    citations: Mapping[ResponseName, Sequence[StoredRow]] = field(default_factory=dict)


def part_names(rows: StoredRows) -> list[PartName]:
    """All parts that were read or scored, in order."""
    found = {
        (str(row["suite"]), str(row["part"]))
        for name in ("qa_items", "qa_scores")
        if {"suite", "part"} <= rows.columns(name)
        for row in rows.rows(f"(SELECT DISTINCT suite, part FROM {name})", ("suite", "part"), {})
    }
    return sorted(found)


def shown_runs(rows: StoredRows, latest: pa.Table, snapshot_order: Sequence[str]) -> ShownRuns:
    """The runs that boards are made of (`latest`: rows of `latest_scores`), and of what has no score the latest run.

    `snapshot_order`: the snapshots of the scores, the earliest first.
    """
    runs: dict[PartName, set[RunName]] = defaultdict(set)
    names = ("suite", "part", "condition", "model_variant", "snapshot")
    for suite, part, *run in _distinct(latest, names):
        runs[suite, part].add((run[0], run[1], run[2]))
    asked = (
        rows.table(f"(SELECT DISTINCT {', '.join(names)} FROM qa_responses)", names, {}) if rows.has("qa_responses") else None
    )
    order = list(snapshot_order)
    if asked is not None:
        others = {label: None for label in asked["snapshot"].to_pylist() if label not in order}
        order += in_order(others)
        place = {label: at for at, label in enumerate(order)}
        for suite, part, condition, variant, snapshot in sorted(_distinct(asked, names), key=lambda one: -place[one[4]]):
            if all(run[:2] != (condition, variant) for run in runs[suite, part]):
                runs[suite, part].add((condition, variant, snapshot))
    return ShownRuns({part: frozenset(own) for part, own in runs.items()}, order)


def _distinct(table: pa.Table, names: Sequence[str]) -> list[tuple[str, ...]]:
    plain = pa.table({name: pc.cast(table[name], pa.string()) for name in names})
    found = plain.group_by(list(names)).aggregate([])
    return list(zip(*(found[name].to_pylist() for name in names), strict=True))


def read_part(rows: StoredRows, name: PartName, runs: frozenset[RunName]) -> PartRows:
    """The rows of a part, of the responses those of the runs given."""
    where = {"suite": name[0], "part": name[1]}
    responses = _of_runs(rows, "qa_responses", (*_RESPONSE_NAMED, *_RESPONSE_TOLD), where, runs)
    items = rows.rows("qa_items", _ITEM_TOLD, where, ("position", "item_id"))
    known = {row["item_id"] for row in items}
    gone = dict.fromkeys(row["item_id"] for row in responses if row["item_id"] not in known)
    context = rows.rows("qa_context", _CONTEXT_TOLD, where, ("item_id", "condition", "rank"))
    return PartRows(
        *name,
        items=[*items, *({**dict.fromkeys(_ITEM_TOLD), "item_id": item} for item in gone)],
        prompts=_by_item(rows.rows("qa_prompts", _PROMPT_TOLD, where, ("item_id", "condition"))),
        context=_by_item(context),
        retrieval=_by_item(rows.rows("qa_retrieval", _RETRIEVAL_TOLD, where, ("item_id", "condition"))),
        documents=_documents(rows, where, context),
        responses=_by_item(responses),
        scores=_by_response(_of_runs(rows, "qa_scores", (*_RESPONSE_NAMED, *_SCORE_TOLD), where, runs)),
        judgements=_by_response(_of_runs(rows, "qa_judgements", (*_RESPONSE_NAMED, *_JUDGEMENT_TOLD), where, runs)),
        executions=_by_response(_of_runs(rows, "qa_executions", (*_RESPONSE_NAMED, *_EXECUTION_TOLD), where, runs)),
        citations=_by_response(_of_runs(rows, "qa_citations", (*_RESPONSE_NAMED, *_CITATION_TOLD), where, runs)),
    )


def _documents(rows: StoredRows, where: Mapping[str, str], context: Iterable[StoredRow]) -> dict[str, StoredRow]:
    """The chunks that were shown to a model."""
    shown = {row["doc_id"] for row in context if row["doc_id"] is not None and row["page_content"] is None}
    if not shown:
        return {}
    found = rows.table("qa_documents", _DOCUMENT_TOLD, where, ("doc_id",))
    kept = found.filter(pc.is_in(found["doc_id"], pa.array(sorted(shown), pa.string())))
    return {row["doc_id"]: row for row in kept.to_pylist()}


def _of_runs(
    rows: StoredRows, table: str, wanted: Sequence[str], where: Mapping[str, str], runs: frozenset[RunName]
) -> list[StoredRow]:
    order = (
        "item_id",
        "condition",
        "model_variant",
        "draw",
        "snapshot",
        "position",
        "metric",
        "measured_by",
        "evaluator",
        "judge_variant",
    )
    found = rows.rows(table, wanted, where, order)
    return [row for row in found if (row["condition"], row["model_variant"], row["snapshot"]) in runs]


def _by_item(found: Iterable[StoredRow]) -> dict[str, list[StoredRow]]:
    held: dict[str, list[StoredRow]] = defaultdict(list)
    for row in found:
        held[row["item_id"]].append(row)
    return held


def _by_response(found: Iterable[StoredRow]) -> dict[ResponseName, list[StoredRow]]:
    held: dict[ResponseName, list[StoredRow]] = defaultdict(list)
    for row in found:
        held[response_name(row)].append(row)
    return held


def response_name(row: StoredRow) -> ResponseName:
    """What a response is found by in the other tables."""
    return (row["item_id"], row["condition"], row["model_variant"], row["draw"], row["snapshot"])
