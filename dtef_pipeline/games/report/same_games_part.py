"""Players on the games alone that all of them have: a chapter of the scenario's page where they have not all played the same ones."""

from __future__ import annotations

from dtef_pipeline.games.metrics import EXPECTED_RETURN
from dtef_pipeline.games.persona_results import ALL_OPPONENTS
from dtef_pipeline.games.report.league_rows import ScenarioResults
from dtef_pipeline.games.report.player_board import board_of
from dtef_pipeline.games.same_games import PLAYED_COVERAGE, whole_coverage
from dtef_pipeline.report.markup import paragraph, section
from dtef_pipeline.report.page import Chapter

_SAME_GAMES_HOW = (
    "Not all players have played the same seeds against the same opponents, so that the order of the board above compares means of different "
    "games. Here means and intervals are over the games alone (seed, seat and opponent) that all of them have."
)
_NO_GAMES_SHARED = "They have no game in common: `dtef games board --games shared --player NAME` compares some of them."


def same_games_chapters(found: ScenarioResults) -> list[Chapter]:
    """The chapter; none where all players have the same games."""
    overall = found.overall
    if not len(overall) or not (overall[PLAYED_COVERAGE] < 1).any():
        return []
    body, rows = paragraph(_NO_GAMES_SHARED), found.shared
    if len(rows):
        own = rows[(rows["metric"] == EXPECTED_RETURN) & (rows["opponent"] == ALL_OPPONENTS)]
        alike = whole_coverage(own, 1.0)
        body = board_of(alike, f"{found.name}: mean reward on the games that all players have")
    return [Chapter("same-games", "Same games", section("same-games", "Same games", _SAME_GAMES_HOW, body))]
