"""Leaderboards of rubrics: over all blueprints, by tag and by blueprint, and their best model in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dtef_pipeline.site.content import Column, Estimate, is_unknown
from dtef_pipeline.site.family_content import BoardRow, RankedBoard
from dtef_pipeline.site.number_text import show, show_with_interval
from dtef_pipeline.text.number_words import format_count


def ranked_board(measure: str, rows: Iterable[Mapping[str, Any]], parts: str, how: str = "") -> RankedBoard:
    """Return the board of rows of `rubric_board`, best first. `parts`: heading of the parts that a score averages."""
    columns = (
        Column("coverage", "Coverage", "number", "Weighted share of the criteria that are met, 0-1"),
        Column("similarity", "Similarity", "number", "Cosine similarity to the ideal answer, -1 to 1"),
        Column("n_scored", parts, "count", more=True),
        Column("n_responses_scored", "Responses", "count", "Responses with a score", more=True),
    )
    board_rows = [BoardRow.from_row(row, Estimate.from_row(row, "score", "low", "high"), columns) for row in rows]
    return RankedBoard("", "", measure, board_rows, columns=columns, guide=how)


def describe_best_model(board: RankedBoard) -> str:
    """Return `amber scores best of 24 models: 0.81 (0.78 to 0.84); their mean is 0.62.`, ranked or not."""
    scored_rows = [row for row in board.rows if not is_unknown(row.score)]
    if not scored_rows:
        return "No model has a score yet."
    best, numbers = scored_rows[0], show_with_interval(scored_rows[0].score, "score")
    if len(scored_rows) == 1:
        return f"{best.model}, the only model, scores {numbers}."
    mean = sum(float(row.score.value or 0.0) for row in scored_rows) / len(scored_rows)
    return f"{best.model} scores best of {format_count(len(scored_rows), 'model')}: {numbers}; their mean is {show(mean, 'score')}."
