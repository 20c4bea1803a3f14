"""Strategies: the probability of each command in each information set, and the baselines that play them.

An information set consists of all states that look the same to the seat to move. A small game has few of them, each with a name.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, TypeVar

from dtef_pipeline.games.contract import ChooseCommand, Scenario

SmallState = TypeVar("SmallState")
Strategy = Mapping[str, Mapping[str, float]]
"""Probability of each command by information set; 0 for a command left out. It may cover one seat or both."""


class SmallScenario(Scenario[SmallState], Protocol[SmallState]):
    """A zero-sum scenario of two seats with few enough states to enumerate. Seats forget nothing."""

    @property
    def strategies(self) -> Mapping[str, Strategy]:
        """The strategies of both seats that its baselines play, by name: `nash`, `random` and others."""

    def __hash__(self) -> int:
        """Scenarios are hashable, so that the enumerated game is cached."""

    def deals(self) -> Iterator[SmallState]:
        """Return all first states, all equally likely."""

    def information(self, state: SmallState, seat: int) -> str:
        """Return the name of the information set of a seat to move; those of different seats have different names."""


def iterate_states_to_move(scenario: SmallScenario[SmallState]) -> Iterator[tuple[SmallState, int]]:
    """Yield all states in which a seat is to move, with the seat: deal by deal, each state before its successors."""
    for deal in scenario.deals():
        waiting = [deal]
        while waiting:
            state = waiting.pop()
            seat = scenario.seat_to_move(state)
            if seat is None:
                continue
            yield state, seat
            waiting += [scenario.step(state, seat, command) for command in reversed(scenario.legal(state, seat))]


def build_strategy(
    scenario: SmallScenario[SmallState], choose_command: Callable[[tuple[str, ...]], Mapping[str, float]]
) -> Strategy:
    """Build a strategy of both seats that depends only on the legal commands."""
    return {
        scenario.information(state, seat): choose_command(scenario.legal(state, seat))
        for state, seat in iterate_states_to_move(scenario)
    }


def build_uniform_strategy(scenario: SmallScenario[SmallState]) -> Strategy:
    """Build the strategy of both seats that plays each legal command equally often."""
    return build_strategy(scenario, lambda legal: dict.fromkeys(legal, 1 / len(legal)))


def make_strategy_baseline(scenario: SmallScenario[SmallState], name: str) -> ChooseCommand:
    """Make the baseline that plays one of the scenario's strategies; it draws a command if more than one has a probability above 0."""

    def choose_command(state: SmallState, seat: int, rng: random.Random) -> str:
        shares = scenario.strategies[name][scenario.information(state, seat)]
        weights = {command: share for command, share in shares.items() if share > 0}
        return next(iter(weights)) if len(weights) == 1 else rng.choices([*weights], [*weights.values()])[0]

    return choose_command
