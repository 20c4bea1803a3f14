"""Baselines that every scenario has, and the random numbers that a baseline of an episode draws from."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import Chooses, Scenario
from dtef_pipeline.identity import digest
from dtef_pipeline.text.nearest import nearest


def baseline_rng(seed: int, seat: int) -> random.Random:
    """The random numbers of a baseline at a seat of an episode: those of other seats and of the deal say nothing of them."""
    return random.Random(digest(seed, seat))  # noqa: S311 - a game's dice, no secret


def baselines_of(scenario: Scenario[Any]) -> Mapping[str, Chooses]:
    """All baselines of a scenario by name: `random`, `first-legal`, and its own, which may put others in their place."""

    def at_random(state: Any, seat: int, rng: random.Random) -> str:
        return rng.choice(scenario.legal(state, seat))

    def first_legal(state: Any, seat: int, _: random.Random) -> str:
        return scenario.legal(state, seat)[0]

    return {"random": at_random, "first-legal": first_legal, **scenario.baselines}


def baseline_of(scenario: Scenario[Any], name: str) -> Chooses:
    """A baseline of a scenario by name. Raises ConfigError for one that it does not have."""
    known = baselines_of(scenario)
    if name not in known:
        raise ConfigError(f"baseline/{name}: {scenario.name} has none of that name; allowed: {nearest(name, known)}")
    return known[name]
