"""Charts of what only surveys have: scores by segment and over the context levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dtef_pipeline.report.charts import (
    SAME_SCORE,
    Mark,
    facet,
    facets,
    forest,
    heat_map,
    score_domain,
)
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, POPULATION_MARGINAL, UNIFORM
from dtef_pipeline.survey.blueprint.options import ContextLevel
from dtef_pipeline.survey.report.groups import asked_alike

_LINES = {
    LEAVE_ONE_OUT: ("leave-one-out marginal", "others"),
    POPULATION_MARGINAL: ("population marginal", "population"),
    UNIFORM: ("uniform", "uniform"),
}
"""What the line of a baseline is called, and its class."""


def references(rows: pd.DataFrame) -> list[Mark]:
    """The lines to read a board by, where known: what a score could be at best, and those of knowing nothing about the group."""
    scores = {model: float(score) for model, score in zip(rows["model"], rows["score"], strict=True) if score == score}
    ceilings = rows["ceiling"].dropna() if "ceiling" in rows else pd.Series(dtype=float)
    best = [Mark("ceiling", float(ceilings.median()), "ceiling")] if len(ceilings) else []
    return [*best, *(Mark(name, scores[model], kind) for model, (name, kind) in _LINES.items() if model in scores)]


def board_chart(frame: pd.DataFrame) -> str:
    """The models of a leaderboard with the marginals and the ceiling as lines; it stands alone."""
    rows = one_group(frame)
    return forest(rows, references(rows[rows["score"].notna()]))


def segment_heat_map(frame: pd.DataFrame) -> str:
    """Segments down, models across. Takes rows of the breakdown by segment; it stands alone."""
    return heat_map(one_group(frame), ["attribute", "segment"], "segments")


def context_curves(frame: pd.DataFrame) -> str:
    """A small chart for each model: its mean score over the context levels, with intervals. It stands alone.

    Takes leaderboard rows of several levels, as of `on_shared_pairs`.
    """
    first = sorted(frame["condition"].astype(str).unique())[:1]
    rows = frame[frame["condition"].isin(first) & frame["score"].notna()]
    marks = references(rows)
    bounds = score_domain(rows, [mark.value for mark in marks])
    levels = sorted(rows["context_level"].astype(str).unique(), key=lambda level: ContextLevel(level).order)
    drawn = [
        facet(str(own["model"].iloc[0]), levels, _by(own, "context_level"), bounds, marks)
        for _, own in moving(rows).groupby("model_variant", sort=True, observed=True)
    ]
    return facets(drawn, "Mean score over the number of context questions, one small chart for each model")


def moving(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of models whose score is not the same at every level that they have: a baseline that reads no prompt has no curve."""
    spread = rows.groupby("model_variant", observed=True)["score"].agg(lambda scores: scores.max() - scores.min())
    return rows[rows["model_variant"].isin(spread[spread > SAME_SCORE].index)]


def _by(rows: pd.DataFrame, key: str) -> dict[str, Mapping[Any, Any]]:
    return {str(row[key]): row for row in rows.to_dict("records")}


def one_group(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first condition with most context: what one chart can show, for the others do not compare with it."""
    return next((rows for _, rows in asked_alike(frame, richest=True)), frame)
