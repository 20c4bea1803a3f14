"""Exact values of Kuhn and Leduc poker: the winnings of a strategy against another, and of a best response against it. No cards are drawn.

A strategy is a vector of weights, one per sequence of commands that a seat gave so far; a weight is the product of their probabilities. The
winnings of two strategies are then one product of matrices (von Stengel, Efficient computation of behavior strategies, 1996), and a best
response is a maximum per information set, from the last to the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from dtef_pipeline.games.small_poker import SmallHand, SmallPoker, Strategy

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.intp]
_ROOT = 0
"""The empty sequence, before any command. Sequence n + 1 ends with choice n of the seat."""


class ChoicePoint(NamedTuple):
    """One information set of a seat, and the places of its commands in the vectors of choices."""

    name: str
    legal: tuple[str, ...]
    start: int
    """Place of the first command; the others follow."""
    before: int
    """Sequence of the seat that leads here."""

    @property
    def places(self) -> slice:
        return slice(self.start, self.start + len(self.legal))


class _Level(NamedTuple):
    """The information sets of a seat with the same number of earlier choices of the seat, as arrays."""

    points: Whole
    """Numbers among all information sets of the seat."""
    choices: Whole
    """All their choices, in order."""
    starts: Whole
    """Start of each information set among the choices."""
    owner: Whole
    """Information set of each choice, within the level."""
    before: Whole
    """Sequence that leads to each information set."""


@dataclass(frozen=True)
class SeatChoices:
    """All information sets of one seat, each after those that lead to it."""

    points: tuple[ChoicePoint, ...]
    levels: tuple[_Level, ...]

    @property
    def size(self) -> int:
        """Number of choices: the length of a strategy of this seat."""
        return sum(len(point.legal) for point in self.points)


@dataclass(frozen=True)
class ExactGame:
    """A zero-sum game of two seats: the choices of both and the winnings of seat 0."""

    name: str
    seats: tuple[SeatChoices, SeatChoices]
    payoffs: Any
    """(sequences of seat 0, sequences of seat 1), sparse: winnings of seat 0 at each pair of sequences, times the probability of the
    deal."""

    def vector(self, strategy: Strategy, seat: int) -> Reals:
        """Return (choices,): a strategy's probabilities at one seat."""
        points = self.seats[seat].points
        return np.array([strategy[point.name].get(command, 0.0) for point in points for command in point.legal])

    def weights(self, choices: Reals, seat: int) -> Reals:
        """Return (sequences,): for each sequence of a seat, the product of the probabilities of its choices. The first is 1."""
        products = np.ones(self.seats[seat].size + 1)
        for level in self.seats[seat].levels:
            products[level.choices + 1] = choices[level.choices] * products[level.before[level.owner]]
        return products

    def value(self, first: Reals, second: Reals) -> float:
        """Return chips that seat 0 wins per hand if it plays `first` and seat 1 plays `second`, on average over deals."""
        return float(np.sum(-self.against(first, 0) * self.weights(second, 1)))

    def against(self, choices: Reals, seat: int) -> Reals:
        """Return (sequences of the other seat,): what each sequence of the other seat wins against a strategy of this one."""
        by_other = self.payoffs.T if seat == 0 else self.payoffs
        winnings: Reals = by_other @ self.weights(choices, seat)
        return -winnings if seat == 0 else winnings

    def compute_best_response(self, choices: Reals, seat: int) -> float:
        """Return the other seat's winnings per hand with a best response to a strategy of this seat."""
        winnings = self.against(choices, seat)
        for level in reversed(self.seats[1 - seat].levels):
            np.add.at(winnings, level.before, np.maximum.reduceat(winnings[level.choices + 1], level.starts))
        return float(winnings[_ROOT])

    def exploitability(self, first: Reals, second: Reals) -> float:
        """Return the mean of what best responses win against each seat of a player with the strategies `first` and `second`. 0 is
        perfect play; lower is better, in chips per hand. Source: OpenSpiel, `exploitability`, which is half of NashConv."""
        return (self.compute_best_response(first, 0) + self.compute_best_response(second, 1)) / 2


@lru_cache(maxsize=8)
def build_exact_game(scenario: SmallPoker) -> ExactGame:
    """Build the game of a scenario by enumerating all deals and all ways to play them."""
    tree = _Tree(scenario)
    seats = (_build_seat_choices(tree.points[0]), _build_seat_choices(tree.points[1]))
    payoffs = np.array([*tree.won.values()]) / tree.deals
    shape = (seats[0].size + 1, seats[1].size + 1)
    return ExactGame(scenario.name, seats, csr_array((payoffs, tuple(zip(*tree.won, strict=True))), shape=shape))


class _Tree:
    """Result of enumerating all states: the information sets of both seats, and the winnings of seat 0 at each pair of sequences."""

    def __init__(self, scenario: SmallPoker) -> None:
        self.points: tuple[dict[str, ChoicePoint], dict[str, ChoicePoint]] = ({}, {})
        self.won: dict[tuple[int, int], float] = {}
        self.deals = 0
        for deal in scenario.deals():
            self.deals += 1
            self._walk(scenario, deal)

    def _walk(self, scenario: SmallPoker, deal: SmallHand) -> None:
        waiting = [(deal, (_ROOT, _ROOT))]
        while waiting:
            state, ends = waiting.pop()
            seat = scenario.seat_to_move(state)
            if seat is None:
                result = scenario.result(state)
                self.won[ends] = self.won.get(ends, 0.0) + (result.rewards[0] if result else 0.0)
                continue
            point = self._find_point(scenario, state, seat, ends[seat])
            for place, command in enumerate(point.legal, point.start + 1):
                next_ends = (place, ends[1]) if seat == 0 else (ends[0], place)
                waiting.append((scenario.step(state, seat, command), next_ends))

    def _find_point(self, scenario: SmallPoker, state: SmallHand, seat: int, before: int) -> ChoicePoint:
        points, name = self.points[seat], scenario.information(state, seat)
        if name not in points:
            last = next(reversed(points.values())) if points else None
            points[name] = ChoicePoint(name, scenario.legal(state, seat), last.places.stop if last else 0, before)
        if points[name].before != before:
            raise ValueError(f"{scenario.name}: seat {seat} forgets what it did before {name}")
        return points[name]


def _build_seat_choices(points: Mapping[str, ChoicePoint]) -> SeatChoices:
    depths: dict[int, int] = {_ROOT: 0}
    by_depth: dict[int, list[tuple[int, ChoicePoint]]] = {}
    for number, point in enumerate(points.values()):
        depth = depths[point.before]
        by_depth.setdefault(depth, []).append((number, point))
        depths.update(dict.fromkeys(range(point.start + 1, point.places.stop + 1), depth + 1))
    return SeatChoices(tuple(points.values()), tuple(_build_level(by_depth[depth]) for depth in sorted(by_depth)))


def _build_level(pairs: list[tuple[int, ChoicePoint]]) -> _Level:
    numbers, points = zip(*pairs, strict=True)
    sizes = np.array([len(point.legal) for point in points])
    return _Level(
        points=np.array(numbers),
        choices=np.concatenate([np.arange(point.start, point.places.stop) for point in points]),
        starts=np.concatenate([[0], np.cumsum(sizes)[:-1]]),
        owner=np.repeat(np.arange(len(points)), sizes),
        before=np.array([point.before for point in points]),
    )
