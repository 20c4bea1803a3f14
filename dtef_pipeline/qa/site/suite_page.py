"""The page of a suite: models by part and by transcript, its hardest items, and every item to open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dtef_pipeline.qa.site.boards import SuiteBoard
from dtef_pipeline.qa.site.explorer import sample_items
from dtef_pipeline.qa.site.qa_labels import format_part_title, format_suite_title
from dtef_pipeline.qa.site.suite_scores import RIGHT_FROM, QaScores, SuiteScores
from dtef_pipeline.qa.site.validity_sections import build_comparison_section, build_retrieval_section
from dtef_pipeline.site.content import Column, Fold, Link, Page, Section, Table, TemplateBlock, is_unknown
from dtef_pipeline.site.leaderboard import describe_best_of_models
from dtef_pipeline.site.number_text import show
from dtef_pipeline.site.paths import board_page, state_address
from dtef_pipeline.text.number_words import format_count

MODELS_SHOWN, HARDEST_LISTED = 5, 40
"""Number of models in a table before `show all`; number of items in the list of the hardest."""
_HARDEST_COLUMNS = (
    Column("item", "Item"),
    Column("part", "Part"),
    Column("line", "Question", "long"),
    Column("right", "Right", always=True, meaning="Models with a score of 0.5 or more"),
    Column("score", "Mean", "score"),
)


def build_item_address(suite: SuiteScores, item: str) -> str:
    """Return the address of an item in the explorer of its suite."""
    return state_address(suite.page, item=item)


def suite_page(scores: QaScores, suite: SuiteScores, boards: Sequence[SuiteBoard], share: float) -> Page:
    """Build the page. `boards`: those of the suite, the main one first; `share`: share of the items whose responses are kept."""
    title = format_suite_title(suite.suite)
    main = boards[0] if boards else None
    exposure = (
        next((words for words in scores.board["exposure"][scores.board["suite"] == suite.suite] if words), "") if main else ""
    )
    answer = (
        describe_best_of_models(main.board)
        if main
        else f"{format_count(len(suite.items), 'item')}; no model is on a board yet."
    )
    sections = [
        *_build_cut_sections(scores, suite, boards),
        build_hardest_section(suite),
        _build_explorer_section(scores, suite, share),
        build_retrieval_section(scores, suite.suite),
    ]
    return Page(
        suite.page,
        title,
        answer,
        [*sections, build_comparison_section(scores, suite.suite)],
        [Link("Questions", board_page("qa"))],
        introduction=f"{exposure[:1].upper()}{exposure[1:]}." if exposure else "",
        scripts=("qa.js",),
    )


def _build_cut_sections(scores: QaScores, suite: SuiteScores, boards: Sequence[SuiteBoard]) -> Iterator[Section]:
    """Build the tables of models by part and by transcript: on the main board, and collapsed on the others."""
    parts = {*suite.items["part"]}
    for cut, title in (("part", "By part"), ("cluster", "By transcript")):
        frames = [(board, board.filter_alike(scores.board[scores.board["cut"] == cut])) for board in boards]
        pairs = [(board, frame) for board, frame in frames if len({*frame[cut]}) > 1]
        if pairs and (cut == "part" or not {*pairs[0][1][cut]} <= parts):
            (main, frame), *tail = pairs
            folds = [Fold(board.board.title, [_build_heat_table(suite, board, rows, cut)]) for board, rows in tail]
            table = _build_heat_table(suite, main, frame, cut)
            yield Section(f"by-{cut}", title, [table, *folds], _describe_extremes(table.rows))


def _build_heat_table(suite: SuiteScores, suite_board: SuiteBoard, frame: pd.DataFrame, column: str) -> Table:
    """Build a table with parts as rows, the hardest first, and models as columns, the best first; cells are shaded by their score."""
    names = [row.model for row in suite_board.board.rows]
    columns = [Column("place", "Part" if column == "part" else "Transcript"), Column("n", "Items", "count")]
    columns += [Column(f"m{i}", name, "score", heat=True, more=i >= MODELS_SHOWN, always=True) for i, name in enumerate(names)]
    rows = [_build_heat_row(suite, names, str(place), group, column) for place, group in frame.groupby(column, sort=True)]
    rows.sort(key=lambda row: (is_unknown(row["_mean"]), row["_mean"]))
    scores = frame["score"].dropna()
    shades = (float(scores.min()), float(scores.max())) if len(scores) and scores.min() < scores.max() else (0.0, 1.0)
    return Table(suite_board.board.measure, columns, rows, first=15, shades=shades)


def _describe_extremes(rows: Sequence[Mapping[str, Any]]) -> str:
    """Describe the hardest and easiest rows of the heat table, which are sorted by their means."""
    entries = [row for row in rows if not is_unknown(row["_mean"])]
    if not entries or entries[0]["_mean"] == entries[-1]["_mean"]:
        return ""
    ends = [f"{row['_name']}, {show(row['_mean'], 'score')}" for row in (entries[0], entries[-1])]
    return f"Hardest: {ends[0]} on average; easiest: {ends[1]}."


def _build_heat_row(suite: SuiteScores, names: Sequence[str], place: str, frame: pd.DataFrame, column: str) -> dict[str, Any]:
    scores = dict(zip(frame["model"], frame["score"], strict=True))
    title = format_part_title(place) if column == "part" else place
    mean = frame["score"].mean()
    link = Link(title, state_address(suite.page, part=place)) if column == "part" else title
    cells = {f"m{i}": scores.get(name) for i, name in enumerate(names)}
    return {
        "place": link,
        "n": int(frame["n_items"].max()),
        **cells,
        "_name": title,
        "_mean": float(mean),
    }


def build_hardest_section(suite: SuiteScores) -> Section:
    """Build the list of items with the lowest scores, among those with scores of several models."""
    grid = suite.main
    counts = (~np.isnan(grid)).sum(axis=0)
    several = np.flatnonzero(counts > 1)
    if not len(several):
        return Section("hardest", "Hardest items", [])
    means, right = np.nanmean(grid[:, several], axis=0), (grid >= RIGHT_FROM).sum(axis=0)
    order = several[np.lexsort((several, right[several], means))]
    rows = [
        _build_hard_row(suite, int(index), int(right[index]), int(counts[index]), float(np.nanmean(grid[:, index])))
        for index in order[:HARDEST_LISTED]
    ]
    none = int((right[several] == 0).sum())
    every = int((right[several] == counts[several]).sum())
    answer = f"No model is right on {none:,} of {format_count(len(several), 'item')}; every model is right on {every:,}."
    return Section(
        "hardest", "Hardest items", [Table("Items with the lowest mean score", _HARDEST_COLUMNS, rows, first=10)], answer
    )


def _build_hard_row(suite: SuiteScores, index: int, right: int, count: int, mean: float) -> dict[str, Any]:
    item = str(suite.items["item_id"].iloc[index])
    return {
        "item": Link(item, build_item_address(suite, item)),
        "part": format_part_title(str(suite.items["part"].iloc[index])),
        "line": suite.lines[index],
        "right": f"{right} of {count}",
        "score": mean,
    }


def _build_explorer_section(scores: QaScores, suite: SuiteScores, share: float) -> Section:
    n = format_count(len(suite.items), "item")
    note = (
        ""
        if share >= 1
        else f" Texts of responses are kept for a random sample of {show(share, 'percent')} of the items; scores for all."
    )
    values = {
        "folder": f"qa/suites/{suite.file}",
        "kept": note,
        "sample": sample_items(scores, suite, share),
        "n": len(suite.items),
    }
    return Section(
        "items",
        "Every item",
        [TemplateBlock("qa/explorer.html.j2", values)],
        f"{n}: open one to see what each model answered.{note}",
    )


def build_suites_section(suites: Mapping[str, SuiteScores], main: Mapping[str, SuiteBoard]) -> Section:
    """Build the list of suites with links to their pages."""
    columns = (
        Column("suite", "Suite"),
        Column("parts", "Parts", "count", always=True),
        Column("items", "Items", "count", always=True),
        Column("best", "Best model", "model", always=True),
        Column("score", "Its score", "score"),
    )
    rows = []
    for name, suite in suites.items():
        first = next(iter(main[name].board.models), None) if name in main else None
        rows.append(
            {
                "suite": Link(format_suite_title(name), suite.page),
                "parts": suite.items["part"].nunique(),
                "items": len(suite.items),
                "best": first.model if first else None,
                "score": first.score if first else None,
            }
        )
    total = format_count(sum(len(scores.items) for scores in suites.values()), "item")
    answer = f"{format_count(len(rows), 'suite')} with {total}: each page opens every item."
    return Section("suites", "Suites", [Table("Suites", columns, rows)], answer)
