"""The page of a suite: models by part and by transcript, its hardest items, and every item to open; and the list of suites."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from dtef_pipeline.qa.site.boards import Boards, choose_main_keys
from dtef_pipeline.qa.site.explorer import sample_items
from dtef_pipeline.qa.site.qa_labels import format_part_title
from dtef_pipeline.qa.site.suite_scores import RIGHT_FROM, QaScores, SuiteScores
from dtef_pipeline.qa.site.validity_sections import build_retrieval_section
from dtef_pipeline.site.content import Column, Fold, Link, Page, Section, Table, TemplateBlock, convert_to_rows
from dtef_pipeline.site.family_content import RankedBoard
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
_SUITE_COLUMNS = (
    Column("suite", "Suite"),
    Column("parts", "Parts", "count", always=True),
    Column("items", "Items", "count", always=True),
    Column("models", "Models", "count", always=True),
    Column("best", "Best model", "model", always=True),
    Column("score", "Its score", "score"),
    Column("exposure", "Exposure", "long"),
)


def suite_page(scores: QaScores, suite: SuiteScores, boards: Boards, share: float) -> Page:
    """Build the page. `share`: share of the items whose responses are kept."""
    title, path = suite.link
    unranked = f"{format_count(len(suite.items), 'item')}; no model is on a board yet."
    exposure = scores.exposure.get(suite.suite)
    shown = {key: board for key, board in boards.items() if key.suite == suite.suite}
    return Page(
        path,
        title,
        describe_best_of_models(next(iter(shown.values()))) if shown else unranked,
        [
            *_build_cut_sections(scores, suite, shown),
            build_hardest_section(suite),
            _build_explorer_section(scores, suite, share),
            build_retrieval_section(scores, suite.suite),
        ],
        [Link("Questions", board_page("qa"))],
        introduction=f"{exposure[:1].upper()}{exposure[1:]}." if exposure else "",
        scripts=("qa.js",),
    )


def _build_cut_sections(scores: QaScores, suite: SuiteScores, boards: Boards) -> Iterator[Section]:
    """Build the tables of models by part and by transcript: on the main board, and collapsed on the others."""
    parts = {*suite.items["part"]}
    for cut, title in (("part", "By part"), ("cluster", "By transcript")):
        rows = scores.select_cut(cut)
        frames = [(board, key.select(rows)) for key, board in boards.items()]
        tables = [
            (board.title, _build_heat_table(suite, board, frame, cut)) for board, frame in frames if len({*frame[cut]}) > 1
        ]
        if tables and (cut == "part" or not {row["place"] for row in tables[0][1].rows} <= parts):
            (_, main), *others = tables
            ends = [f"{row['_name']}, {show(row['_mean'], 'score')}" for row in main.rows if not pd.isna(row["_mean"])]
            answer = f"Hardest: {ends[0]} on average; easiest: {ends[-1]}." if len(ends) > 1 else ""
            yield Section(f"by-{cut}", title, [main, *(Fold(words, [table]) for words, table in others)], answer)


def _build_heat_table(suite: SuiteScores, board: RankedBoard, frame: pd.DataFrame, cut: str) -> Table:
    """Build a table with parts as rows, the hardest first, and models as columns, the best first; cells are shaded by their score."""
    columns = [Column("place", "Part" if cut == "part" else "Transcript"), Column("n_items", "Items", "count")]
    columns += [
        Column(f"m{number}", row.model, "score", heat=True, more=number >= MODELS_SHOWN, always=True)
        for number, row in enumerate(board.rows)
    ]
    rows = []
    for place, group in frame.groupby(cut):
        title = format_part_title(place) if cut == "part" else place
        scores = dict(zip(group["model"], group["score"], strict=True))
        rows.append(
            {
                "place": Link(title, state_address(suite.link.href, part=place)) if cut == "part" else title,
                "n_items": int(group["n_items"].max()),
                "_name": title,
                "_mean": group["score"].mean(),
                **{f"m{number}": scores.get(row.model) for number, row in enumerate(board.rows)},
            }
        )
    rows.sort(key=lambda row: (pd.isna(row["_mean"]), row["_mean"]))
    low, high = frame["score"].min(), frame["score"].max()
    return Table(board.measure, columns, rows, first=15, shades=(low, high) if low < high else (0.0, 1.0))


def build_hardest_section(suite: SuiteScores) -> Section:
    """Build the list of items with the lowest scores, among those with scores of several models."""
    scores = suite.main.assign(right=suite.main["score"] >= RIGHT_FROM).groupby("place")
    items = suite.items.assign(score=scores["score"].mean(), right=scores["right"].sum(), n=scores.size())
    items = items[items["n"] > 1].sort_values(["score", "right"], kind="stable")
    if not len(items):
        return Section("hardest", "Hardest items", [])
    none, every = (items["right"] == 0).sum(), (items["right"] == items["n"]).sum()
    answer = f"No model is right on {none:,} of {format_count(len(items), 'item')}; every model is right on {every:,}."
    rows = [
        {**row, "item": Link(row["item_id"], row["page"]), "right": f"{row['right']:.0f} of {row['n']:.0f}"}
        for row in convert_to_rows(items.head(HARDEST_LISTED), part=format_part_title)
    ]
    table = Table("Items with the lowest mean score", _HARDEST_COLUMNS, rows, first=10)
    return Section("hardest", "Hardest items", [table], answer)


def _build_explorer_section(scores: QaScores, suite: SuiteScores, share: float) -> Section:
    words = f" Texts of responses are kept for a random sample of {show(share, 'percent')} of the items; scores for all."
    note, n_items = words if share < 1 else "", len(suite.items)
    values = {"folder": f"qa/suites/{suite.file}", "sample": sample_items(scores, suite, share), "n": n_items}
    answer = f"{format_count(n_items, 'item')}: open one to see what each model answered.{note}"
    return Section("items", "Every item", [TemplateBlock("qa/explorer.html.j2", values)], answer)


def build_suites_section(scores: QaScores, boards: Boards) -> Section:
    """Build the list of suites with links to their pages, their best models, and whether their answers are public."""
    main = choose_main_keys(boards)
    rows: list[dict[str, Any]] = []
    for name, suite in scores.suites.items():
        best = boards[main[name]].models[:1] if name in main else []
        rows.append(
            {
                "suite": suite.link,
                "parts": suite.items["part"].nunique(),
                "items": len(suite.items),
                "models": len(suite.models),
                **({"best": best[0].model, "score": best[0].score} if best else {}),
                "exposure": scores.exposure.get(name),
            }
        )
    answer = f"{format_count(len(rows), 'suite')} with {format_count(sum(row['items'] for row in rows), 'item')}: each page opens every item."
    n_exposed = sum(bool(row["exposure"]) for row in rows)
    note = f" Answers of {n_exposed} may be in training data." if n_exposed else ""
    return Section("suites", "Suites", [Table("Suites", _SUITE_COLUMNS, rows)], answer + note)
