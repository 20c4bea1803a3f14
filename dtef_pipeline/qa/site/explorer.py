"""Data of the item explorer: an index of all items of a suite, their words, and the details of items in files of several items each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import pandas as pd

from dtef_pipeline.identity import digest
from dtef_pipeline.qa.scoring import ANSWERED_CALL
from dtef_pipeline.qa.site.qa_labels import (
    METRICS_FIRST,
    WORDS,
    format_metric,
    format_part_title,
    format_qa_condition,
    scorer_words,
)
from dtef_pipeline.qa.site.suite_scores import SHOWN_RUN, SHOWN_RUNS, QaScores, SuiteScores, build_cut_sql
from dtef_pipeline.site.content import DataFile
from dtef_pipeline.site.paths import address_id

RESPONSE_CHARACTERS, ITEM_CHARACTERS, CHUNK_CHARACTERS, OTHER_CHARACTERS = 2_000, 8_000, 6_000, 800
"""Largest number of characters of a response; of a question, options and expected answer; of a passage; of any other text."""
KEPT_CHARACTERS = 40_000_000
"""Largest number of characters in texts of responses and judges on the site; beyond it only a sample of the items has texts."""
FILE_ITEMS, FILE_RESPONSES = 100, 1_200
"""Largest number of items in one file, and number of responses from which a file has fewer items."""
_BATCH_ITEMS = 1_000
"""Number of items that are read at once."""
_SAMPLED_ITEMS = 8
"""Number of items on the page of the suite itself."""
_ITEM = "suite, part, item_id"
_RESPONSE = f"{SHOWN_RUN}, item_id, draw"
"""Columns that identify a response."""
_BATCH = "batch_of_qa_items"
"""Table of the connection with the items to read: `place`, suite, part, item_id, and `is_kept` (whether texts of responses are read)."""


def _cut(column: str, limit: int = OTHER_CHARACTERS) -> str:
    """Return SQL of a text with at most `limit` characters as a field of a structure."""
    return f"{column} := {build_cut_sql(column, limit)}"


_READ_ITEMS = f"""
    WITH kept AS (FROM {_BATCH} WHERE is_kept),
    scores AS (
        SELECT {_RESPONSE}, list(struct_pack(scorer, metric, measured_by, status := nullif(status, 'ok'), score, read_by, flags,
            {_cut("detail")}, {_cut("reason")})
            ORDER BY list_position({list(METRICS_FIRST)}, metric), metric, measured_by) AS scores
        FROM qa_scores SEMI JOIN {_BATCH} USING ({_ITEM}) GROUP BY ALL),
    judged AS (
        SELECT {_RESPONSE}, list(struct_pack(evaluator, judge_model, score, reason, attempts, self_judged,
            {_cut("explanation")}, {_cut("error")}, raw := CASE WHEN score IS NULL THEN [left(reply, {OTHER_CHARACTERS}) FOR reply IN raw] END)
            ORDER BY evaluator, judge_variant) AS judged
        FROM qa_judgements SEMI JOIN kept USING ({_ITEM}) GROUP BY ALL),
    run AS (
        SELECT {_RESPONSE}, list(struct_pack(verdict, {_cut("message", RESPONSE_CHARACTERS)}, wall_s, isolation, python)) AS run
        FROM qa_executions SEMI JOIN kept USING ({_ITEM}) GROUP BY ALL),
    quoted AS (
        SELECT {_RESPONSE}, list(struct_pack({_cut("source_index")}, doc_id, {_cut("quote")}, exact, relaxed, reason, "begin", "end")
            ORDER BY position) AS quoted
        FROM qa_citations SEMI JOIN kept USING ({_ITEM}) GROUP BY ALL),
    said AS (
        SELECT {_ITEM}, list(struct_pack(model := model_variant, condition, draw := nullif(draw, 0), snapshot,
            text := CASE WHEN is_kept THEN left(response, {RESPONSE_CHARACTERS}) END,
            length := CASE WHEN length(response) > {RESPONSE_CHARACTERS} THEN length(response) END,
            state := nullif(call_status, '{ANSWERED_CALL}'), ended := nullif(finish_reason, 'stop'), {_cut("error")},
            scores, judged, run, quoted)
            ORDER BY list_position($models, model_variant), condition, draw, snapshot) AS said
        FROM qa_responses SEMI JOIN {SHOWN_RUNS} USING ({SHOWN_RUN}) JOIN {_BATCH} USING ({_ITEM})
        LEFT JOIN scores USING ({_RESPONSE}) LEFT JOIN judged USING ({_RESPONSE})
        LEFT JOIN run USING ({_RESPONSE}) LEFT JOIN quoted USING ({_RESPONSE}) GROUP BY ALL),
    passages AS (
        SELECT {_ITEM}, condition, any_value(problem) AS problem, list(struct_pack(rank, doc_id, contains_quote,
            {_cut("page_content", CHUNK_CHARACTERS)}) ORDER BY rank) FILTER (doc_id IS NOT NULL) AS chunks
        FROM qa_context SEMI JOIN kept USING ({_ITEM}) GROUP BY ALL),
    asked AS (
        SELECT {_ITEM}, list(struct_pack(condition, "order" := option_order, problem, chunks) ORDER BY condition) AS asked
        FROM qa_prompts SEMI JOIN {_BATCH} USING ({_ITEM}) SEMI JOIN {SHOWN_RUNS} USING (suite, part, condition)
        LEFT JOIN passages USING ({_ITEM}, condition) GROUP BY ALL)
    SELECT item_id AS id, type, source_line, flags, NOT is_kept AS left_out, asked, said,
        {build_cut_sql("text", ITEM_CHARACTERS)} AS text, [left(option, {ITEM_CHARACTERS}) FOR option IN options] AS options,
        left(CASE WHEN type = 'code' THEN coalesce(try_cast(reference AS JSON)->>'test', reference) ELSE reference END,
            {ITEM_CHARACTERS}) AS expected,
        CASE WHEN is_kept THEN {build_cut_sql("solution", OTHER_CHARACTERS)} END AS solution,
        CASE WHEN is_kept THEN quotes END AS quotes
    FROM {_BATCH} LEFT JOIN qa_items USING ({_ITEM}) LEFT JOIN asked USING ({_ITEM}) LEFT JOIN said USING ({_ITEM}) ORDER BY place
