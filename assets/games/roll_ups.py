"""The roll-ups of the games family, and its jobs."""

import dagster as dg

from assets.engine.family_assets import build_board_asset, family_jobs
from assets.engine.site_report import report
from assets.games.stages import GAMES_STAGES
from assets.stage.checks import asset_check, verdict
from assets.stage.family_costs import build_costs_asset
from assets.stage.family_drift import FamilyDrift, build_drift_assets
from assets.stage.resources import Store
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.record import FamilyBoard, Preview
from dtef_pipeline.games.persona_results import GAME_RESULTS_READS, compute_game_results
from dtef_pipeline.games.play_drift import GAMES_WATCHED, find_moved_baselines

GAMES_FAMILY = FAMILY_BY_NAME["games"]
persona_results = build_board_asset(
    GAMES_FAMILY,
    FamilyBoard(
        "persona_results",
        """Results of players: one row per scenario, version, player, metric and opponent, with a 95 % interval clustered by seed.

        Each player counts with its latest snapshot that has at least half as many episodes as its largest one. A player is a persona and a
        model variant, or a baseline. Every metric also has the player's rates of illegal texts, of moves made for it and of forfeits.""",
        lambda connection, _: {"persona_results": compute_game_results(connection)},
        reads=GAME_RESULTS_READS,
        previews={
            "results": Preview(
                "persona_results",
                (
                    *("scenario", "persona", "model", "opponent", "metric", "mean", "low", "high", "n_episodes", "n_clusters"),
                    "illegal_rate",
                ),
            )
        },
        version="5",
    ),
)
games_costs = build_costs_asset(GAMES_FAMILY, ["episode_scores"])
games_drift, games_has_no_drift = build_drift_assets(
    FamilyDrift(
        subject=GAMES_WATCHED,
        code_version="5",
        details="One metric on 0-1 per scenario is watched, and those of its composite score.",
        scores=("episode_scores", "scenario", "dtef games run"),
    )
)


@asset_check(asset=games_drift)
def baselines_are_unchanged(store: Store) -> dg.AssetCheckResult:
    """Games between baselines have the same values in every snapshot; otherwise the game changed without a new version."""
    offenders = store.warehouse.query(lambda connection: list(find_moved_baselines(connection)), only=["episode_scores"])
    sql = "SELECT count(DISTINCT episode_id) FROM episode_scores WHERE starts_with(model, 'baseline/')"
    episodes = store.warehouse.query(lambda connection: connection.execute(sql).fetchall()[0][0], only=["episode_scores"])
    return verdict(offenders, n_checked=episodes)


GAMES_ROLL_UPS = [persona_results, games_costs, games_drift, report]
games_pipeline, games_roll_ups, games_boards_after_run = family_jobs(GAMES_FAMILY, GAMES_STAGES, GAMES_ROLL_UPS)
GAMES_JOBS = [games_pipeline, games_roll_ups]
GAMES_SENSORS = [games_boards_after_run]
