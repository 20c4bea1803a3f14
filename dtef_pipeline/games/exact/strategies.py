"""Strategies: how often each command is chosen in each information set, and the baselines that play so.

An information set is all states that look the same to the seat that is to move. A small game has few of them, each with a name.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, TypeVar

from dtef_pipeline.games.contract import Chooses, Scenario

SmallState = TypeVar("SmallState")
Strategy = Mapping[str, Mapping[str, float]]
"""By information set, the probability of each command; of a command left out it is 0. It may cover one seat or both."""


class SmallScenario(Scenario[SmallState], Protocol[SmallState]):
    """A scenario of two seats, zero-sum, so small that all its states can be gone through. Seats forget nothing."""

    @property
    def strategies(self) -> Mapping[str, Strategy]:
        """The strategies of both seats that its baselines play, by name: `nash`, `random` and others."""

    def __hash__(self) -> int:
        """The game of a scenario is gone through once and kept."""

    def deals(self) -> Iterator[SmallState]:
        """All first states, each as likely as any other."""

    def information(self, state: SmallState, seat: int) -> str:
        """The name of the information set of a seat that is to move; those of different seats have different names."""


def iterate_states_to_move(scenario: SmallScenario[SmallState]) -> Iterator[tuple[SmallState, int]]:
    """All states in which a seat is to move, with the seat: deal by deal, a state before those that follow from it."""
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
    """The strategy of both seats that follows from the legal commands alone."""
    return {
        scenario.information(state, seat): choose_command(scenario.legal(state, seat))
        for state, seat in iterate_states_to_move(scenario)
    }


def build_uniform_strategy(scenario: SmallScenario[SmallState]) -> Strategy:
    """The strategy of both seats that plays each legal command equally often."""
    return build_strategy(scenario, lambda legal: dict.fromkeys(legal, 1 / len(legal)))


def make_strategy_baseline(scenario: SmallScenario[SmallState], name: str) -> Chooses:
    """The baseline that plays one of the scenario's strategies: it draws a command where more than one has a probability above 0."""

    def choose_command(state: SmallState, seat: int, rng: random.Random) -> str:
        shares = scenario.strategies[name][scenario.information(state, seat)]
        weights = {command: share for command, share in shares.items() if share > 0}
        return next(iter(weights)) if len(weights) == 1 else rng.choices([*weights], [*weights.values()])[0]

    return choose_command
