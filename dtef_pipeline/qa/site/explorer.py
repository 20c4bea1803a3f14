"""Data of the item explorer: an index of all items of a suite, their words, and the details of items in files of several items each."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dtef_pipeline.identity import digest
from dtef_pipeline.qa.score_rows import ANSWERED_CALL
from dtef_pipeline.qa.site.qa_labels import format_metric, format_part_title, format_qa_condition, scorer_words
from dtef_pipeline.qa.site.suite_scores import RUN_OF_A_PART, SHOWN_RUNS, BoardMeasure, QaScores, Scores, SuiteScores
from dtef_pipeline.report.row_reader import StoredRow
from dtef_pipeline.site.content import DataFile
from dtef_pipeline.site.number_text import show
from dtef_pipeline.site.paths import address_id

RESPONSE_CHARACTERS, ITEM_CHARACTERS, CHUNK_CHARACTERS, OTHER_CHARACTERS = 2_000, 8_000, 6_000, 800
"""Largest number of characters of a response; of a question, options and expected answer; of a passage; of any other text."""
_BATCH = "batch_of_qa_items"
_RESPONSE_NAME = ("at", "condition", "model_variant", "draw", "snapshot")
"""Columns that identify a response; `at`: the place of its item in the suite."""


class _StoredPart(NamedTuple):
    """Rows that belong to an item or one of its responses."""

    table: str
    columns: str
    """Names of columns, with the number of characters to keep of a text, or of each text of a list, after a colon."""
    order: tuple[str, ...] = ()
    is_large: bool = True
    """Whether they are read only for items whose responses are kept."""
    computed: tuple[str, ...] = ()
    """Further columns: `name=expression`."""

    @property
    def column_queries(self) -> list[str]:
        """The columns in the form of `StoredRows`."""
        return [*(_build_column_query(*column.split(":")) for column in self.columns.split()), *self.computed]


def _build_column_query(name: str, limit: str = "", lists: str = "") -> str:
    if lists:
        return f"{name}=[left(one, {limit}) FOR one IN {name}]"
    return f"{name}=CASE WHEN length({name}) > {limit} THEN left({name}, {limit} - 1) || '…' ELSE {name} END" if limit else name


_NAMES_OF_RESPONSE = " ".join(_RESPONSE_NAME)
_ITEM_ROWS = _StoredPart(
    "qa_items",
    f"at type text:{ITEM_CHARACTERS} options:{ITEM_CHARACTERS}:list reference solution:800 quotes flags source_line",
    ("position",),
    is_large=False,
)
_PROMPT_ROWS = _StoredPart("qa_prompts", "at condition option_order", ("condition",), is_large=False)
_CONTEXT_ROWS = _StoredPart(
    "qa_context",
    f"at part condition rank doc_id contains_quote problem page_content:{CHUNK_CHARACTERS}",
    ("condition", "rank"),
)
_RESPONSE_ROWS = _StoredPart(
    "qa_responses",
    f"{_NAMES_OF_RESPONSE} call_status finish_reason error:800",
    _RESPONSE_NAME,
    is_large=False,
    computed=("length=length(response)", f"text=CASE WHEN is_kept THEN left(response, {RESPONSE_CHARACTERS}) END"),
)
_SCORE_ROWS = _StoredPart(
    "qa_scores",
    f"{_NAMES_OF_RESPONSE} scorer metric measured_by status score read_by flags detail:800 reason:800",
    ("metric", "measured_by"),
    is_large=False,
)
_RESPONSE_PARTS = {
    "judged": _StoredPart(
        "qa_judgements",
        f"{_NAMES_OF_RESPONSE} evaluator judge_model score reason explanation:800 attempts error:800 self_judged",
        ("evaluator", "judge_variant"),
        computed=("raw=CASE WHEN score IS NULL THEN [left(one, 800) FOR one IN raw] END",),
    ),
    "run": _StoredPart("qa_executions", f"{_NAMES_OF_RESPONSE} verdict message:{RESPONSE_CHARACTERS} wall_s isolation python"),
    "quoted": _StoredPart(
        "qa_citations",
        f"{_NAMES_OF_RESPONSE} source_index:800 doc_id quote:800 exact relaxed reason begin end",
        ("position",),
    ),
}
_DOCUMENT_ROWS = _StoredPart(
    "qa_documents", f"part doc_id page_content:{CHUNK_CHARACTERS} name project geography country month year"
)


@dataclass(frozen=True)
class _Places:
    """Values shared by responses: each is in the index once, and responses refer to it by its place."""

    models: Mapping[str, int]
    conditions: Mapping[str, int]
    measures: Mapping[BoardMeasure, int]


class BatchItem(NamedTuple):
    """An item to read: its place in the suite, its part and id, and whether its responses' texts are kept."""

    at: int
    part: str
    item_id: str
    is_kept: bool


