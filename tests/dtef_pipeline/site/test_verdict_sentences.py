"""Verdicts in one sentence with numbers."""

from __future__ import annotations

import pytest

from dtef_pipeline.site.content import Estimate
from dtef_pipeline.site.family_view import BoardRow, RankedBoard
from dtef_pipeline.site.verdict_sentences import against_reference, best_of_models

EVERYBODY = BoardRow("everybody", Estimate(0.821), is_reference=True)


def board(*rows: BoardRow) -> RankedBoard:
    return RankedBoard("", "", "Score", [*rows, EVERYBODY])


def row(name: str, score: float, rank: int | None, low: int | None = None, high: int | None = None) -> BoardRow:
    return BoardRow(name, Estimate(score, score - 0.05, score + 0.05), rank, low, high)


def test_the_best_stands_beside_the_next() -> None:
    apart = board(row("o3", 0.7, 2, 2, 2), row("gpt", 0.8, 1, 1, 1))
    assert best_of_models(apart) == "Best of 2 models: gpt scores 0.800 (0.750 to 0.850); next is o3, 0.700."
    close = board(row("gpt", 0.8, 1, 1, 2), row("o3", 0.79, 2, 1, 2))
    assert best_of_models(close).endswith("next is o3, 0.790; their ranks are not told apart.")


def test_without_a_ranked_model_it_says_so() -> None:
    assert best_of_models(board(row("gpt", 0.8, None))) == "No model is ranked yet."
    assert "no other model" in best_of_models(board(row("gpt", 0.8, 1)))


@pytest.mark.parametrize(
    ("better", "words"),
    [
        (True, "gpt beats the answer of everybody: 0.768, against 0.821; a perfect model would score 0.867."),
        (
            False,
            "No model beats the answer of everybody: the best is gpt, 0.768, against 0.821; a perfect model would score 0.867.",
        ),
        (
            None,
            "gpt scores 0.768, against 0.821 of the answer of everybody; a perfect model would score 0.867; the difference is not tested.",
        ),
    ],
)
def test_the_best_is_compared_with_the_reference(better: bool | None, words: str) -> None:
    assert against_reference(board(row("gpt", 0.768, 1)), "everybody", "the answer of everybody", better, 0.867) == words
