"""What a strategy that was read off decision points is worth: its exact value against each baseline, and its exploitability.

From draws the strategy is known up to chance: 95 % intervals come from drawing anew within each information set. Two things are not left
to plain resampling, as simulations have shown (docs/scenarios/kuhn.md):

- A command that was never drawn would never be drawn anew, so that intervals of players who almost always do the same would be far too
  short. The width comes from shares with half a draw added to every legal command.
- The exploitability of a strategy that was drawn is too high on average: whoever answers it best also answers its accidents. Drawing
  anew, without additions and one draw fewer per information set, shows by how much; the corrected value has that taken off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.decision_points import (
    DrawCounts,
    Readings,
    decision_points,
    draw_counts,
    strategy_of_draws,
    strategy_of_weights,
)
from dtef_pipeline.games.exact_play import ExactGame, Reals, exact_game
from dtef_pipeline.games.strategies import SmallScenario, Strategy, uniform
from dtef_pipeline.text.counted import and_more, counted

STRATEGY_RESAMPLES = 1000
_ADDED_DRAWS = 0.5
"""Draws that are added to each legal command where the width of an interval is found: Jeffreys' prior."""
_NORMAL_QUANTILE = 1.959963984540054
_NO_DRAWS = "probabilities were given, not draws"
_AS_DRAWN = "the interval is that of the corrected value"
_ONE_DRAW = "an interval needs two readable draws in every information set"