class ItemEntry(NamedTuple):
    """The explorer's details of an item, and the passages shown with it, by id."""

    entry: dict[str, Any]
    documents: dict[str, dict[str, Any]]


class ItemReader:
    """A suite's item reader."""

    def __init__(self, scores: QaScores, suite: SuiteScores, conditions: Sequence[str]) -> None:
        self._scores, self._suite = scores, suite
        self._places = _Places(_index_names(suite.models), _index_names(conditions), _index_names(suite.scores))

    def read(self, batch: Sequence[BatchItem]) -> Iterator[ItemEntry]:
        """Read the items of a batch, in their order."""
        columns = zip(BatchItem._fields, zip(*batch, strict=True), strict=True)
        self._scores.connection.register(_BATCH, pa.table({name: list(values) for name, values in columns}))
        responses, questions, chunks = self._collect_responses(), defaultdict(list), defaultdict(list)
        for row in self._rows(_CONTEXT_ROWS):
            chunks[row["at"], row["condition"]].append(row)
        for row in self._rows(_PROMPT_ROWS):
            if (row["condition"] or "") in self._places.conditions:
                questions[row["at"]].append(self._describe_item(row, chunks[row["at"], row["condition"]]))
        rows = {row["at"]: row for row in self._rows(_ITEM_ROWS)}
        self._scores.connection.unregister(_BATCH)
        for item in batch:
            entry = _build_entry(item, rows.get(item.at, {}), questions[item.at], responses[item.at])
            doc_ids = {chunk["doc_id"] for question in questions[item.at] for chunk in question.get("chunks", ())}
            names = [name for name in sorted(doc_ids) if (item.part, name) in self._documents]
            yield ItemEntry(entry, {name: self._documents[item.part, name] for name in names})

    @cached_property
    def _documents(self) -> dict[tuple[str, str], dict[str, Any]]:
        """The passages of the suite that were shown with any item, by part and id."""
        rows = self._scores.rows
        if not rows.has("qa_documents") or not rows.has("qa_context"):
            return {}
        source = "(SELECT * FROM qa_documents SEMI JOIN qa_context USING (suite, part, doc_id))"
        records = rows.rows(source, _DOCUMENT_ROWS.column_queries, {"suite": self._suite.suite})
        return {(str(row["part"]), row["doc_id"]): _build_document(row) for row in records}

    def _rows(self, rows: _StoredPart) -> list[StoredRow]:
        """Return the rows of the batch, with responses only of the runs that are shown."""
        columns = self._scores.rows.columns(rows.table)
        if not columns:
            return []
        runs = f"SEMI JOIN {SHOWN_RUNS} USING ({', '.join(RUN_OF_A_PART)})" if {*RUN_OF_A_PART} <= columns else ""
        where = "WHERE is_kept" if rows.is_large else ""
        source = f"(SELECT * FROM {rows.table} JOIN {_BATCH} USING (part, item_id) {runs} {where})"
        return self._scores.rows.rows(source, rows.column_queries, {"suite": self._suite.suite}, rows.order)

    def _collect_responses(self) -> dict[int, list[dict[str, Any]]]:
        """Collect the responses by item, those of the best model first."""
        scores = _group_by_response(self._rows(_SCORE_ROWS))
        details = {name: _group_by_response(self._rows(rows)) for name, rows in _RESPONSE_PARTS.items()}
        responses: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in self._rows(_RESPONSE_ROWS):
            named = tuple(row[name] for name in _RESPONSE_NAME)
            extras = {name: [_drop_names(entry) for entry in rows.get(named, ())] for name, rows in details.items()}
            responses[row["at"]].append(self._build_response(row, scores.get(named, ()), extras))
        for item_responses in responses.values():
            item_responses.sort(key=lambda response: (response["model"], response["condition"], response.get("draw", 0)))
        return responses

    def _describe_item(self, row: StoredRow, chunks: Sequence[StoredRow]) -> dict[str, Any]:
        """Describe how an item was shown: the order of its options, and the passages."""
        return _drop_empty(
            condition=self._places.conditions[row["condition"] or ""],
            order=row["option_order"],
            problem=next((chunk["problem"] for chunk in chunks if chunk["problem"]), None),
            chunks=[_drop_names(chunk, "part", "problem") for chunk in chunks if chunk["doc_id"] is not None],
        )

    def _build_response(
        self, row: StoredRow, scores: Sequence[StoredRow], details: Mapping[str, list[dict[str, Any]]]
    ) -> dict[str, Any]:
        length = row["length"] or 0
        return _drop_empty(
            model=self._places.models[row["model_variant"]],
            condition=self._places.conditions[row["condition"] or ""],
            draw=row["draw"] or None,
            snapshot=row["snapshot"],
            text=row["text"],
            length=length if length > RESPONSE_CHARACTERS else None,
            state=None if row["call_status"] == ANSWERED_CALL else row["call_status"],
            ended=None if row["finish_reason"] == "stop" else row["finish_reason"],
            error=row["error"],
            scores=sorted((self._score(score) for score in scores), key=lambda score: int(score["measure"])),
            **details,
        )

    def _score(self, row: StoredRow) -> dict[str, Any]:
        measure = BoardMeasure(*(row[name] or "" for name in BoardMeasure._fields))
        fields = _drop_names(row, "metric", "measured_by", "status")
        return {
            "measure": self._places.measures[measure],
            **({} if row["status"] == "ok" else {"status": row["status"]}),
            **fields,
        }


