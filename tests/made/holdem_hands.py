"""Hands of hold'em for tests: the scenario as its manifest has it, and hands played by policies."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from dtef_pipeline.games.contract import find_baseline, make_baseline_rng
from dtef_pipeline.games.holdem.betting import HoldemHand
from dtef_pipeline.games.holdem.limit_holdem import LimitHoldem, of_manifest
from dtef_pipeline.games.manifest import read_manifest
from tests.conftest import ROOT

MANIFEST = ROOT / "data" / "scenarios" / "poker" / "limit-holdem.yaml"


@cache
def limit_holdem() -> LimitHoldem:
    return of_manifest(read_manifest(MANIFEST))


def played(seed: int, *baselines: str) -> HoldemHand:
    """A hand of two baselines, played to its end through the contract."""
    scenario = limit_holdem()
    players = [(find_baseline(scenario, name), make_baseline_rng(seed, seat)) for seat, name in enumerate(baselines)]
    state = scenario.reset(seed)
    while (seat := scenario.seat_to_move(state)) is not None:
        chooses, rng = players[seat]
        state = scenario.step(state, seat, chooses(state, seat, rng))
    return state


def won(seed: int, *baselines: str) -> tuple[float, ...]:
    """Net chips by seat."""
    result = limit_holdem().result(played(seed, *baselines))
    assert result is not None
    return result.rewards


def with_cards(own: str, other: str, board: str) -> HoldemHand:
    """A hand with these cards: seat 0 has the first two."""
    first, second, five = (tuple(cards.split()) for cards in (own, other, board))
    scenario = limit_holdem()
    dealt = (first[0], second[0], first[1], second[1], *five)
    rest = tuple(card for card in scenario.reset(1).deck if card not in dealt)
    return HoldemHand(dealt + rest)


def after_commands(state: Any, commands: Sequence[str]) -> Any:
    """The state after commands of whoever's turn it is."""
    scenario = limit_holdem()
    for command in commands:
        seat = scenario.seat_to_move(state)
        assert seat is not None
        state = scenario.step(state, seat, command)
    return state


def walk(seed: int, choose: Callable[[HoldemHand, random.Random], str] | None = None) -> list[HoldemHand]:
    """All states of one hand, from the first to the last, with commands at random."""
    rng, scenario = random.Random(seed), limit_holdem()
    states = [scenario.reset(seed)]
    while (seat := scenario.seat_to_move(states[-1])) is not None:
        command = choose(states[-1], rng) if choose else rng.choice(scenario.legal(states[-1], seat))
        states.append(scenario.step(states[-1], seat, command))
    return states
