"""Scores and references to a board in one call."""

from __future__ import annotations

from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.boards.boards import board
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from tests.made.scores import reference_table, scores_table


def boarded(
    scores: list[dict[str, Any]], references: list[dict[str, Any]] | None = None, by: str = "overall", **options: Any
) -> pd.DataFrame:
    """The board of these rows (what is not given of a row is plain); without references no ceilings are known."""
    with duckdb.connect() as connection:
        connection.register("scores", scores_table(scores))
        if references is not None:
            connection.register("reference_scores", reference_table(references))
        return board(connection, by, SurveyBoardOptions(**options))