def _index_names(names: Iterable[Any]) -> dict[Any, int]:
    return {name: index for index, name in enumerate(names)}


def _group_by_response(rows: Iterable[StoredRow]) -> dict[tuple[Any, ...], list[StoredRow]]:
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in _RESPONSE_NAME)].append(row)
    return groups


def _build_entry(
    item: BatchItem, row: StoredRow, questions: list[dict[str, Any]], responses: list[dict[str, Any]]
) -> dict[str, Any]:
    fields = _drop_names(row, "reference", *(() if item.is_kept else ("solution", "quotes")))
    entry = _drop_empty(id=item.item_id, expected=_format_expected(row), asked=questions, said=responses, **fields)
    return entry if item.is_kept else {**entry, "left_out": True}


def _format_expected(row: StoredRow) -> str | None:
    """Format the expected answer for people; for programs, the tests from the JSON."""
    reference = row.get("reference")
    if row.get("type") != "code" or not reference:
        return None if reference is None else str(reference)[:ITEM_CHARACTERS]
    try:
        content = json.loads(reference)
    except ValueError:
        content = None
    tests = content.get("test") if isinstance(content, dict) else None
    return (tests if isinstance(tests, str) else str(reference))[:ITEM_CHARACTERS]


def _build_document(row: StoredRow) -> dict[str, Any]:
    heading = ", ".join(str(row[name]) for name in ("name", "project", "geography", "country", "month", "year") if row[name])
    return _drop_empty(about=heading[:OTHER_CHARACTERS], text=row["page_content"])


def _drop_names(row: StoredRow, *names: str) -> dict[str, Any]:
    """Return a row without its key columns and `without`."""
    return _drop_empty(**{name: value for name, value in row.items() if name not in _RESPONSE_NAME and name not in names})


def _drop_empty(**fields: Any) -> dict[str, Any]:
    """Return the fields that are neither empty nor false; 0 is kept."""
    return {
        name: value for name, value in fields.items() if value is not None and value is not False and value not in ("", [], {})
    }


KEPT_CHARACTERS = 40_000_000
"""Largest number of characters in texts of responses and judges on the site; beyond it only a sample of the items has texts."""
FILE_ITEMS, FILE_RESPONSES = 100, 1_200
"""Largest number of items in one file, and number of responses after which the next file begins."""
_BATCH_ITEMS = 1_000
_SAMPLED_ITEMS = 8
"""Number of items on the page of the suite itself."""


def compute_kept_share(scores: QaScores, budget: int = KEPT_CHARACTERS) -> float:
    """Return the share of the items whose responses are kept, 0-1: 1 if their texts have at most `budget` characters."""
    total = 0
    for table, text, limit in (
        ("qa_responses", "response", RESPONSE_CHARACTERS),
        ("qa_judgements", "explanation", OTHER_CHARACTERS),
    ):
        if scores.rows.has(table):
            source = f"{table} SEMI JOIN {SHOWN_RUNS} USING ({', '.join(RUN_OF_A_PART)})"
            total += scores.connection.sql(f"SELECT coalesce(sum(least(length({text}), {limit})), 0) FROM {source}").fetchall()[
                0
            ][0]
    return min(1.0, budget / total) if total else 1.0


def is_kept(suite: str, item: str, share: float) -> bool:
    """Return whether an item is in the sample, which does not depend on row order and has all items at share 1."""
    return share >= 1 or int(digest("qa site", suite, item)[:8], 16) / 16**8 < share


def build_explorer_files(scores: QaScores, suite: SuiteScores, share: float) -> Iterator[DataFile]:
    """Build every data file of a suite's explorer."""
    folder = f"qa/suites/{suite.file}"
    conditions = _list_conditions(scores, suite)
    firsts, first = [], 0
    for number, (entries, documents) in enumerate(_group_items(_iterate_items(scores, suite, conditions, share)), 1):
        yield DataFile(f"{folder}/items-{number}.js", {"items": entries, "documents": documents})
        firsts.append(first)
        first += len(entries)
    yield DataFile(f"{folder}/words.js", list(suite.items["words"]))
    yield DataFile(f"{folder}/index.js", _build_index(scores, suite, conditions, firsts))


