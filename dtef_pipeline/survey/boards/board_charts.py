"""Charts of what only surveys have: models beside marginals and ceiling, scores by segment, and over the context levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.site.content import Chart, convert_to_rows
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, POPULATION_MARGINAL, UNIFORM
from dtef_pipeline.survey.blueprint.options import ContextLevel

_LINE_NAMES = {LEAVE_ONE_OUT: "leave-one-out marginal", POPULATION_MARGINAL: "population marginal", UNIFORM: "uniform"}
_SAME_SCORE = 5e-4
"""Scores that lie no further apart than this are one line in a chart."""
_MOST_CHARTED_MODELS, _MOST_CHARTED_SEGMENTS = 40, 60


def make_board_chart(frame: pd.DataFrame) -> Chart:
    """The models of a leaderboard with the marginals and the ceiling as lines: of the first condition at the level of most context."""
    rows = _select_comparable(frame)
    models = [_make_interval_row(one) for one in convert_to_rows(rows) if not is_computed(one["model_variant"])]
    shown = models or [_make_interval_row(one) for one in convert_to_rows(rows)]
    return Chart(
        "intervals", shown[:_MOST_CHARTED_MODELS], "Mean score, 0-1, with its 95% interval", _make_reference_lines(rows)
    )


def make_segment_heat_map(frame: pd.DataFrame) -> Chart:
    """Segments down, models across. Takes rows of the breakdown by segment."""
    rows = _select_comparable(frame)
    means = rows.groupby("segment", observed=True)["score"].mean().sort_values()
    shown = rows[rows["segment"].isin(means.index[:_MOST_CHARTED_SEGMENTS])].sort_values(["attribute", "segment", "model"])
    cells = [{"row": one["segment"], "column": one["model"], "value": one["score"]} for one in convert_to_rows(shown)]
    return Chart(
        "heat", cells, f"Mean score of the {min(len(means), _MOST_CHARTED_SEGMENTS)} segments that are predicted worst"
    )


def make_context_curves(frame: pd.DataFrame) -> Chart:
    """Mean score of each model that moves over the context levels of the first condition. Takes rows as of `restrict_to_shared_pairs`."""
    rows = frame[(frame["condition"] == frame["condition"].astype(str).min()) & frame["score"].notna()]
    spread = rows.groupby("model_variant", observed=True)["score"].agg(lambda scores: scores.max() - scores.min())
    moving = rows[rows["model_variant"].isin(spread[spread > _SAME_SCORE].index)]
    levels = {level: ContextLevel(level).order for level in moving["context_level"].astype(str).unique()}
    points = [
        {"label": one["model"], "x": levels[str(one["context_level"])], "value": one["score"]}
        for one in convert_to_rows(moving.sort_values("model"))
    ]
    return Chart(
        "curves", sorted(points, key=lambda point: point["x"]), "Mean score over context questions", _make_reference_lines(rows)
    )


def _select_comparable(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first condition with most context, that have a score: others do not compare with them."""
    known = frame[frame["score"].notna()]
    if not len(known):
        return known
    condition = known["condition"].astype(str).min()
    own = known[known["condition"] == condition]
    size = own["context_level"].astype(str).map(lambda level: ContextLevel(level).order)
    richest: pd.DataFrame = own[size == size.max()]
    return richest


def _make_reference_lines(rows: pd.DataFrame) -> list[Mapping[str, Any]]:
    """What a score could be at best, and what knowing nothing about the group scores."""
    scores = dict(zip(rows["model"], rows["score"], strict=True))
    ceilings = rows["ceiling"].dropna() if "ceiling" in rows else pd.Series(dtype=float)
    best = [{"label": "ceiling", "value": float(ceilings.median())}] if len(ceilings) else []
    return [*best, *({"label": name, "value": float(scores[model])} for model, name in _LINE_NAMES.items() if model in scores)]


def _make_interval_row(one: Mapping[str, Any]) -> dict[str, Any]:
    return {"label": one["model"], "value": one["score"], "low": one.get("score_low"), "high": one.get("score_high")}
