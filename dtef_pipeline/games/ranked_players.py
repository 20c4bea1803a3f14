"""Rows of `persona_results` in the order in which people read them: one version of each scenario, and players best first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dtef_pipeline.games.manifest import ScenarioManifest

if TYPE_CHECKING:
    import pandas as pd


def versions_shown(frame: pd.DataFrame, manifests: Mapping[str, ScenarioManifest]) -> pd.DataFrame:
    """The rows of the version of each scenario that is in play, as `manifests` has it by id; where it has no row, of the latest that has one.

    `frame` has the columns league, scenario and version.
    """
    in_play = (frame["league"] + "/" + frame["scenario"]).map({name: one.version for name, one in manifests.items()})
    marked = frame["version"].where(frame["version"] != in_play, float("inf"))
    return frame[marked == marked.groupby([frame["league"], frame["scenario"]]).transform("max")]


def ranked_players(frame: pd.DataFrame) -> pd.DataFrame:
    """Players best first within each scenario and metric; those without a mean last, and where neither side is better by name."""
    sign = frame["direction"].map({"higher": -1.0, "lower": 1.0}).astype(float).fillna(0.0)
    keys = ["league", "scenario", "metric", "opponent", "place", "model", "persona", "model_variant"]
    return frame.assign(place=sign * frame["mean"]).sort_values(keys, ignore_index=True).drop(columns="place")
