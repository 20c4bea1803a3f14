"""The roll-ups of the games family, and its jobs."""

import dagster as dg

from assets.engine.family_jobs import family_jobs, stage_keys
from assets.games.drift import games_drift
from assets.games.report import games_report
from assets.games.results import games_costs, persona_results
from assets.games.stages import DECISION_STAGES, GAMES_STAGES

GAMES_ROLL_UPS = [persona_results, games_costs, games_drift, games_report]
games_pipeline, games_roll_ups, games_boards_after_run = family_jobs("games", "scenario", GAMES_STAGES, GAMES_ROLL_UPS)
games_decisions = dg.define_asset_job(
    "games_decisions",
    selection=dg.AssetSelection.assets(*stage_keys(DECISION_STAGES)),
    description="Every decision point of the chosen scenarios asked of models, and what the strategies are worth that follow.",
)

GAMES_JOBS = [games_pipeline, games_decisions, games_roll_ups]
GAMES_SENSORS = [games_boards_after_run]
