"""Roll-ups over all scenarios of the games family: `persona_results` and `games_costs`."""

from typing import Any

import dagster as dg

from assets.games.scenarios import GAMES_GROUP
from assets.stage.family_costs import define_costs
from assets.stage.partitions import markdown, roll_up
from assets.stage.published import published, require_made
from assets.stage.resources import Store
from dtef_pipeline.games.persona_results import GAME_RESULTS_READS, game_results

games_costs = define_costs("games", ["episode_scores", "decision_answers"], "dtef games run")


@dg.asset(deps=[dg.AssetKey("episode_scores")], **{**roll_up("persona_results", code_version="5"), **GAMES_GROUP})
def persona_results(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """How well players play: one row per scenario, version, player, metric and opponent, with a 95 % interval by whole seeds.

    Of each player the latest snapshot counts that has played half as many episodes as its fullest one. A player is a persona and a model
    variant, or a baseline. Rates of texts that were no moves, of moves made for the player and of forfeits stand beside every metric.
    """
    require_made(store, "episode_scores", "scenario", "dtef games run")
    made = store.warehouse.query(game_results, only=GAME_RESULTS_READS)
    shown = [
        "scenario",
        "persona",
        "model",
        "opponent",
        "metric",
        "mean",
        "low",
        "high",
        "n_episodes",
        "n_clusters",
        "illegal_rate",
    ]
    return published(store, {"persona_results": made}, results=markdown(made, shown, most=30))
