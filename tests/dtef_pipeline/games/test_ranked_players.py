"""Which version of a scenario boards show, and in which order players stand."""

from __future__ import annotations

import pandas as pd
import pytest

from dtef_pipeline.games.game_pairs import rank_places, select_shown_versions, sort_players
from tests.made.made_games import show_pack


def test_the_version_in_play_is_shown_and_else_the_latest_that_was_played() -> None:
    """An experimental version that was played once took the place of the one in production."""
    rows = [("made", "show-cards", 1), ("made", "show-cards", 2), ("other", "game", 1), ("other", "game", 3)]
    frame = pd.DataFrame(rows, columns=["league", "scenario", "version"])
    manifest = show_pack(version=1).manifest
    shown = select_shown_versions(frame, {manifest.id: manifest})
    assert list(shown.itertuples(index=False, name=None)) == [rows[0], rows[3]]
    not_played = {manifest.id: manifest.model_copy(update={"version": 7})}
    assert list(select_shown_versions(frame, not_played)["version"]) == [2, 3]
    assert select_shown_versions(frame.iloc[:0], not_played).empty


def board(family: str = "efficiency", direction: str = "lower") -> pd.DataFrame:
    """Players of a metric: means, and shares of episodes that they forfeited."""
    rows = [("absent", None, 0.0), ("forfeiter", None, 1.0), ("good", 1.0, 0.0), ("poor", 9.0, 0.5), ("same", 9.0, 0.0)]
    fixed = {"league": "made", "scenario": "cards", "opponent": "all", "metric": "steps", "persona": "", "model_variant": ""}
    frame = pd.DataFrame(rows, columns=["model", "mean", "forfeit_rate"])
    return frame.assign(**fixed, metric_family=family, direction=direction)


@pytest.mark.parametrize(("direction", "first"), [("lower", ["good", "poor", "same"]), ("higher", ["poor", "same", "good"])])
def test_who_forfeits_every_episode_is_last_and_not_nowhere(direction: str, first: list[str]) -> None:
    shown = sort_players(board(direction=direction))
    assert list(shown["model"]) == [*first, "forfeiter", "absent"]
    found = dict(zip(shown["model"], rank_places(shown, shown["model"] != ""), strict=True))
    assert found["forfeiter"] == 4
    assert pd.isna(found["absent"])
    assert found["poor"] == found["same"]
    assert min(found["good"], found["poor"]) == 1


def test_neither_form_nor_metrics_without_a_better_side_have_a_last_place_for_who_forfeits() -> None:
    for frame in (board(family="form"), board(direction="none")):
        found = dict(zip(frame["model"], rank_places(frame, frame["model"] != ""), strict=True))
        assert pd.isna(found["forfeiter"])
