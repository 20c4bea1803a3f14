"""Verdicts in one sentence with numbers."""

from __future__ import annotations

from dataclasses import replace

from dtef_pipeline.site.content import Estimate
from dtef_pipeline.site.family_content import BoardRow, RankedBoard
from dtef_pipeline.site.leaderboard import describe_best_of_models

EVERYBODY = BoardRow("everybody", Estimate(0.821), is_reference=True)


def board(*rows: BoardRow) -> RankedBoard:
    return RankedBoard("", "", "Score", [*rows, EVERYBODY])


def row(name: str, score: float, rank: int | None, low: int | None = None, high: int | None = None) -> BoardRow:
    return BoardRow(name, Estimate(score, score - 0.05, score + 0.05), rank, low, high)


def test_the_best_stands_beside_the_next() -> None:
    apart = board(row("o3", 0.7, 2, 2, 2), row("gpt", 0.8, 1, 1, 1))
    assert describe_best_of_models(apart) == "Best of 2 models: gpt scores 0.800 (0.750 to 0.850); next is o3, 0.700."
    close = board(row("gpt", 0.8, 1, 1, 2), row("o3", 0.79, 2, 1, 2))
    assert describe_best_of_models(close).endswith("next is o3, 0.790; tests do not separate the two.")


def test_without_a_ranked_model_it_says_so() -> None:
    assert describe_best_of_models(board(row("gpt", 0.8, None))) == "No model is ranked yet."
    assert "no other model" in describe_best_of_models(board(row("gpt", 0.8, 1)))


def test_a_score_in_a_unit_has_it() -> None:
    chips = replace(board(row("gpt", 1.5, 1)), unit="chips")
    assert "1.500 (1.450 to 1.550) chips;" in describe_best_of_models(chips)
