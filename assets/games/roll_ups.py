"""The roll-ups of the games family, its jobs, and its nightly schedule, which plays the panel's scenarios in a new snapshot."""

from collections.abc import Mapping, Sequence

import dagster as dg

from assets.engine.family_assets import build_board_asset, family_jobs
from assets.engine.nightly_schedules import NightPlan, build_night_schedule
from assets.engine.site_report import report
from assets.games.game_catalog import load_known_personas, load_known_scenarios
from assets.games.stages import GAMES_STAGES, add_scenarios
from assets.stage.checks import asset_check, verdict
from assets.stage.family_drift import build_drift_assets
from assets.stage.partitions import load_store_models
from assets.stage.resources import Store
from assets.stage.roll_up import build_costs_asset
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.record import FamilyBoard, Preview
from dtef_pipeline.family.run_settings import run_config
from dtef_pipeline.games.entrants import list_absent_by_scenario, plan_league
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.pack_files import check_metric_weights
from dtef_pipeline.games.packs import pack
from dtef_pipeline.games.persona_results import GAME_RESULTS_READS, compute_game_results
from dtef_pipeline.games.personas import require_approved
from dtef_pipeline.games.play_drift import GAMES_WATCHED, find_moved_baselines
from dtef_pipeline.games.settings import GAMES_STAGE_SETTINGS, GamesSettings, list_panel_players, select_scenarios

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
    GAMES_FAMILY,
    GAMES_WATCHED,
    code_version="5",
    details="One metric on 0-1 per scenario is watched, and those of its composite score.",
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


def plan_games(
    context: dg.ScheduleEvaluationContext, store: Store, panel: GamesSettings, known_keys: Sequence[str]
) -> NightPlan:
    """Plan all stages. A scenario that was never played becomes a partition."""
    manifests = load_known_scenarios(store.settings)
    keys = select_scenarios(panel, manifests)
    panel = panel.model_copy(update={"players": list_panel_players(panel)})
    _require_players(panel, store, manifests, keys)
    add_scenarios(context.instance, keys)
    return NightPlan(keys, keys, run_config(panel, GAMES_STAGE_SETTINGS))


def _require_players(
    panel: GamesSettings, store: Store, manifests: Mapping[str, ScenarioManifest], keys: Sequence[str]
) -> None:
    """Raise ConfigError for unknown players, personas, opponents and seeds, and for a persona that is not approved."""
    models, personas = load_store_models(store), load_known_personas(store.settings)
    packs = {key: pack(key, manifests) for key in keys}
    check_metric_weights(packs.values())
    list_absent_by_scenario(packs, panel.players)
    for game in packs.values():
        require_approved(plan_league(game, panel, models, personas).all_players)


games_nightly = build_night_schedule(
    GAMES_FAMILY,
    plan_games,
    job="games_pipeline",
    time=(3, 30),
    description="plays the scenarios in the section `games` of the panel (DTEF_PANEL) again, in a snapshot named after the date, with "
    "the panel's models, personas and baselines.",
    skip_reason="no scenario is known",
    names_any=lambda panel: bool(panel.scenarios),
    named=" that names scenarios",
)
