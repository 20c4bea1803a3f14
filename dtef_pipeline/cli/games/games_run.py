"""`dtef games run`, its estimate, and the roll-ups of games."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from assets.games.game_catalog import load_known_personas, load_known_scenarios
from dtef_pipeline.asking.call_plan import PLANNED
from dtef_pipeline.asking.models import Models
from dtef_pipeline.cli.families import load_stages
from dtef_pipeline.cli.family_run import AfterRun, FamilyRun, RunContextOfCommand, RunSelection
from dtef_pipeline.cli.stage_runs import StageRuns
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import build_option_settings
from dtef_pipeline.games.entrants import (
    ALL_BASELINES,
    list_absent_by_scenario,
    list_player_models,
    list_solo_scenarios,
    plan_league,
    refuse_unknown_models,
)
from dtef_pipeline.games.episode import LeaguePlan
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.pack_files import check_metric_weights
from dtef_pipeline.games.packs import Pack, pack
from dtef_pipeline.games.personas import BASELINE_PREFIX, require_approved
from dtef_pipeline.games.settings import GamesSettings
from dtef_pipeline.text.name_matching import filter_by_patterns
from resources.settings import Settings


def build_league_plans(options: GamesSettings, settings: Settings, models: Models) -> dict[str, LeaguePlan]:
    """Return the plan of each scenario. Prints which players a scenario lacks.

    Raises ConfigError if a scenario, player, persona, opponent or seed is unknown, or a persona is not approved.
    """
    manifests, personas = load_known_scenarios(settings), load_known_personas(settings)
    packs = {key: pack(key, manifests) for key in choose_scenarios(manifests, options.leagues, options.scenarios)}
    check_metric_weights(packs.values())
    _warn_useless_opponents(options, packs, manifests)
    refuse_unknown_models(list(packs.values()), models, personas, options.players)
    if (
        options.personas
        and options.players
        and all(player.startswith(BASELINE_PREFIX) or player in ALL_BASELINES for player in options.players)
    ):
        say(f"warning: --persona {', '.join(options.personas)} has no effect, because baselines do not play personas", err=True)
    absent = list_absent_by_scenario(packs, options.players)
    for key, names in absent.items():
        say(f"{key}: left out, because it has no {' and no '.join(names)}", err=True)
    empty = [key for key, names in absent.items() if len(names) == len(set(options.players))]
    plans = {key: plan_league(entry, options, models, personas) for key, entry in packs.items() if key not in empty}
    if not options.unapproved:
        require_approved([player for plan in plans.values() for player in plan.all_players], ", or any with --unapproved")
    return plans


def _warn_useless_opponents(
    options: GamesSettings, packs: Mapping[str, Pack], manifests: Mapping[str, ScenarioManifest]
) -> None:
    """Warn of scenarios with one seat if opponents were given. Raises ConfigError if no scenario has a seat for them."""
    solo = list_solo_scenarios(packs) if options.opponents else []
    if solo and len(solo) == len(packs):
        where = [key for key, manifest in manifests.items() if len(manifest.seats) > 1]
        raise ConfigError(
            f"--opponent {', '.join(options.opponents)}: {' and '.join(solo)} {'have' if len(solo) > 1 else 'has'} one seat and no opponents; "
            f"scenarios with opponents: {', '.join(where) or 'none'}"
        )
    for key in solo:
        say(f"warning: {key} has one seat: it is played without --opponent {', '.join(options.opponents)}", err=True)


def choose_scenarios(manifests: Mapping[str, ScenarioManifest], leagues: Sequence[str], scenarios: Sequence[str]) -> list[str]:
    """Return the scenarios of the leagues that match any of the patterns, `kuhn` or `poker/*`; without patterns all but retired ones.

    Raises ConfigError if a pattern matches nothing.
    """
    if not manifests:
        raise ConfigError("no scenario is known: DTEF_SCENARIOS names a folder with <league>/<scenario>.yaml")
    keys = [key for key, manifest in manifests.items() if scenarios or manifest.status != "retired"]
    matches = filter_by_patterns(keys, [f"{league}/*" for league in leagues], "--league")
    return filter_by_patterns(matches, [pattern if "/" in pattern else f"*/{pattern}" for pattern in scenarios], "--scenario")


LEAGUE_ESTIMATE = {
    **PLANNED,
    "planned": "Texts to be written, in all episodes",
    "calls": "Requests to send: all that are not replayed, if each game continues with legal moves",
    "calls_max": "Calls if every game lasts to its limit of turns, and every turn takes all its retries",
    "response_tokens_max": "Tokens of the responses to the most calls, if each is as long as max_tokens of the model allows",
}
"""Columns of an estimate of played games, by name."""
BASELINES_LEFT_OUT = "Episodes between baselines make no calls and are not counted."
HIGHEST_ASSUMES = (
    "The highest numbers assume that every game lasts to its limit of turns, "
    "every turn takes all its retries, and every response is as long as max_tokens allows."
)


def _choose(context: RunContextOfCommand) -> RunSelection:
    plans = build_league_plans(context.options, context.environment, context.models)
    specs = list_player_models([player for plan in plans.values() for player in plan.all_players])
    return RunSelection(list(plans), {spec.name for spec in specs}, specs)


def register(instance: Any, keys: Sequence[str]) -> None:
    from assets.games.stages import add_scenarios

    add_scenarios(instance, keys)


def _summarize_run(context: RunContextOfCommand, keys: Sequence[str], _: StageRuns) -> AfterRun:
    if not context.options.players:
        say("no player was given: stored episodes were scored; --player NAME plays new ones")
    return AfterRun()


GAMES_RUN = FamilyRun(
    "games",
    "scenario",
    partial(load_stages, "games", "GAMES_STAGES"),
    partial(build_option_settings, GamesSettings),
    _choose,
    register=register,
    after=_summarize_run,
    makes_warehouse=True,
    sized_by=("episodes", "episode"),
    failure_columns=("status", "reason"),
    assumes=lambda estimate: [BASELINES_LEFT_OUT, HIGHEST_ASSUMES],
    explained_as="games/estimate",
)
