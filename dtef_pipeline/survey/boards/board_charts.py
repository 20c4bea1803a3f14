"""Charts of surveys: models with marginals and ceiling, scores by segment, and scores over the context levels."""

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
"""Scores that differ by no more than this are one line in a chart."""
_MOST_CHARTED_MODELS, _MOST_CHARTED_SEGMENTS = 40, 60


def make_board_chart(frame: pd.DataFrame) -> Chart:
    """Return a leaderboard's models for the first condition at its highest context level, with marginals and ceiling as lines."""
    rows = _select_comparable(frame)
    models = [_make_interval_row(row) for row in convert_to_rows(rows) if not is_computed(row["model_variant"])]
    bars = models or [_make_interval_row(row) for row in convert_to_rows(rows)]
    return Chart(
        "intervals", bars[:_MOST_CHARTED_MODELS], "Mean score, 0-1, with its 95% interval", _make_reference_lines(rows)
    )


def make_segment_heat_map(frame: pd.DataFrame) -> Chart:
    """Return a heat map of segments (rows) and models (columns), from the breakdown by segment."""
    rows = _select_comparable(frame)
    means = rows.groupby("segment", observed=True)["score"].mean().sort_values()
    low_rows = rows[rows["segment"].isin(means.index[:_MOST_CHARTED_SEGMENTS])].sort_values(["attribute", "segment", "model"])
    cells = [{"row": row["segment"], "column": row["model"], "value": row["score"]} for row in convert_to_rows(low_rows)]
    return Chart(
        "heat", cells, f"Mean score of the {min(len(means), _MOST_CHARTED_SEGMENTS)} segments that are predicted worst"
    )


def make_context_curves(frame: pd.DataFrame) -> Chart:
    """Return models' mean scores over the context levels of the first condition, if they change, from `restrict_to_shared_pairs`."""
    rows = frame[(frame["condition"] == frame["condition"].astype(str).min()) & frame["score"].notna()]
    spread = rows.groupby("model_variant", observed=True)["score"].agg(lambda scores: scores.max() - scores.min())
    moving = rows[rows["model_variant"].isin(spread[spread > _SAME_SCORE].index)]
    levels = {level: ContextLevel(level).order for level in moving["context_level"].astype(str).unique()}
    points = [
        {"label": row["model"], "x": levels[str(row["context_level"])], "value": row["score"]}
        for row in convert_to_rows(moving.sort_values("model"))
    ]
    return Chart(
        "curves", sorted(points, key=lambda point: point["x"]), "Mean score over context questions", _make_reference_lines(rows)
    )


def _select_comparable(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the scored rows of the first condition at its highest context level."""
    scored_rows = frame[frame["score"].notna()]
    if not len(scored_rows):
        return scored_rows
    condition = scored_rows["condition"].astype(str).min()
    condition_rows = scored_rows[scored_rows["condition"] == condition]
    size = condition_rows["context_level"].astype(str).map(lambda level: ContextLevel(level).order)
    richest: pd.DataFrame = condition_rows[size == size.max()]
    return richest


def _make_reference_lines(rows: pd.DataFrame) -> list[Mapping[str, Any]]:
    """Return the best possible score, and the scores of baselines."""
    scores = dict(zip(rows["model"], rows["score"], strict=True))
    ceilings = rows["ceiling"].dropna() if "ceiling" in rows else pd.Series(dtype=float)
    best = [{"label": "ceiling", "value": float(ceilings.median())}] if len(ceilings) else []
    return [*best, *({"label": name, "value": float(scores[model])} for model, name in _LINE_NAMES.items() if model in scores)]


def _make_interval_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"label": row["model"], "value": row["score"], "low": row.get("score_low"), "high": row.get("score_high")}
