"""Rows of `persona_results` in the order in which people read them: one version of each scenario, and players best first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.metrics import FORFEIT_RATE
from dtef_pipeline.statistics.ranks import ranks

if TYPE_CHECKING:
    import pandas as pd

_FORM_FAMILY = "form"


def versions_shown(frame: pd.DataFrame, manifests: Mapping[str, ScenarioManifest]) -> pd.DataFrame:
    """The rows of the version of each scenario that is in play, as `manifests` has it by id; where it has no row, of the latest that has one.

    `frame` has the columns league, scenario and version.
    """
    in_play = (frame["league"] + "/" + frame["scenario"]).map({name: one.version for name, one in manifests.items()})
    marked = frame["version"].where(frame["version"] != in_play, float("inf"))
    return frame[marked == marked.groupby([frame["league"], frame["scenario"]]).transform("max")]


def ranked_players(frame: pd.DataFrame) -> pd.DataFrame:
    """Players best first within each scenario and metric, and where neither side is better by name.

    Those without a mean come last, of them those first that forfeited every episode: they have the last place, the others have none.
    """
    sign = frame["direction"].map({"higher": -1.0, "lower": 1.0}).astype(float).fillna(0.0)
    keys = ["league", "scenario", "metric", "opponent", "place", "nowhere", "model", "persona", "model_variant"]
    placed = frame.assign(place=sign * frame["mean"], nowhere=~forfeited_all(frame))
    return placed.sort_values(keys, ignore_index=True).drop(columns=["place", "nowhere"])


def places(frame: pd.DataFrame, compared: pd.Series[bool]) -> pd.Series[float]:
    """Places by the mean within one metric, from 1, equal ones shared; who forfeited every episode and has no mean is last.

    NaN where neither side is better, without a mean otherwise, and of rows that are not `compared`.
    """
    import pandas as pd

    direction = frame["direction"].iloc[0]
    if direction not in ("higher", "lower"):
        return pd.Series(np.nan, index=frame.index)
    means = frame["mean"].where(compared)
    found = pd.Series(ranks(means, highest_first=direction == "higher"), index=frame.index)
    return found.mask(forfeited_all(frame) & compared, means.notna().sum() + 1.0)


def forfeited_all(frame: pd.DataFrame) -> pd.Series[bool]:
    """Whether a row has no mean because its player forfeited every episode; never in metrics of the form of play, or with no better side."""
    is_of_success = (frame["family"] != _FORM_FAMILY) & frame["direction"].isin(["higher", "lower"])
    return frame["mean"].isna() & (frame[FORFEIT_RATE] >= 1) & is_of_success
