"""Boards of questions that hang together: as sure as the batteries are many, however many questions they have."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.boards.boards import board
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from tests.made.scores import scores_of, scores_table, survey_rows


def in_batteries(scores: list[float], batteries: list[str], segments: int = 1, **options: Any) -> pd.Series:
    """The row of a model with these scores on q0, q1, ..., the same in every segment."""
    asked = [{"segment": f"country:c{at}"} for at in range(segments)]
    survey = [
        {**where, "question_id": f"q{i}", "question_text": f"Question {i}?", "battery": battery}
        for where in asked
        for i, battery in enumerate(batteries)
    ]
    with duckdb.connect() as connection:
        connection.register("scores", scores_table([row for where in asked for row in scores_of("m", *scores, **where)]))
        connection.register("survey_responses", survey_rows(*({**row, "n": 10**8} for row in survey)))
        return board(connection, "overall", SurveyBoardOptions(**options)).iloc[0]


def test_a_battery_of_questions_answered_alike_has_the_interval_of_one_question() -> None:
    # Batteries of six counted as six questions: 95 % intervals covered 66 %.
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.4, 0.9, size=10).tolist()
    alone = in_batteries(scores, [f"b{i}" for i in range(10)])
    six = in_batteries([score for score in scores for _ in range(6)], [f"b{i}" for i in range(10) for _ in range(6)])
    counts = ["n_questions", "n_batteries"]
    assert alone[counts].tolist() == [10, 10]
    assert six[counts].tolist() == [60, 10]
    ends = ["score", "score_low", "score_high"]
    assert six[ends].tolist() == pytest.approx(alone[ends].tolist())
