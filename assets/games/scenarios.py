"""The scenarios that can be played: a partition per scenario of a league."""

from collections.abc import Iterable, Sequence

import dagster as dg
from pydantic import Field

from assets.games.known_games import known_scenarios
from assets.stage.noted_files import partitions_of
from assets.stage.resources import Store
from dtef_pipeline.games.approved import require_approved
from dtef_pipeline.games.packs import Pack, pack
from dtef_pipeline.games.players import Player
from dtef_pipeline.games.space import LEAGUE_SPACE

LEAGUE_SCENARIO = dg.DynamicPartitionsDefinition(name=LEAGUE_SPACE.name)
GAMES_GROUP = {"group_name": "games"}
"""Where the assets of the family stand in the UI."""


class LeagueConfig(dg.Config):
    """Which episodes of each scenario are to be played."""

    seeds: str | None = Field(default=None, description="Seeds, such as 1-100 or 1-10,42; none: those of each manifest.")
    opponents: list[str] = Field(
        default=[], description="Baselines, models or persona@model that every player meets; none: those of each manifest."
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


def pack_of(store: Store, key: str) -> Pack:
    """The pack of a partition. Raises ConfigError where there is none."""
    return pack(key, known_scenarios(store.settings))


def add_scenarios(instance: dg.DagsterInstance, names: Sequence[str]) -> None:
    """Make scenarios known as partitions. Done again, it changes nothing."""
    known = set(partitions_of(instance, LEAGUE_SPACE))
    if new := [name for name in names if name not in known]:
        instance.add_dynamic_partitions(LEAGUE_SPACE.name, new)
