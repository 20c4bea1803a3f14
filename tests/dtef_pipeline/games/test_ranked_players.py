"""Which version of a scenario boards show."""

from __future__ import annotations

import pandas as pd

from dtef_pipeline.games.ranked_players import versions_shown
from tests.made.made_games import show_pack


def test_the_version_in_play_is_shown_and_else_the_latest_that_was_played() -> None:
    """An experimental version that was played once took the place of the one in production."""
    rows = [("made", "show-cards", 1), ("made", "show-cards", 2), ("other", "game", 1), ("other", "game", 3)]
    frame = pd.DataFrame(rows, columns=["league", "scenario", "version"])
    manifest = show_pack(version=1).manifest
    shown = versions_shown(frame, {manifest.id: manifest})
    assert list(shown.itertuples(index=False, name=None)) == [rows[0], rows[3]]
    not_played = {manifest.id: manifest.model_copy(update={"version": 7})}
    assert list(versions_shown(frame, not_played)["version"]) == [2, 3]
    assert versions_shown(frame.iloc[:0], not_played).empty
