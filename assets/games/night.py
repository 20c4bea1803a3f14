"""The nightly schedule of games: the panel's scenarios are played again in a snapshot of the night."""

from collections.abc import Mapping, Sequence

import dagster as dg

from assets.engine.panel import family_panel
from assets.games.known_games import known_personas, known_scenarios
from assets.games.scenarios import add_scenarios
from assets.stage.asked import models_of
from assets.stage.night_request import night_request
from assets.stage.noted_files import partitions_of
from assets.stage.resources import Store
from dtef_pipeline.family.run_settings import run_config
from dtef_pipeline.games.approved import require_approved
from dtef_pipeline.games.entrants import absent_by_scenario, entrants, opponent_item_name, opponent_named
from dtef_pipeline.games.episode_items import NO_OPPONENT, items_given
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.pack_faults import require_weighable
from dtef_pipeline.games.packs import pack
from dtef_pipeline.games.settings import (
    GAMES_PANEL_SECTION,
    GAMES_STAGE_SETTINGS,
    GamesSettings,
    players_of_panel,
    scenarios_of_panel,
)
from dtef_pipeline.games.space import LEAGUE_SPACE


@dg.schedule(
    name="nightly_games",
    job_name="games_pipeline",
    cron_schedule="30 3 * * *",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Every night at 3:30 UTC: the scenarios that the panel's section `games` (DTEF_PANEL) names are played again, in a snapshot "
    "named after the date, by its models, personas and baselines. Off until switched on.",
)
def nightly_games(context: dg.ScheduleEvaluationContext, store: Store) -> dg.RunRequest | dg.SkipReason:
    """One run for the panel, of all stages. A scenario that was never played becomes a partition."""
    panel = family_panel(store.settings, GAMES_PANEL_SECTION, GamesSettings)
    if panel is None or not panel.scenarios:
        return dg.SkipReason(
            f"no panel file with a section `{GAMES_PANEL_SECTION}` that names scenarios is named in DTEF_PANEL"
        )
    manifests = known_scenarios(store.settings)
    keys = scenarios_of_panel(panel, manifests)
    night = context.scheduled_execution_time.date().isoformat()
    panel = panel.model_copy(update={"players": players_of_panel(panel), "snapshot": night})
    _require_players(panel, store, manifests, keys)
    add_scenarios(context.instance, keys)
    known = partitions_of(context.instance, LEAGUE_SPACE)
    return night_request(context, "games", night, known, keys, keys, run_config(panel, GAMES_STAGE_SETTINGS))


def _require_players(
    panel: GamesSettings, store: Store, manifests: Mapping[str, ScenarioManifest], keys: Sequence[str]
) -> None:
    """Raises ConfigError for what is not known of players, personas, opponents and seeds, and for a persona that is not approved."""
    models, personas = models_of(store), known_personas(store.settings)
    packs = {key: pack(key, manifests) for key in keys}
    require_weighable(packs.values())
    absent_by_scenario(packs, panel.players)
    for found in packs.values():
        require_approved(entrants(found, models, personas, panel.players, panel.personas))
        items = items_given(found.manifest, panel.seeds, [opponent_item_name(found, name) for name in panel.opponents])
        for name in {item.opponent for item in items} - {NO_OPPONENT}:
            require_approved([opponent_named(found, models, personas, name)])


GAMES_SCHEDULES = [nightly_games]
