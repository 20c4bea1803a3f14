"""Rows of `persona_results` in the order in which people read them: the latest version of each scenario, and players best first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def latest_versions(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the latest version of each scenario; `frame` has the columns league, scenario and version."""
    return frame[frame["version"] == frame.groupby(["league", "scenario"])["version"].transform("max")]


def ranked_players(frame: pd.DataFrame) -> pd.DataFrame:
    """Players best first within each scenario and metric; those without a mean last, and where neither side is better by name."""
    sign = frame["direction"].map({"higher": -1.0, "lower": 1.0}).astype(float).fillna(0.0)
    keys = ["league", "scenario", "metric", "opponent", "place", "model", "persona", "model_variant"]
    return frame.assign(place=sign * frame["mean"]).sort_values(keys, ignore_index=True).drop(columns="place")
