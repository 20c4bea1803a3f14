"""What the games family calls the things that drift is about."""

from __future__ import annotations

from dtef_pipeline.games.watched_play import GAMES_WATCHED
from dtef_pipeline.report.names import Names

GAMES_NAMES = Names(
    place={},
    asked={"persona": "Persona", "opponent": "Opponent", "metric": "Metric"},
    usual={},
    part="scenario",
    cell="item",
    reference="",
    subject=GAMES_WATCHED,
)
