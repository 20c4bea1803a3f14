"""A family's leaderboards: models ranked among models, baselines and ceilings as lines, an interval chart next to the table."""

from __future__ import annotations

from typing import Any

from dtef_pipeline.site.content import Chart, Column, Page, Section, Table, TemplateBlock, is_unknown
from dtef_pipeline.site.contents import FamilyEntry
from dtef_pipeline.site.family_content import BoardRow, RankedBoard
from dtef_pipeline.site.number_text import show, show_with_interval
from dtef_pipeline.site.paths import board_page

MAX_IN_CHART, _BOARDS_IN_SIGHT = 40, 3
_COLUMNS_OF_RANK = (
    Column("rank", "Rank", "count", always=True),
    Column("ranks", "Rank range", meaning="The best and the worst rank that the comparisons allow"),
)


def build_leaderboard_page(family: FamilyEntry) -> Page:
    """Build the page of a family: its verdict, its leaderboards, and its further sections."""
    boards = [
        Section(
            board.anchor,
            board.title or "Leaderboard",
            [board_block(board)],
            describe_best_of_models(board) if index and board.is_contest else "",  # the page's verdict is about the first
            board.guide,
            is_folded=index >= _BOARDS_IN_SIGHT,
        )
        for index, board in enumerate(family.content.boards)
    ]
    return Page(board_page(family.name), family.site.title, family.content.verdict, [*boards, *family.content.sections])


def board_block(board: RankedBoard) -> TemplateBlock:
    """Build a board as table and chart; references are shown on request."""
    columns = [
        Column("model", "Model", "model"),
        *(_COLUMNS_OF_RANK if board.is_contest else ()),
        Column("score", "Score", "score", board.measure),
        *board.columns,
        Column("note", "Note", "note"),
    ]
    table = Table(board.measure, columns, [_build_table_row(row) for row in board.rows])
    chart = build_interval_chart(board, "Scores, with 95% intervals where there are any")
    return TemplateBlock("leaderboard.html.j2", {"table": table, "chart": chart})


def _build_table_row(row: BoardRow) -> dict[str, Any]:
    low, high = row.rank_low, row.rank_high
    has_ranks = None not in (low, high) and not row.is_reference
    return {
        **row._asdict(),
        "ranks": (f"{low}" if low == high else f"{low} to {high}") if has_ranks else None,
        **row.more,
        "_kind": "reference" if row.is_reference else "model",
    }


def build_interval_chart(board: RankedBoard, caption: str, limit: int = MAX_IN_CHART) -> Chart:
    """Chart scores with their intervals, of the best `limit` models in board order; references are lines."""
    rows = [row for row in board.rows if not row.is_reference and not is_unknown(row.score)]
    few = f"; the first {limit} of {len(rows)} models" if len(rows) > limit else ""
    points = [{"label": row.model, **row.score._asdict()} for row in rows[:limit]]
    return Chart("intervals", points, f"{caption}{few}", _build_lines(board) if rows else [])


def _build_lines(board: RankedBoard, limit: int = 3) -> list[dict[str, Any]]:
    """Return the board's own lines, then baselines, highest first, up to `limit`: more would hide the dots."""
    lines = {line.label: line.value for line in board.references}
    baselines = [(row.model, row.score.value or 0.0) for row in board.rows if row.is_reference and not is_unknown(row.score)]
    for name, value in sorted(baselines, key=lambda baseline: -baseline[1]):
        lines.setdefault(name, value)
    return [{"label": label, "value": value} for label, value in list(lines.items())[:limit]]


def describe_best_of_models(board: RankedBoard) -> str:
    """Return `Best of 3 models: gpt-4.1 scores 0.810 (0.780 to 0.840); next is o3, 0.790; tests do not separate the two.`"""
    models = board.models
    if not models:
        return "No model is ranked yet."
    best = models[0]
    unit = f" {board.unit}" if board.unit else ""
    first = f"{best.model} scores {show_with_interval(best.score, 'score')}{unit}"
    if len(models) == 1:
        return f"{first}; no other model is ranked."
    second = models[1]
    is_tied = (best.rank_high or 1) > 1 and (second.rank_low or 2) < 2
    tie = "; tests do not separate the two" if is_tied else ""
    return f"Best of {len(models)} models: {first}; next is {second.model}, {show(second.score, 'score')}{tie}."
