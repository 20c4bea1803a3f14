"""The tables of the games family: the columns of each, and the folders the warehouse keeps it in."""

from __future__ import annotations

from collections.abc import Mapping

from dtef_pipeline.boards.used_calls import FamilyCalls, calls_by_key
from dtef_pipeline.games import tables
from dtef_pipeline.games.space import LEAGUE_SPACE
from dtef_pipeline.tables import TableSpec

_BY_GAMES_RUN = "dtef games run {options} {players} --max-calls 0"
_BY_DECISIONS = "dtef games decisions {options} {personas} --max-calls 0"
_BY_GAMES_ROLL_UP = "dtef games board --refresh"
_OF_SCENARIO, _OF_SCENARIO_SNAPSHOT = ("league", "scenario"), ("league", "scenario", "snapshot")
GAMES_TABLES: Mapping[str, TableSpec] = {
    "scenario_items": TableSpec(tables.SCENARIO_ITEMS, LEAGUE_SPACE, _OF_SCENARIO, _BY_GAMES_RUN),
    "episode_prompts": TableSpec(tables.EPISODE_PROMPTS, LEAGUE_SPACE, _OF_SCENARIO, _BY_GAMES_RUN),
    "episode_turns": TableSpec(tables.EPISODE_TURNS, LEAGUE_SPACE, _OF_SCENARIO_SNAPSHOT, _BY_GAMES_RUN),
    "episodes": TableSpec(tables.EPISODES, LEAGUE_SPACE, _OF_SCENARIO_SNAPSHOT, _BY_GAMES_RUN),
    "episode_scores": TableSpec(tables.EPISODE_SCORES, LEAGUE_SPACE, _OF_SCENARIO_SNAPSHOT, _BY_GAMES_RUN),
    "decision_answers": TableSpec(tables.DECISION_ANSWERS, LEAGUE_SPACE, _OF_SCENARIO_SNAPSHOT, _BY_DECISIONS),
    "strategy_values": TableSpec(tables.STRATEGY_VALUES, LEAGUE_SPACE, _OF_SCENARIO_SNAPSHOT, _BY_DECISIONS),
    "persona_results": TableSpec(tables.PERSONA_RESULTS, remake=_BY_GAMES_ROLL_UP),
}
"""By name. The first of the space is the one that ingest writes: it says which partitions there are."""
# An opening of an episode is the same request as its decision point: it counts once.
GAMES_CALL_TABLES = FamilyCalls(
    LEAGUE_SPACE,
    tuple(calls_by_key(table, purpose="persona") for table in ("episode_turns", "decision_answers")),
    "persona",
    shown_by=("role", "scenario", "persona", "model"),
)