@dataclass(frozen=True, slots=True)
class ExactEstimate:
    """A number in chips per hand, with its 95 % interval."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    """Why there is no value, or no interval."""


@dataclass(frozen=True, slots=True)
class BaselineValue:
    """What a strategy wins from a baseline, by the seat that it plays."""

    baseline: str
    first: ExactEstimate
    second: ExactEstimate
    mean: ExactEstimate
    """Of both seats: what it wins per hand where every deal is played in both."""


@dataclass(frozen=True, slots=True)
class StrategyValues:
    """All that a strategy of both seats is worth. Chips per hand."""

    strategy: Strategy
    """As it was read, with what was filled in."""
    counts: Mapping[str, DrawCounts]
    """By decision point that was asked; empty where probabilities were given."""
    missing: tuple[str, ...]
    """Decision points without a strategy, as nobody asked there or no draw was readable, and nothing was filled in."""
    filled: tuple[str, ...]
    """Those that were filled in."""
    against: tuple[BaselineValue, ...]
    """By baseline that has a strategy."""
    exploitability: ExactEstimate
    """Of the strategy as it stands, from draws too high on average; lower is better, 0 is perfect play. Without an interval."""
    exploitability_corrected: ExactEstimate
    """Without the part that the chance of the draws adds on average."""
    losses: Mapping[str, float]
    """By decision point, chips per hand in that seat that the strategy gives away there against `nash`, the largest first: 0 or more, and
    for each seat their sum is what perfect play wins beyond the strategy. Empty where a decision point has no strategy, or the scenario
    no baseline `nash`."""
    uniform_exploitability: float
    """Of playing every legal command equally often: the scale."""


def values_of_readings(
    scenario: SmallScenario[Any],
    readings: Readings,
    *,
    fill: Strategy | None = None,
    resamples: int = STRATEGY_RESAMPLES,
    seed: int = 1,
) -> StrategyValues:
    """What the strategy of some draws per decision point is worth.

    The strategy is the share of each legal command among the readable draws of a point. Draws that are illegal, unparsed or refused are
    counted and else left out. A point without a readable draw has no strategy: all values are null then, and their reason names it.
    `fill`: a strategy that is played in such points instead, said in `filled`; it counts as known. Never is anything filled in unasked.
    Raises ConfigError for unknown points, commands that are not legal, and less than 2 resamples.
    """
    if resamples < 2:
        raise ConfigError(f"resamples: got {resamples}; allowed: 2 or more")
    counts = draw_counts(decision_points(scenario), readings)
    return _values(scenario, strategy_of_draws(counts), counts, fill, _Redrawn(counts, resamples, seed))


def values_of_probabilities(scenario: SmallScenario[Any], weights: Strategy, *, fill: Strategy | None = None) -> StrategyValues:
    """What a strategy is worth whose probabilities are known, such as those that a model gives to the letters of the commands.

    Those of one point are scaled to the sum 1; a point whose probabilities are all 0 has no strategy. There are no intervals. `fill` as in
    `values_of_readings`. Raises ConfigError for unknown points, commands that are not legal, and numbers that are no probabilities.
    """
    return _values(scenario, strategy_of_weights(decision_points(scenario), weights), {}, fill, None)


@dataclass(frozen=True, slots=True)
class _Redrawn:
    """How draws are drawn anew."""

    counts: Mapping[str, DrawCounts]
    resamples: int
    seed: int

    def choices(self, game: ExactGame, seat: int, strategy: Strategy, *, added: float, fewer: int) -> Reals:
        """(resamples, choices): strategies of draws anew, of shares with draws added to each command, with fewer draws than there were."""
        rng = np.random.default_rng([self.seed, seat, fewer])
        found = np.tile(game.vector(strategy, seat), (self.resamples, 1))
        for point in game.seats[seat].points:
            counted_here = self.counts.get(point.name)
            if counted_here is not None and counted_here.readable:
                drawn = np.array([counted_here.commands[command] for command in point.legal], dtype=float) + added
                number = counted_here.readable - fewer
                found[:, point.places] = rng.multinomial(number, drawn / drawn.sum(), self.resamples) / number
        return found

    @property
    def too_few(self) -> bool:
        """Whether an information set has one readable draw: of it alone nobody can tell how much draws differ."""
        return any(found.readable == 1 for found in self.counts.values())


def _values(
    scenario: SmallScenario[Any],
    read: Strategy,
    counts: Mapping[str, DrawCounts],
    fill: Strategy | None,
    redrawn: _Redrawn | None,
) -> StrategyValues:
    game = exact_game(scenario)
    absent = tuple(point.name for seat in game.seats for point in seat.points if point.name not in read)
    strategy = read if fill is None else {**read, **{name: fill[name] for name in absent if name in fill}}
    missing = tuple(name for name in absent if name not in strategy)
    scale = uniform(scenario)
    worth = _Worth(game, strategy, redrawn, missing)
    exploitability, corrected = worth.exploitability()
    return StrategyValues(
        strategy=strategy,
        counts=counts,
        missing=missing,
        filled=tuple(name for name in absent if name in strategy),
        against=tuple(worth.against(name, baseline) for name, baseline in scenario.strategies.items()),
        exploitability=exploitability,
        exploitability_corrected=corrected,
        losses=worth.losses(scenario.strategies.get("nash")),
        uniform_exploitability=float(game.exploitability(game.vector(scale, 0), game.vector(scale, 1))),
    )


class _Worth:
    """A strategy and its resamples, and what they are worth."""

    def __init__(self, game: ExactGame, strategy: Strategy, redrawn: _Redrawn | None, missing: tuple[str, ...]) -> None:
        self._game = game
        self._why_no_value = _why_no_value(missing)
        self._why_no_interval = _NO_DRAWS if redrawn is None else _ONE_DRAW if redrawn.too_few else ""
        if self._why_no_value:
            return
        self._own = (game.vector(strategy, 0), game.vector(strategy, 1))
        if redrawn is not None and not self._why_no_interval:
            first, second = (redrawn.choices(game, seat, strategy, added=_ADDED_DRAWS, fewer=0) for seat in (0, 1))
            self._wide = (first, second)
            first, second = (redrawn.choices(game, seat, strategy, added=0, fewer=1) for seat in (0, 1))
            self._plain = (first, second)

    def against(self, name: str, baseline: Strategy) -> BaselineValue:
        """What it wins from a baseline from both seats."""
        if self._why_no_value:
            none = ExactEstimate(None, reason=self._why_no_value)
            return BaselineValue(name, none, none, none)
        theirs = (self._game.vector(baseline, 0), self._game.vector(baseline, 1))
        won = self._by_seat(self._own, theirs)
        redrawn = [None] * 3 if self._why_no_interval else self._by_seat(self._wide, theirs)
        first, second, mean = (self._estimate(float(value), spread) for value, spread in zip(won, redrawn, strict=True))
        return BaselineValue(name, first, second, mean)

    def exploitability(self) -> tuple[ExactEstimate, ExactEstimate]:
        """Of the strategy as it is, and corrected."""
        if self._why_no_value:
            none = ExactEstimate(None, reason=self._why_no_value)
            return none, none
        value = max(0.0, float(self._game.exploitability(*self._own)))
        if self._why_no_interval:
            known = self._why_no_interval == _NO_DRAWS
            return self._estimate(value, None), ExactEstimate(value if known else None, reason=self._why_no_interval)
        corrected = 2 * value - float(self._game.exploitability(*self._plain).mean())
        half = self._half(self._game.exploitability(*self._wide))
        interval = (max(0.0, corrected - half), max(0.0, corrected + half))
        return ExactEstimate(value, reason=_AS_DRAWN), ExactEstimate(max(0.0, corrected), *interval)

    def losses(self, perfect: Strategy | None) -> Mapping[str, float]:
        """What it gives away in each information set against perfect play."""
        if self._why_no_value or perfect is None:
            return {}
        found: dict[str, float] = {}
        for seat, choices in enumerate(self._own):
            lost = self._game.losses(choices, self._game.vector(perfect, 1 - seat), seat)
            found |= {point.name: float(one) for point, one in zip(self._game.seats[seat].points, lost, strict=True)}
        return dict(sorted(found.items(), key=lambda one: -one[1]))

    def _by_seat(self, own: tuple[Reals, Reals], theirs: tuple[Reals, Reals]) -> tuple[Reals, Reals, Reals]:
        """What the first seat wins, what the second wins, and their mean."""
        first, second = self._game.value(own[0], theirs[1]), -self._game.value(theirs[0], own[1])
        return first, second, (first + second) / 2

    def _estimate(self, value: float, redrawn: Reals | None) -> ExactEstimate:
        if redrawn is None:
            return ExactEstimate(value, reason=self._why_no_interval)
        half = self._half(redrawn)
        return ExactEstimate(value, value - half, value + half)

    def _half(self, redrawn: Reals) -> float:
        """Half of an interval's width."""
        return _NORMAL_QUANTILE * float(redrawn.std(ddof=1))


def _why_no_value(missing: tuple[str, ...]) -> str:
    return f"no strategy in {counted(len(missing), 'information set')}: {and_more(missing, 3)}" if missing else ""
