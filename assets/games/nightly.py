"""The nightly schedule of the games family: plays the panel's scenarios in a new snapshot."""

from collections.abc import Mapping, Sequence

import dagster as dg

from assets.engine.nightly_schedules import NightPlan, build_night_schedule
from assets.games.game_catalog import load_known_personas, load_known_scenarios
from assets.games.scenarios import add_scenarios
from assets.stage.file_notes import list_partitions
from assets.stage.partitions import load_store_models
from assets.stage.resources import Store
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.run_settings import run_config
from dtef_pipeline.games.entrants import list_absent_by_scenario, plan_league
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.pack_files import check_metric_weights
from dtef_pipeline.games.packs import pack
from dtef_pipeline.games.personas import require_approved
from dtef_pipeline.games.settings import GAMES_STAGE_SETTINGS, GamesSettings, list_panel_players, select_scenarios
from dtef_pipeline.games.tables import LEAGUE_SPACE


def plan_games(context: dg.ScheduleEvaluationContext, store: Store, panel: GamesSettings) -> NightPlan:
    """Plan all stages. A scenario that was never played becomes a partition."""
    manifests = load_known_scenarios(store.settings)
    keys = select_scenarios(panel, manifests)
    panel = panel.model_copy(update={"players": list_panel_players(panel)})
    _require_players(panel, store, manifests, keys)
    add_scenarios(context.instance, keys)
    return NightPlan(list_partitions(context.instance, LEAGUE_SPACE), keys, keys, run_config(panel, GAMES_STAGE_SETTINGS))


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
    FAMILY_BY_NAME["games"],
    plan_games,
    name="games_nightly",
    job="games_pipeline",
    time=(3, 30),
    description="plays the scenarios in the section `games` of the panel (DTEF_PANEL) again, in a snapshot named after the date, with "
    "the panel's models, personas and baselines.",
    label="games",
    skip_reason="no scenario is known",
    names_any=lambda panel: bool(panel.scenarios),
    named=" that names scenarios",
)
GAMES_SCHEDULES = [games_nightly]
