"""Pins the versions in a games manifest on submission, so that later changes of scenarios and personas do not affect it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from dtef_pipeline.games.entrants import name_opponent_item
from dtef_pipeline.games.episode_items import NO_OPPONENT, resolve_opponents
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.personas import Persona
from dtef_pipeline.games.settings import GamesSettings


class PinnedScenario(NamedTuple):
    """The pinned version, seeds and opponents of one scenario."""

    scenario_version: int
    seeds: str
    """Seeds in full, such as `1-40`."""
    opponents: list[str]
    """Opponents as in items; empty: the scenario has one seat."""


def pin_scenario(pack: Pack, seeds: str | None, opponents: Iterable[str]) -> PinnedScenario:
    """Pin a scenario's present version with the manifest's settings. Raises ConfigError if a scenario with several seats has no
    opponents."""
    manifest = pack.manifest
    span = f"{manifest.seeds.first}-{manifest.seeds.first + manifest.seeds.count - 1}"
    names = resolve_opponents([name_opponent_item(pack, opponent) for opponent in opponents], manifest)
    return PinnedScenario(manifest.version, span if seeds is None else seeds, [name for name in names if name != NO_OPPONENT])


def pin_personas(named: Iterable[str], personas: Mapping[str, Persona]) -> dict[str, int]:
    """Return by id the versions of the personas in players' names, `calm@model`. A name such as `calm:v2@model` already has its version.

    The version does not go into the name: an opponent's name is part of item ids.
    """
    ids = [name.partition("@")[0] for name in named if "@" in name]
    return {name: personas[name].version for name in ids if name in personas and personas[name].id == name}


def apply_pins(settings: GamesSettings, scenarios: Mapping[str, PinnedScenario], personas: Mapping[str, int]) -> GamesSettings:
    """Return the settings with the pinned versions."""
    return settings.model_copy(
        update={
            "scenario_versions": {key: pin.scenario_version for key, pin in scenarios.items()},
            "scenario_seeds": {key: pin.seeds for key, pin in scenarios.items()},
            "scenario_opponents": {key: pin.opponents for key, pin in scenarios.items()},
            "persona_versions": dict(personas),
        }
    )