def _list_conditions(scores: QaScores, suite: SuiteScores) -> list[str]:
    rows = scores.connection.execute(f"SELECT DISTINCT condition FROM {SHOWN_RUNS} WHERE suite = ?", [suite.suite]).fetchall()
    return sorted({str(row[0] or "") for row in rows} | {measure.condition for measure in suite.scores})


def _iterate_items(scores: QaScores, suite: SuiteScores, conditions: Sequence[str], share: float) -> Iterator[ItemEntry]:
    """Yield the details of each item, in order."""
    reader = ItemReader(scores, suite, conditions)
    named = zip(suite.items["part"].astype(str), suite.items["item_id"].astype(str), strict=True)
    items = [BatchItem(index, part, item, is_kept(suite.suite, item, share)) for index, (part, item) in enumerate(named)]
    for begin in range(0, len(items), _BATCH_ITEMS):
        yield from reader.read(items[begin : begin + _BATCH_ITEMS])


def sample_items(scores: QaScores, suite: SuiteScores, share: float) -> list[dict[str, Any]]:
    """Return a few items, chosen by a hash of their ids, with names in place of numbers, for the page of a suite without scripts."""
    named = enumerate(zip(suite.items["part"].astype(str), suite.items["item_id"].astype(str), strict=True))
    items = [BatchItem(index, part, item, True) for index, (part, item) in named if is_kept(suite.suite, item, share)]
    picks = sorted(items, key=lambda pick: digest("without scripts", suite.suite, pick.item_id))[:_SAMPLED_ITEMS]
    if not picks:
        return []
    conditions, measures = _list_conditions(scores, suite), list(suite.scores)
    contents = ItemReader(scores, suite, conditions).read(sorted(picks))
    return [
        {
            **content.entry,
            "line": suite.lines[item.at],
            "said": [_response(scores, suite, conditions, measures, response) for response in content.entry.get("said", ())],
        }
        for item, content in zip(sorted(picks), contents, strict=True)
    ]


def _response(
    scores: QaScores, suite: SuiteScores, labels: Sequence[str], measures: Sequence[BoardMeasure], response: Mapping[str, Any]
) -> dict[str, Any]:
    pairs = [(entry.get("score"), format_metric(measures[entry["measure"]].metric)) for entry in response.get("scores", ())]
    return {
        "model": scores.names[suite.models[response["model"]]],
        "condition": format_qa_condition(labels[response["condition"]]),
        "text": response.get("text"),
        "scores": [f"{metric} {show(score, 'number')}" for score, metric in pairs],
    }


def _group_items(items: Iterator[ItemEntry]) -> Iterator[tuple[list[dict[str, Any]], dict[str, Any]]]:
    """Group the items by FILE_ITEMS, or fewer if they reach FILE_RESPONSES; each group has a passage only once."""
    group: list[dict[str, Any]] = []
    documents: dict[str, Any] = {}
    responses = 0
    for item in items:
        group.append(item.entry)
        documents |= item.documents
        responses += len(item.entry.get("said", ()))
        if len(group) == FILE_ITEMS or responses >= FILE_RESPONSES:
            yield group, documents
            group, documents, responses = [], {}, 0
    if group:
        yield group, documents


def _build_index(scores: QaScores, suite: SuiteScores, conditions: Sequence[str], firsts: Sequence[int]) -> dict[str, Any]:
    parts = list(dict.fromkeys(suite.items["part"]))
    place = {part: index for index, part in enumerate(parts)}
    return {
        "models": [scores.names[variant] for variant in suite.models],
        "conditions": [format_qa_condition(condition) for condition in conditions],
        "parts": [[part, format_part_title(part)] for part in parts],
        "measures": [
            {
                "id": address_id(*measure),
                "metric": format_metric(measure.metric),
                "key": measure.metric,
                "condition": conditions.index(measure.condition),
                "by": scorer_words(measure.measured_by),
            }
            for measure in suite.scores
        ],
        "ids": list(suite.items["item_id"]),
        "part": [place[part] for part in suite.items["part"]],
        "lines": suite.lines,
        "scores": [[_compress_scores(row) for row in grid] for grid in suite.scores.values()],
        "firsts": list(firsts),
    }


def _compress_scores(row: Scores) -> list[float | None] | None:
    """Return the scores of a model, whole numbers without decimals, or None without responses."""
    if np.isnan(row).all():
        return None
    return [None if score != score else int(score) if score == int(score) else score for score in row.tolist()]
