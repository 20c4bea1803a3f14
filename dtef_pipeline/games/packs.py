"""Scenario packs: a manifest with its engine, found by the entry points `dtef.scenarios`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from traceback import walk_tb
from typing import Any

from dtef_pipeline.errors import ConfigError, DtefError
from dtef_pipeline.games.contract import Scenario
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.text.name_matching import list_nearest

ADAPTERS_GROUP = "dtef.scenarios"
MakeScenario = Callable[[ScenarioManifest], Scenario[Any]]
"""Type of the entry points: makes the scenario of a manifest. Raises ConfigError for unknown settings."""


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
def adapters() -> Mapping[str, MakeScenario]:
    """Return the adapters by the name of their scenario: all entry points of the group that can be imported."""
    return {point.name: _LazyAdapter(point) for point in entry_points(group=ADAPTERS_GROUP)}


class _LazyAdapter:
    """An adapter that is imported on first use, because engines are slow to import."""

    def __init__(self, entry_point: EntryPoint) -> None:
        self._entry_point = entry_point

    def __call__(self, manifest: ScenarioManifest) -> Scenario[Any]:
        scenario: Scenario[Any] = self._entry_point.load()(manifest)
        return scenario

    def __str__(self) -> str:
        return describe_adapter(self._entry_point)


def describe_adapter(entry_point: EntryPoint) -> str:
    """Return `the adapter made_games:of_manifest of the package made-games 1.0`."""
    package = f" of the package {entry_point.dist.name} {entry_point.dist.version}" if entry_point.dist else ""
    return f"the adapter {entry_point.value}{package}"


def list_lacking_names(scenario: object) -> list[str]:
    """Return the attributes and methods of the contract that the scenario lacks."""
    methods = (name for name, member in vars(Scenario).items() if not name.startswith("_") and callable(member))
    return [name for name in (*Scenario.__annotations__, *methods) if not hasattr(scenario, name)]


def _make_scenario(manifest: ScenarioManifest, maker: MakeScenario) -> Scenario[Any]:
    """Make a scenario. Raises ConfigError, with the adapter's package, if the adapter fails or its scenario lacks a part of the
    contract."""
    adapter_label = f"scenario {manifest.id}: {maker if isinstance(maker, _LazyAdapter) else 'its adapter'}"
    try:
        scenario = maker(manifest)
    except DtefError:
        raise
    except Exception as error:  # an engine may fail in any way while it is imported
        raise ConfigError(f"{adapter_label} cannot be used: {type(error).__name__}: {error}") from error
    if lacking := list_lacking_names(scenario):
        raise ConfigError(f"{adapter_label} makes a scenario without {', '.join(lacking)}: see dtef_pipeline/games/contract.py")
    if len(scenario.seats) != len(manifest.seats):
        raise ConfigError(
            f"{adapter_label} has {len(scenario.seats)} seats, but its manifest has {len(manifest.seats)}; allowed: equal numbers"
        )
    if scenario.name not in (manifest.id, manifest.adapter_name):
        raise ConfigError(f"{adapter_label} makes {scenario.name}; allowed: {manifest.id}")
    return scenario


def pack(name: str, manifests: Mapping[str, ScenarioManifest]) -> Pack:
    """Return the pack of a name. Raises ConfigError if there is no manifest or adapter of the name, or the adapter cannot be used."""
    if name not in manifests:
        raise ConfigError(f"scenario {name}: unknown; allowed: {list_nearest(name, manifests)}")
    manifest = manifests[name]
    if manifest.adapter_name not in adapters():
        raise ConfigError(
            f"scenario {name}: no adapter {manifest.adapter_name}; allowed: an entry point of that name in the group {ADAPTERS_GROUP}, "
            f"or `adapter` in the manifest with the name of another engine: {list_nearest(manifest.adapter_name, adapters())}"
        )
    return Pack(manifest, _make_scenario(manifest, adapters()[manifest.adapter_name]))


def find_pack(name: str, manifests: Mapping[str, ScenarioManifest]) -> Pack | None:
    """Return the pack of a name; None without a manifest or adapter of the name."""
    return pack(name, manifests) if name in manifests and manifests[name].adapter_name in adapters() else None


_OWN_PACKAGE = "dtef_pipeline"


@contextmanager
def name_failing_adapters() -> Iterator[None]:
    """Raise errors from another package's engine as ConfigError, with the adapter and its package; other errors stay unchanged."""
    try:
        yield
    except DtefError:
        raise
    except Exception as error:
        if (whose := find_adapter_at_fault(error)) is None:
            raise
        raise ConfigError(f"{whose} fails: {type(error).__name__}: {error}") from error


def find_adapter_at_fault(error: BaseException) -> str | None:
    """Describe the adapter of another package that caused an error, or return None.

    The adapter is the cause if any frame of the traceback is code of its package, or if one of its objects lacks an attribute.
    """
    frames = (frame for frame, _ in walk_tb(error.__traceback__))
    packages = {_take_package_name(str(frame.f_globals.get("__name__", ""))) for frame in frames}
    if isinstance(error, AttributeError) and error.obj is not None:
        packages.add(_take_package_name(type(error.obj).__module__))
    packages.discard(_OWN_PACKAGE)
    points = (point for point in entry_points(group=ADAPTERS_GROUP) if _take_package_name(point.module) in packages)
    return next((f"scenario {point.name}: {describe_adapter(point)}" for point in points), None)


def _take_package_name(module: str) -> str:
    return module.partition(".")[0]
