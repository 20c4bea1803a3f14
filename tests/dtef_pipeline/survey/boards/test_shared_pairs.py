"""Scores over the context levels are of the same pairs at each level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pandas as pd
import pytest

from dtef_pipeline.survey.boards.board_rows import compute_board
from dtef_pipeline.survey.boards.responsiveness import restrict_to_shared_pairs
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from tests.made.scores import scores_table


def _board(rows: Sequence[dict[str, Any]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The overall board of such scores, and the same over the pairs of all levels."""
    scores = scores_table(list(rows))
    with duckdb.connect() as connection:
        connection.register("scores", scores)
        board = compute_board(connection, "overall", SurveyBoardOptions(intervals=False), None)
        return board, restrict_to_shared_pairs(connection, board)


def _asked(model: str, level: str, question: str, score: float) -> dict[str, Any]:
    named = {"model": model, "model_variant": model, "context_level": level, "question_id": question}
    return {**named, "score": score, "js": score}


def test_a_curve_is_over_the_pairs_asked_at_every_level() -> None:
    """A model that was asked hard pairs at one level only was drawn as falling, though no pair of its fell."""
    rows = [_asked("m", level, question, score) for level in ("0", "5") for question, score in (("q0", 0.8), ("q1", 0.9))]
    board, shared = _board([*rows, _asked("m", "5", "hard", 0.1)])
    assert board["score"].tolist() == pytest.approx([0.85, 0.6])
    assert (shared["score"].tolist(), shared["n_pairs"].tolist()) == (pytest.approx([0.85, 0.85]), [2, 2])


def test_the_interval_of_other_pairs_is_not_drawn_and_levels_without_a_shared_pair_have_no_curve() -> None:
    apart = [_asked("apart", level, question, 0.5) for level, question in (("0", "q0"), ("5", "q1"))]
    _, shared = _board([*apart, _asked("m", "0", "q0", 0.6), _asked("m", "5", "q0", 0.7)])
    assert shared[shared["model"] == "apart"]["score"].isna().all()
    assert shared.loc[shared["model"] == "apart", "n_pairs"].tolist() == [0, 0]
    assert shared.loc[shared["model"] == "m", "n_pairs"].tolist() == [1, 1]
