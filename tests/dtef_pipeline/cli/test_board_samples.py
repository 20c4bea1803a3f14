"""The line above a survey's board that tells how much of each round language models were asked."""

from __future__ import annotations

import duckdb
import pandas as pd

from dtef_pipeline.cli.survey.boards import describe_samples
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions

PAIRS = [(name, segment, question) for name in ("R1", "R2") for segment in "abcd" for question in ("q1", "q2", "q3")]


def lines(asked: list[tuple[str, str, str]], *rounds: str) -> list[str]:
    """The lines for scores of a model on these pairs, and of a baseline on all."""
    keys = ["round", "segment", "question_id"]
    models = {"openai/m": asked, "baseline/uniform": PAIRS}
    scores = pd.concat([pd.DataFrame(pairs, columns=keys).assign(model_variant=name) for name, pairs in models.items()])
    with duckdb.connect() as connection:
        connection.register("scores", scores.assign(model=scores["model_variant"], snapshot="base"))
        connection.register("survey_responses", pd.DataFrame(PAIRS, columns=keys))
        return [*describe_samples(connection, SurveyBoardOptions(rounds=rounds))]


def test_pairs_segments_and_questions_are_those_that_were_asked() -> None:
    """The line named the smallest draw that contains the pairs: "all segments; 13 of 16 questions" for 6 pairs."""
    asked = [("R1", "a", "q1"), ("R1", "b", "q3"), ("R1", "d", "q3"), ("R2", "c", "q2")]
    (first, second) = lines(asked)
    assert first.startswith("R1: ")
    assert "3 of 12 pairs" in first
    assert "3 of 4 segments, 2 of 3 questions" in first
    assert "1 of 4 segments, 1 of 3 questions" in second
    assert lines(asked, "R2") == [second]


def test_a_whole_round_has_no_line() -> None:
    assert lines([pair for pair in PAIRS if pair[0] == "R1"]) == []
