"""Decision points: every information set of a small game, to be asked one by one, and the strategy that the answers make.

Who is asked at each of them what it does has told its whole strategy, which `games.strategy_values` works out to the last chip: no cards
are dealt, so that luck plays no part. Kuhn poker has 12, Leduc poker 936 (288 without suits).
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import Illegal
from dtef_pipeline.games.strategies import SmallScenario, Strategy, states_to_move
from dtef_pipeline.text.nearest import nearest

Readings = Mapping[str, Sequence[str | Illegal]]
"""By decision point, what was read from each draw: a legal command, or why the text was none."""


@dataclass(frozen=True, slots=True)
class DecisionPoint:
    """One information set, as it is asked."""

    id: str
    """Own card, public card and betting: `K:check,bet`."""
    state: Any
    """A state that looks so to the seat; what the seat cannot see in it is one of several. For `Scenario.read` and the like."""
    seat: int
    observation: str
    """The words that an episode has in this place."""
    legal: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DrawCounts:
    """What the draws of one decision point were. Those that are no legal command are no part of the strategy."""

    commands: Mapping[str, int]
    """Readable draws by legal command, all of which are there."""
    illegal: int = 0
    unparsed: int = 0
    refused: int = 0

    @property
    def readable(self) -> int:
        return sum(self.commands.values())

    @property
    def draws(self) -> int:
        return self.readable + self.illegal + self.unparsed + self.refused

    @property
    def shares(self) -> Mapping[str, float]:
        """Of each legal command, its share of the readable draws. At least one draw is readable."""
        return {command: number / self.readable for command, number in self.commands.items()}


def decision_points(scenario: SmallScenario[Any], *, sample: int | None = None, seed: int = 1) -> tuple[DecisionPoint, ...]:
    """All information sets, those of the first seat before those of the second, in the order of the deals.

    `sample`: only so many of them, drawn with `seed`; their order stays. Values then need a strategy for the others: see
    `strategy_values`. Raises ConfigError for a sample that is not from 1 to the number of information sets.
    """
    found: dict[str, DecisionPoint] = {}
    for state, seat in states_to_move(scenario):
        name = scenario.information(state, seat)
        if name not in found:
            found[name] = DecisionPoint(name, state, seat, scenario.observation(state, seat), scenario.legal(state, seat))
    points = sorted(found.values(), key=lambda point: point.seat)
    if sample is None:
        return tuple(points)
    if not 1 <= sample <= len(points):
        raise ConfigError(f"{scenario.name}: got a sample of {sample}; allowed: from 1 to {len(points)} decision points")
    chosen = sorted(random.Random(seed).sample(range(len(points)), sample))  # noqa: S311 - no secret
    return tuple(points[place] for place in chosen)


def draw_counts(points: Sequence[DecisionPoint], readings: Readings) -> dict[str, DrawCounts]:
    """Of each point that was asked, what its draws were. Raises ConfigError for an unknown point and for a command that is not legal."""
    known = {point.id: point for point in points}
    for name in readings:
        if name not in known:
            raise ConfigError(f"decision point {name}: not known; allowed: {nearest(name, known)}")
    return {point.id: _counts(point, readings[point.id]) for point in points if point.id in readings}


def _counts(point: DecisionPoint, draws: Sequence[str | Illegal]) -> DrawCounts:
    commands = [draw for draw in draws if isinstance(draw, str)]
    kinds = [draw.kind for draw in draws if isinstance(draw, Illegal)]
    if unknown := set(commands) - set(point.legal):
        raise ConfigError(f"decision point {point.id}: got {', '.join(sorted(unknown))}; allowed: {', '.join(point.legal)}")
    by_command = {command: commands.count(command) for command in point.legal}
    return DrawCounts(by_command, kinds.count("illegal"), kinds.count("unparsed"), kinds.count("refused"))


def strategy_of_draws(counts: Mapping[str, DrawCounts]) -> Strategy:
    """The share of each legal command among the readable draws. A point without a readable draw has no strategy, and is left out."""
    return {name: found.shares for name, found in counts.items() if found.readable}


def strategy_of_weights(points: Sequence[DecisionPoint], weights: Strategy) -> Strategy:
    """A strategy of probabilities as a model gives them to the letters of the commands: those of one point are scaled to the sum 1.

    A point whose weights are all 0 has no strategy, and is left out. Raises ConfigError for an unknown point, for a command that is not
    legal, and for a weight that is negative or not finite.
    """
    known, found = {point.id: point for point in points}, dict[str, Mapping[str, float]]()
    for name, given in weights.items():
        if name not in known:
            raise ConfigError(f"decision point {name}: not known; allowed: {nearest(name, known)}")
        legal = known[name].legal
        if not set(given) <= set(legal) or not all(math.isfinite(weight) and weight >= 0 for weight in given.values()):
            raise ConfigError(
                f"decision point {name}: got {dict(given)}; allowed: finite numbers from 0 on for {', '.join(legal)}"
            )
        if (most := max(given.values(), default=0.0)) > 0:
            total = math.fsum(weight / most for weight in given.values())
            found[name] = {command: given.get(command, 0.0) / most / total for command in legal}
    return found
