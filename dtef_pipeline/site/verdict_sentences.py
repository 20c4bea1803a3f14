"""Leaderboard verdicts in one sentence with numbers."""

from __future__ import annotations

from dtef_pipeline.site.content import is_unknown
from dtef_pipeline.site.family_view import BoardRow, RankedBoard
from dtef_pipeline.site.number_text import show, show_with_interval


def describe_best_of_models(board: RankedBoard, verb: str = "scores") -> str:
    """Return `Best of 3 models: gpt-4.1 scores 0.810 (0.780 to 0.840); next is o3, 0.790; tests do not separate the two.`"""
    models = board.models
    if not models:
        return "No model is ranked yet."
    best = models[0]
    first = f"{best.model} {verb} {show_with_interval(best.score, 'score')}"
    if len(models) == 1:
        return f"{first}; no other model is ranked."
    second = models[1]
    return f"Best of {len(models)} models: {first}; next is {second.model}, {show(second.score, 'score')}{_compare_models(best, second)}."


def _compare_models(first: BoardRow, second: BoardRow) -> str:
    if is_unknown(first.rank_high) or is_unknown(second.rank_low):
        return ""
    shares = (first.rank_high or 1) > 1 and (second.rank_low or 2) < 2
    return "; tests do not separate the two" if shares else ""
