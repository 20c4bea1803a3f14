"""Data of the item explorer: an index of all items of a suite, their words, and the details of items in files of several items each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dtef_pipeline.identity import digest
from dtef_pipeline.qa.site.explorer_items import OTHER_CHARACTERS, RESPONSE_CHARACTERS, BatchItem, ItemEntry, ItemReader
from dtef_pipeline.qa.site.qa_labels import format_metric, format_part_title, format_way, scorer_words
from dtef_pipeline.qa.site.suite_scores import RUN_OF_A_PART, SHOWN_RUNS, BoardMeasure, QaScores, Scores, SuiteScores
from dtef_pipeline.site.content import DataFile
from dtef_pipeline.site.number_text import show
from dtef_pipeline.site.paths import address_id

KEPT_CHARACTERS = 40_000_000
"""Largest number of characters in texts of responses and judges on the site; beyond it only a sample of the items has texts."""
FILE_ITEMS, FILE_RESPONSES = 100, 1_200
"""Largest number of items in one file, and number of responses after which the next file begins."""
_BATCH_ITEMS = 1_000
_SAMPLED_ITEMS = 8
"""Number of items on the page of the suite itself."""


def compute_kept_share(scores: QaScores, most: int = KEPT_CHARACTERS) -> float:
    """Return the share of the items whose responses are kept, 0-1: 1 if their texts have at most `most` characters."""
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
    return min(1.0, most / total) if total else 1.0


def is_kept(suite: str, item: str, share: float) -> bool:
    """Return whether an item is in the sample, which does not depend on row order and has all items at share 1."""
    return share >= 1 or int(digest("qa site", suite, item)[:8], 16) / 16**8 < share


def build_explorer_files(scores: QaScores, suite: SuiteScores, share: float) -> Iterator[DataFile]:
    """Build every data file of a suite's explorer."""
    folder = f"qa/suites/{suite.file}"
    ways = _list_ways(scores, suite)
    firsts, first = [], 0
    for number, (entries, documents) in enumerate(_group_items(_iterate_items(scores, suite, ways, share)), 1):
        yield DataFile(f"{folder}/items-{number}.js", {"items": entries, "documents": documents})
        firsts.append(first)
        first += len(entries)
    yield DataFile(f"{folder}/words.js", list(suite.items["words"]))
    yield DataFile(f"{folder}/index.js", _build_index(scores, suite, ways, firsts))


def _list_ways(scores: QaScores, suite: SuiteScores) -> list[str]:
    rows = scores.connection.execute(f"SELECT DISTINCT condition FROM {SHOWN_RUNS} WHERE suite = ?", [suite.suite]).fetchall()
    return sorted({str(row[0] or "") for row in rows} | {measure.condition for measure in suite.scores})


def _iterate_items(scores: QaScores, suite: SuiteScores, ways: Sequence[str], share: float) -> Iterator[ItemEntry]:
    """Yield the details of each item, in order."""
    reader = ItemReader(scores, suite, ways)
    named = zip(suite.items["part"].astype(str), suite.items["item_id"].astype(str), strict=True)
    items = [BatchItem(at, part, item, is_kept(suite.suite, item, share)) for at, (part, item) in enumerate(named)]
    for begin in range(0, len(items), _BATCH_ITEMS):
        yield from reader.read(items[begin : begin + _BATCH_ITEMS])


def sample_items(scores: QaScores, suite: SuiteScores, share: float) -> list[dict[str, Any]]:
    """Return a few items, chosen by a hash of their ids, with names in place of numbers, for the page of a suite without scripts."""
    named = enumerate(zip(suite.items["part"].astype(str), suite.items["item_id"].astype(str), strict=True))
    items = [BatchItem(at, part, item, True) for at, (part, item) in named if is_kept(suite.suite, item, share)]
    picks = sorted(items, key=lambda pick: digest("without scripts", suite.suite, pick.item_id))[:_SAMPLED_ITEMS]
    if not picks:
        return []
    ways, measures = _list_ways(scores, suite), list(suite.scores)
    contents = ItemReader(scores, suite, ways).read(sorted(picks))
    return [
        {
            **content.entry,
            "line": suite.lines[item.at],
            "said": [_response(scores, suite, ways, measures, response) for response in content.entry.get("said", ())],
        }
        for item, content in zip(sorted(picks), contents, strict=True)
    ]


def _response(
    scores: QaScores, suite: SuiteScores, ways: Sequence[str], measures: Sequence[BoardMeasure], response: Mapping[str, Any]
) -> dict[str, Any]:
    pairs = [(entry.get("score"), format_metric(measures[entry["measure"]].metric)) for entry in response.get("scores", ())]
    return {
        "model": scores.names[suite.models[response["model"]]],
        "way": format_way(ways[response["way"]]),
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


def _build_index(scores: QaScores, suite: SuiteScores, ways: Sequence[str], firsts: Sequence[int]) -> dict[str, Any]:
    parts = list(dict.fromkeys(suite.items["part"]))
    place = {part: at for at, part in enumerate(parts)}
    return {
        "models": [scores.names[variant] for variant in suite.models],
        "ways": [format_way(way) for way in ways],
        "parts": [[part, format_part_title(part)] for part in parts],
        "measures": [
            {
                "id": address_id(*measure),
                "metric": format_metric(measure.metric),
                "key": measure.metric,
                "way": ways.index(measure.condition),
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
