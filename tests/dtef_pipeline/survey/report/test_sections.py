"""Single sections, from frames written by hand."""

from __future__ import annotations

import re

import duckdb
import pandas as pd

from dtef_pipeline.report import leaderboard as shared
from dtef_pipeline.survey.report.attributes import SURVEY_BOARD
from dtef_pipeline.survey.report.context import context
from dtef_pipeline.survey.report.groups import asked_alike, asked_like
from dtef_pipeline.survey.report.quality import quality
from dtef_pipeline.survey.report.terms import NAMES
from tests.made.sections import cells, frame


def leaderboard(board: pd.DataFrame) -> str:
    return shared.leaderboard(asked_alike(board), SURVEY_BOARD)


def comparisons(board: pd.DataFrame, pairs: pd.DataFrame) -> str:
    return shared.comparisons([(group, asked_like(group.rows, pairs)) for group in asked_alike(board)], NAMES)


def test_context_curves_are_of_models_that_move() -> None:
    rows = pd.concat(
        [
            frame({"model": "still", "score": 0.5}, {"model": "a", "score": s}, level=level)
            for level, s in (("0", 0.6), ("all", 0.7))
        ]
    )
    markup = context(rows.reset_index(drop=True), pd.DataFrame())
    assert re.findall(r'aria-label="(.*?)"', markup) == ["a by context level: 0: 0.600, all: 0.700"]
    assert "The same at every level: still." in markup
    assert "spaced evenly" in markup
    assert "nothing to compare" in context(frame({"model": "a", "score": 0.5}), pd.DataFrame())


def test_responsiveness_stands_with_its_verdict() -> None:
    known = {
        "levels": "0, all",
        "slope": 0.001,
        "slope_low": 0.0005,
        "slope_high": 0.0015,
        "difference": 0.02,
        "low": 0.01,
        "high": 0.03,
    }
    rest = {"least_context": 0.0, "most_context": 42.5, "least_score": 0.6, "most_score": 0.62, "p": 0.01, "p_adjusted": 0.02}
    told = frame({"model": "a", "verdict": "evidence-adapting", **known, **rest})
    (row,) = cells(context(frame({"model": "a", "score": 0.5}), told))
    assert row[:5] == ["a", "0, all", "0.600 0.0 questions", "0.620 42.5 questions", "+0.020 +0.010 to +0.030"]
    assert "evidence-adapting" in row


def test_quality_counts_statuses_and_says_why(connection: duckdb.DuckDBPyConnection) -> None:
    markup = quality(connection)
    assert ["m", "2", "1", "1"] in cells(markup.split("Predictions by status")[1])
    assert "an apology" in markup
    assert "circular pairs" in markup.lower()
