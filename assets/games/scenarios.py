"""The scenarios that can be played: a partition per scenario of a league."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import dagster as dg
from pydantic import Field

from assets.games.known_games import known_scenario_version, known_scenarios
from assets.stage.noted_files import partitions_of
from assets.stage.resources import Store
from dtef_pipeline.games.approved import require_approved
from dtef_pipeline.games.entrants import opponent_item_name
from dtef_pipeline.games.episode_items import GameItem, items_given
from dtef_pipeline.games.packs import Pack, pack
from dtef_pipeline.games.players import Player
from dtef_pipeline.games.space import LEAGUE_SPACE

LEAGUE_SCENARIO = dg.DynamicPartitionsDefinition(name=LEAGUE_SPACE.name)
GAMES_GROUP = {"group_name": "games"}
"""Where the assets of the family stand in the UI."""


class VersionsConfig(dg.Config):
    """Which version of each scenario is meant."""

    scenario_versions: dict[str, int] = Field(
        default={}, description="By scenario, the version that is played; of one that is not named: the version in play."
    )


class LeagueConfig(VersionsConfig):
    """Which episodes of each scenario are to be played."""

    seeds: str | None = Field(default=None, description="Seeds, such as 1-100 or 1-10,42; none: those of each manifest.")
    opponents: list[str] = Field(
        default=[], description="Baselines, models or persona@model that every player meets; none: those of each manifest."
    )
    scenario_seeds: dict[str, str] = Field(default={}, description="By scenario, seeds that are played in place of the others.")
    scenario_opponents: dict[str, list[str]] = Field(
        default={}, description="By scenario, opponents that every player meets in place of the others."
    )


class EntrantsConfig(LeagueConfig):
    """And who plays them."""

    players: list[str] = Field(
        default=[],
        description="Models, collections, persona@model, baseline/NAME where there is one, or baselines: all; none: nobody plays.",
    )
    personas: list[str] = Field(
        default=[], description="Ids of the personas that every model plays, or none: as itself; empty: as itself."
    )
    persona_versions: dict[str, int] = Field(
        default={},
        description="By id of a persona, the version that the id stands for; of one that is not named: the version in play.",
    )


class UnapprovedConfig(dg.Config):
    """Whether personas are asked that nobody approved."""

    unapproved: bool = Field(
        default=False,
        description="Let personas play that are drafts or retired; otherwise a run that names one stops before it asks.",
    )


def refuse_unapproved(config: UnapprovedConfig, players: Iterable[Player]) -> None:
    """Raises ConfigError for personas that are drafts or retired, unless the run lets them play."""
    if not config.unapproved:
        require_approved(players, ", or any with `unapproved: true` in the run's configuration")


def pack_of(store: Store, key: str, versions: Mapping[str, int] = MappingProxyType({})) -> Pack:
    """The pack of a partition, in the version that `versions` has for it, or else in the one in play. Raises ConfigError where there is none."""
    if key in versions:
        return pack(key, {key: known_scenario_version(store.settings, key, versions[key])})
    return pack(key, known_scenarios(store.settings))


def items_of(pack: Pack, config: LeagueConfig) -> list[GameItem]:
    """What a run plays of a scenario. Raises ConfigError for seeds or opponents that cannot be."""
    seeds = config.scenario_seeds.get(pack.name, config.seeds)
    opponents = config.scenario_opponents.get(pack.name, config.opponents)
    return items_given(pack.manifest, seeds, [opponent_item_name(pack, name) for name in opponents])


def versions_played(context: dg.AssetCheckExecutionContext) -> dict[str, int]:
    """For checks: `scenario_versions` of the run's episodes."""
    given: Mapping[str, Any] = context.run.run_config
    return dict(given.get("ops", {}).get("episodes", {}).get("config", {}).get("scenario_versions", {}))


def add_scenarios(instance: dg.DagsterInstance, names: Sequence[str]) -> None:
    """Make scenarios known as partitions. Done again, it changes nothing."""
    known = set(partitions_of(instance, LEAGUE_SPACE))
    if new := [name for name in names if name not in known]:
        instance.add_dynamic_partitions(LEAGUE_SPACE.name, new)
