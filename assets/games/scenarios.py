"""The scenarios that can be played: one partition per scenario of a league."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import dagster as dg

from assets.games.game_catalog import find_scenario_version, load_known_scenarios
from assets.stage.file_notes import list_partitions
from assets.stage.resources import Store
from dtef_pipeline.games.packs import Pack, pack
from dtef_pipeline.games.personas import Player, require_approved
from dtef_pipeline.games.tables import LEAGUE_SPACE


def refuse_unapproved(players: Iterable[Player], *, is_allowed: bool) -> None:
    """Raise ConfigError for draft or retired personas, unless the run allows them."""
    if not is_allowed:
        require_approved(players, ", or any persona with `unapproved: true` in the run's configuration")


def load_scenario_pack(store: Store, key: str, versions: Mapping[str, int] = MappingProxyType({})) -> Pack:
    """Load the pack of a partition, in the version in `versions`, else in the version in play. Raises ConfigError if there is none."""
    if key in versions:
        return pack(key, {key: find_scenario_version(store.settings, key, versions[key])})
    return pack(key, load_known_scenarios(store.settings))


def add_scenarios(instance: dg.DagsterInstance, names: Sequence[str]) -> None:
    """Register scenarios as partitions. Repeating it changes nothing."""
    known_names = set(list_partitions(instance, LEAGUE_SPACE))
    if new := [name for name in names if name not in known_names]:
        instance.add_dynamic_partitions(LEAGUE_SPACE.name, new)
