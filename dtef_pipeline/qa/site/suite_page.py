"""The page of a suite: models by part and by transcript, every item to open, and how well passages were found."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from dtef_pipeline.qa.site.boards import Boards
from dtef_pipeline.qa.site.explorer import sample_items
from dtef_pipeline.qa.site.qa_labels import format_part_title
from dtef_pipeline.qa.site.suite_scores import RIGHT_FROM, QaScores, SuiteScores
from dtef_pipeline.qa.suites import compute_retrieval_means
from dtef_pipeline.site.content import Column, Fold, Link, Page, Section, Table, TemplateBlock, convert_to_rows
from dtef_pipeline.site.family_content import RankedBoard
from dtef_pipeline.site.leaderboard import describe_best_of_models
from dtef_pipeline.site.number_text import show
from dtef_pipeline.site.paths import board_page, state_address
from dtef_pipeline.text.number_words import format_count

MODELS_SHOWN = 5
"""Number of models in a table before `show all`."""
_RETRIEVAL_COLUMNS = (
    Column("part", "Part"),
    Column("condition", "Condition"),
    Column("hit", "Hit", "score", "Share of the items whose passages include evidence"),
    Column("recall", "Recall", "score", "Share of the passages with evidence that were shown"),
    Column("precision", "Precision", "score", "Share of the shown passages that hold evidence"),
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
            _build_explorer_section(scores, suite, share),
            _build_retrieval_section(scores, suite.suite),
        ],
        [Link("Questions", board_page("qa"))],
        introduction=f"{exposure[:1].upper()}{exposure[1:]}." if exposure else "",
        scripts=("qa.js",),
    )


def _build_cut_sections(scores: QaScores, suite: SuiteScores, boards: Boards) -> Iterator[Section]:
    """Build the tables of models by part and by transcript: on the main board, and collapsed on the others."""
    for cut, title in (("part", "By part"), ("cluster", "By transcript")):
        rows = scores.select_cut(cut)
        frames = [(board, key.select(rows)) for key, board in boards.items()]
        tables = [
            (board.title, _build_heat_table(suite.link.href, board, frame, cut))
            for board, frame in frames
            if len({*frame[cut]}) > 1
        ]
        if tables and (cut == "part" or not {row["place"] for row in tables[0][1].rows} <= {*suite.parts}):
            (_, main), *others = tables
            known = [row for row in main.rows if not pd.isna(row["mean"])] or main.rows
            ends = [f"{row['title']}, {show(row['mean'], 'score')}" for row in (known[0], known[-1])]
            answer = f"Hardest: {ends[0]} on average; easiest: {ends[1]}." if known[0]["mean"] < known[-1]["mean"] else ""
            yield Section(f"by-{cut}", title, [main, *(Fold(words, [table]) for words, table in others)], answer)


def _build_heat_table(page: str, board: RankedBoard, frame: pd.DataFrame, cut: str) -> Table:
    """Build a table with parts as rows, the hardest first, and models as columns, the best first; cells are shaded by their score."""
    shown = [
        Column(f"m{number}", row.model, "score", heat=True, more=number >= MODELS_SHOWN, always=True)
        for number, row in enumerate(board.rows)
    ]
    columns = [Column("place", "Part" if cut == "part" else "Transcript"), Column("n_items", "Items", "count"), *shown]
    grid = frame.pivot_table("score", cut, "model", dropna=False).reindex(columns=[column.title for column in shown])
    grid = grid.set_axis([column.name for column in shown], axis=1)
    grid = grid.assign(mean=grid.mean(axis=1), n_items=frame.groupby(cut)["n_items"].max()).sort_values("mean", kind="stable")
    grid = grid.assign(place=grid.index, title=grid.index.map(format_part_title) if cut == "part" else grid.index)
    rows = convert_to_rows(grid)
    if cut == "part":
        rows = [{**row, "place": Link(row["title"], state_address(page, part=row["place"]))} for row in rows]
    low, high = frame["score"].min(), frame["score"].max()
    return Table(board.measure, columns, rows, first=15, shades=(low, high) if low < high else (0.0, 1.0))


def _build_explorer_section(scores: QaScores, suite: SuiteScores, share: float) -> Section:
    """Build the section that opens items. Its answer counts the items that no model, and that every model is right on."""
    right = (suite.main["score"] >= RIGHT_FROM).groupby(suite.main["place"])
    sentences = [f"{format_count(len(suite.items), 'item')}: open one to see what each model answered."]
    if len({*suite.main["model_variant"]}) > 1:
        none, every = (~right.any()).sum(), right.all().sum()
        sentences.append(f"No model is right on {none:,} of them, every model on {every:,}.")
    if share < 1:
        kept = show(share, "percent")
        sentences.append(f"Texts of responses are kept for a random sample of {kept} of the items; scores for all.")
    values = {"folder": f"qa/suites/{suite.file}", "sample": sample_items(scores, suite, share), "n": len(suite.items)}
    block = TemplateBlock("qa/explorer.html.j2", values)
    return Section("items", "Every item", [block], " ".join(sentences))


def _build_retrieval_section(scores: QaScores, suite: str) -> Section:
    """Build the section on retrieval for the items of a suite."""
    rows = scores.read_rows(compute_retrieval_means(scores.rows.frame("qa_retrieval", {"suite": suite})))
    hits = max(rows, key=lambda row: row["recall"])["hit"] if rows else None
    answer = f"{show(hits, 'percent')} of the questions were shown with a passage that contains the evidence." if rows else ""
    caption = "Passages with evidence: means over items, 0-1, higher is better; no model is involved"
    return Section("retrieval", "Retrieval", [Table(caption, _RETRIEVAL_COLUMNS, rows)], answer)
