"""The stages and roll-ups of the games family, and its jobs."""

import dagster as dg

from assets.games.decisions import decision_answers, strategy_values
from assets.games.drift import games_drift
from assets.games.episodes import episodes
from assets.games.items import scenario_items
from assets.games.prompts import episode_prompts
from assets.games.report import games_report
from assets.games.results import games_costs, persona_results
from assets.games.scores import episode_scores
from assets.stage.boards_after import boards_after_run

GAMES_STAGES = [scenario_items, episode_prompts, episodes, episode_scores]
DECISION_STAGES = [decision_answers, strategy_values]
GAMES_ROLL_UPS = [persona_results, games_costs, games_drift, games_report]
games_pipeline = dg.define_asset_job(
    "games_pipeline",
    selection=dg.AssetSelection.assets(*GAMES_STAGES),
    description="All stages for the chosen scenarios, in one run. Roll-ups are a run of their own: `games_roll_ups`.",
)
games_decisions = dg.define_asset_job(
    "games_decisions",
    selection=dg.AssetSelection.assets(*DECISION_STAGES),
    description="Every decision point of the chosen scenarios asked of models, and what the strategies are worth that follow.",
)
games_roll_ups = dg.define_asset_job(
    "games_roll_ups",
    selection=dg.AssetSelection.assets(*GAMES_ROLL_UPS),
    description="Results of players, of each player against each opponent, drift, and the pages, over all that the games family has scored.",
    run_tags={"dtef/roll_ups": "games"},
)
games_boards_after_run = boards_after_run(
    "games_boards_after_run",
    GAMES_ROLL_UPS,
    games_roll_ups,
    episode_scores.key,
    "Brings the results of players up to date when episodes were played, whatever run did it.",
)

GAMES_JOBS = [games_pipeline, games_decisions, games_roll_ups]
GAMES_SENSORS = [games_boards_after_run]