"""
"""One row per item of the batch: what was asked, with options and passages, and what each model said, with how it was scored."""
_READ_PASSAGES = f"""
    SELECT part, doc_id, left(concat_ws(', ', nullif(name, ''), nullif(project, ''), nullif(geography, ''), nullif(country, ''),
        nullif(month, ''), year), {OTHER_CHARACTERS}) AS about, {build_cut_sql("page_content", CHUNK_CHARACTERS)} AS text
    FROM qa_documents SEMI JOIN qa_context USING (suite, part, doc_id) WHERE suite = ?
"""


def compute_kept_share(scores: QaScores, budget: int = KEPT_CHARACTERS) -> float:
    """Return the share of the items whose responses are kept, 0-1: 1 if their texts have at most `budget` characters."""
    ((total,),) = scores.connection.sql(f"""
        SELECT sum(length) FROM (
            SELECT {SHOWN_RUN}, least(length(response), {RESPONSE_CHARACTERS}) AS length FROM qa_responses
            UNION ALL SELECT {SHOWN_RUN}, least(length(explanation), {OTHER_CHARACTERS}) FROM qa_judgements
        ) SEMI JOIN {SHOWN_RUNS} USING ({SHOWN_RUN})""").fetchall()
    return min(1.0, budget / total) if total else 1.0


def is_kept(suite: str, item: str, share: float) -> bool:
    """Return whether an item is in the sample, which does not depend on row order and has all items at share 1."""
    return share >= 1 or int(digest("qa site", suite, item)[:8], 16) / 16**8 < share


def build_explorer_files(scores: QaScores, suite: SuiteScores, share: float) -> Iterator[DataFile]:
    """Build every data file of a suite's explorer."""
    folder = f"qa/suites/{suite.file}"
    counts = f"SELECT count(*), count(DISTINCT condition) FROM qa_responses SEMI JOIN {SHOWN_RUNS} USING ({SHOWN_RUN}) WHERE suite = ?"
    ((n_responses, n_conditions),) = scores.connection.sql(counts, params=[suite.suite]).fetchall()
    size = max(1, min(FILE_ITEMS, FILE_RESPONSES * len(suite.items) // max(1, n_responses)))
    rows = scores.connection.sql(_READ_PASSAGES, params=[suite.suite]).to_arrow_table().to_pylist()
    passages = {(row.pop("part"), row.pop("doc_id")): _drop_empty(row, {}) for row in rows}
    items = suite.items.assign(is_kept=[is_kept(suite.suite, item, share) for item in suite.items["item_id"]])
    entries = _read_items(scores, suite, items)
    for number, begin in enumerate(range(0, len(items), size), 1):
        group = list(islice(entries, size))
        shown: dict[str, Any] = {}
        for entry, part in zip(group, items["part"].iloc[begin : begin + size], strict=True):
            ids = [chunk["doc_id"] for asked in entry.get("asked", ()) for chunk in asked.get("chunks", ())]
            shown |= {name: passages[part, name] for name in ids if (part, name) in passages}
        yield DataFile(f"{folder}/items-{number}.js", {"items": group, "documents": shown})
    yield DataFile(f"{folder}/words.js", list(items["words"]))
    yield DataFile(f"{folder}/index.js", {**_build_index(scores, suite), "size": size, "conditions": n_conditions})


def sample_items(scores: QaScores, suite: SuiteScores, share: float) -> list[dict[str, Any]]:
    """Return a few items, chosen by a hash of their ids, for the page of a suite without scripts."""
    ids = [item for item in suite.items["item_id"] if is_kept(suite.suite, item, share)]
    picks = sorted(ids, key=lambda item: digest("without scripts", suite.suite, item))[:_SAMPLED_ITEMS]
    items = suite.items[suite.items["item_id"].isin(picks)]
    entries = _read_items(scores, suite, items.assign(is_kept=True))
    return [{**entry, "line": line} for entry, line in zip(entries, items["line"], strict=True)]


def _read_items(scores: QaScores, suite: SuiteScores, items: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Read the details of items, in their order."""
    words = {**WORDS, "model": scores.names.__getitem__}
    for begin in range(0, len(items), _BATCH_ITEMS):
        batch = items.iloc[begin : begin + _BATCH_ITEMS][["place", "part", "item_id", "is_kept"]]
        scores.connection.register(_BATCH, batch.assign(suite=suite.suite))
        rows = scores.connection.sql(_READ_ITEMS, params={"models": suite.models}).to_arrow_table().to_pylist()
        yield from (_drop_empty(row, words) for row in rows)


def _drop_empty(value: Any, words: Mapping[str, Callable[[str], str]]) -> Any:
    """Return a value without fields that are empty or false; 0 is kept. `words`: by field, the function that formats its values."""
    if isinstance(value, list):
        return [_drop_empty(part, words) for part in value]
    if not isinstance(value, dict):
        return value
    fields = {name: words[name](part) if part and name in words else _drop_empty(part, words) for name, part in value.items()}
    return {name: part for name, part in fields.items() if part is not None and part is not False and part not in ("", [], {})}


def _build_index(scores: QaScores, suite: SuiteScores) -> dict[str, Any]:
    """Build the list of items with the score of each model under each measure."""
    places = {part: place for place, part in enumerate(suite.parts)}
    labels = [", ".join(filter(None, (format_metric(key.metric), format_qa_condition(key.condition)))) for key in suite.keys]
    measures, grids = [], []
    for key, label in zip(suite.keys, labels, strict=True):
        scorer = f", {scorer_words(key.measured_by)}" if labels.count(label) > 1 else ""
        measures.append([address_id(*key[1:]), f"{label}{scorer}"])
        grid = key.select(suite.means).pivot_table("score", "model_variant", "place")
        grid = grid.reindex(index=suite.models, columns=suite.items["place"])
        grids.append(grid.astype(object).where(grid.notna(), None).to_numpy().tolist())
    return {
        "models": [scores.names[variant] for variant in suite.models],
        "parts": [[part, format_part_title(part)] for part in suite.parts],
        "measures": measures,
        "ids": list(suite.items["item_id"]),
        "part": [places[part] for part in suite.items["part"]],
        "lines": list(suite.items["line"]),
        "scores": grids,
    }
