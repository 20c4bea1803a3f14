"""Scenario packs: a manifest with the engine that plays it, found by the entry points `dtef.scenarios`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import Scenario
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.text.nearest import nearest

ADAPTERS_GROUP = "dtef.scenarios"
OfManifest = Callable[[ScenarioManifest], Scenario[Any]]
"""What an entry point of the group names: makes the scenario of a manifest. Raises ConfigError for settings that it does not know."""


@dataclass(frozen=True, slots=True)
class Pack:
    """A scenario with its manifest."""

    manifest: ScenarioManifest
    scenario: Scenario[Any]

    @property
    def name(self) -> str:
        """League and scenario: `poker/kuhn`."""
        return self.manifest.id


@cache
def adapters() -> Mapping[str, OfManifest]:
    """What makes each scenario, by its name: all entry points of the group that can be imported."""
    return {one.name: _Loaded(one) for one in entry_points(group=ADAPTERS_GROUP)}


class _Loaded:
    """An adapter that is imported when it is first used: engines import much."""

    def __init__(self, entry_point: EntryPoint) -> None:
        self._entry_point = entry_point

    def __call__(self, manifest: ScenarioManifest) -> Scenario[Any]:
        made: Scenario[Any] = self._entry_point.load()(manifest)
        return made


def pack(name: str, manifests: Mapping[str, ScenarioManifest]) -> Pack:
    """The pack of a name. Raises ConfigError where no manifest or no adapter has the name."""
    if name not in manifests:
        raise ConfigError(f"scenario {name}: not known; allowed: {nearest(name, manifests)}")
    if name not in adapters():
        raise ConfigError(
            f"scenario {name}: no adapter; allowed: an entry point of that name in the group {ADAPTERS_GROUP}, "
            "or, for another one's rules with other settings, its id"
        )
    return Pack(manifests[name], adapters()[name](manifests[name]))


def pack_if_installed(name: str, manifests: Mapping[str, ScenarioManifest]) -> Pack | None:
    """The pack of a name; None where no manifest or no adapter has the name."""
    return pack(name, manifests) if name in manifests and name in adapters() else None
