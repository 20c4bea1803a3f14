"""The rows of one part of a suite, as its pages show them: of each way of asking and model the snapshots that the boards are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.snapshot_order import in_order
from dtef_pipeline.report.stored_rows import StoredRow, StoredRows

ResponseName = tuple[str, str, str, int, str]
"""Item, condition, model variant, draw, snapshot: one response of a part."""
RUN_OF_A_PART = ("suite", "part", "condition", "model_variant", "snapshot")
"""What tells the runs of all parts apart."""
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


def shown_runs(rows: StoredRows, latest: pa.Table, snapshot_order: Sequence[str]) -> pa.Table:
    """Columns RUN_OF_A_PART, one row per run: those that boards are made of, and of what has no score the latest run.

    `latest`: rows of `latest_scores`; `snapshot_order`: the snapshots of the scores, the earliest first.
    """
    runs = dict.fromkeys(_distinct(latest))
    if rows.has("qa_responses"):
        query = f"(SELECT DISTINCT {', '.join(RUN_OF_A_PART)} FROM qa_responses)"
        asked = _distinct(rows.table(query, RUN_OF_A_PART, {}))
        later = {run[-1]: None for run in asked if run[-1] not in set(snapshot_order)}
        place = {label: at for at, label in enumerate((*snapshot_order, *in_order(later)))}
        known = {run[:-1] for run in runs}
        for run in sorted(asked, key=lambda one: -place[one[-1]]):
            if run[:-1] not in known:
                known.add(run[:-1])
                runs[run] = None
    return pa.table({name: pa.array([run[at] for run in runs], pa.string()) for at, name in enumerate(RUN_OF_A_PART)})


def _distinct(table: pa.Table) -> list[tuple[str, ...]]:
    plain = pa.table({name: pc.cast(table[name], pa.string()) for name in RUN_OF_A_PART})
    found = plain.group_by(list(RUN_OF_A_PART)).aggregate([])
    return sorted(zip(*(found[name].to_pylist() for name in RUN_OF_A_PART), strict=True))


class SuiteTables:
    """The tables of one suite, each read once and handed out part by part; of responses those of the runs that are shown."""

    def __init__(self, rows: StoredRows, suite: str, shown: str) -> None:
        """`shown`: the name of a table of the connection with the rows of `shown_runs`."""
        self.suite = suite
        self._rows, self._shown = rows, shown
        self._tables: dict[str, tuple[pa.Table, dict[str, tuple[int, int]]]] = {}

    def of(self, name: str, part: str, wanted: Sequence[str], order: Sequence[str]) -> list[StoredRow]:
        """The wanted columns of the rows of a part, in order."""
        if name not in self._tables:
            source = name
            if set(RUN_OF_A_PART) <= self._rows.columns(name):
                source = f"(SELECT * FROM {name} SEMI JOIN {self._shown} USING ({', '.join(RUN_OF_A_PART)}))"
            held = self._rows.table(source, ("part", *wanted), {"suite": self.suite}, ("part", *order))
            self._tables[name] = held, _slices(held["part"].to_pylist())
        held, places = self._tables[name]
        found: list[StoredRow] = held.slice(*places.get(part, (0, 0))).to_pylist()
        return found


def _slices(sorted_parts: Sequence[str]) -> dict[str, tuple[int, int]]:
    """First row and number of rows of each part."""
    found, start = {}, 0
    for part, same in groupby(sorted_parts):
        length = sum(1 for _ in same)
        found[part] = start, length
        start += length
    return found


def read_part(tables: SuiteTables, part: str) -> PartRows:
    """The rows of a part, of the responses those of the runs that are shown."""
    responses = tables.of("qa_responses", part, (*_RESPONSE_NAMED, *_RESPONSE_TOLD), _RESPONSE_NAMED)
    items = tables.of("qa_items", part, _ITEM_TOLD, ("position", "item_id"))
    known = {row["item_id"] for row in items}
    gone = dict.fromkeys(row["item_id"] for row in responses if row["item_id"] not in known)
    context = tables.of("qa_context", part, _CONTEXT_TOLD, ("item_id", "condition", "rank"))
    return PartRows(
        tables.suite,
        part,
        items=[*items, *({**dict.fromkeys(_ITEM_TOLD), "item_id": item} for item in gone)],
        prompts=_by_item(tables.of("qa_prompts", part, _PROMPT_TOLD, ("item_id", "condition"))),
        context=_by_item(context),
        retrieval=_by_item(tables.of("qa_retrieval", part, _RETRIEVAL_TOLD, ("item_id", "condition"))),
        documents=_documents(tables, part, context),
        responses=_by_item(responses),
        scores=_told(tables, "qa_scores", part, _SCORE_TOLD, ("metric", "measured_by")),
        judgements=_told(tables, "qa_judgements", part, _JUDGEMENT_TOLD, ("evaluator", "judge_variant")),
        executions=_told(tables, "qa_executions", part, _EXECUTION_TOLD, ()),
        citations=_told(tables, "qa_citations", part, _CITATION_TOLD, ("position",)),
    )


def _documents(tables: SuiteTables, part: str, context: Iterable[StoredRow]) -> dict[str, StoredRow]:
    """The chunks that were shown to a model."""
    shown = {row["doc_id"] for row in context if row["doc_id"] is not None and row["page_content"] is None}
    found = tables.of("qa_documents", part, _DOCUMENT_TOLD, ("doc_id",)) if shown else []
    return {row["doc_id"]: row for row in found if row["doc_id"] in shown}


def _told(
    tables: SuiteTables, name: str, part: str, wanted: Sequence[str], order: Sequence[str]
) -> dict[ResponseName, list[StoredRow]]:
    """The rows of a table that tells of responses, by response."""
    held: dict[ResponseName, list[StoredRow]] = defaultdict(list)
    for row in tables.of(name, part, (*_RESPONSE_NAMED, *wanted), (*_RESPONSE_NAMED, *order)):
        held[response_name(row)].append(row)
    return held


def _by_item(found: Iterable[StoredRow]) -> dict[str, list[StoredRow]]:
    held: dict[str, list[StoredRow]] = defaultdict(list)
    for row in found:
        held[row["item_id"]].append(row)
    return held


def response_name(row: StoredRow) -> ResponseName:
    """What a response is found by in the other tables."""
    return (row["item_id"], row["condition"], row["model_variant"], row["draw"], row["snapshot"])
