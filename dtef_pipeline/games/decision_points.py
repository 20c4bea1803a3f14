"""Decision points: every information set of a small game, to be asked one by one, and the strategy that the answers make.

Who is asked at each of them what it does has told its whole strategy, which `games.strategy_values` works out to the last chip: no cards
are dealt, so that luck plays no part. Kuhn poker has 12, Leduc poker 936 (288 without suits).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import Scenario
from dtef_pipeline.games.strategies import SmallScenario, states_to_move

POINTS_AT_MOST_UNASKED = 100
"""Decision points that are asked where nobody says how many: all of Kuhn poker, a sample of Leduc poker."""
_SAMPLE_SEED = 1


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
    draws: int

    @property
    def readable(self) -> int:
        return sum(self.commands.values())

    @property
    def shares(self) -> Mapping[str, float]:
        """Of each legal command, its share of the readable draws. At least one draw is readable."""
        return {command: number / self.readable for command, number in self.commands.items()}


def has_decision_points(scenario: Scenario[Any]) -> TypeGuard[SmallScenario[Any]]:
    """Whether all states of the scenario can be gone through, so that its decision points can be asked one by one."""
    return all(hasattr(type(scenario), name) for name in ("strategies", "deals", "information"))


def decision_points(scenario: SmallScenario[Any]) -> tuple[DecisionPoint, ...]:
    """All information sets, those of the first seat before those of the second, in the order of the deals."""
    found: dict[str, DecisionPoint] = {}
    for state, seat in states_to_move(scenario):
        name = scenario.information(state, seat)
        if name not in found:
            found[name] = DecisionPoint(name, state, seat, scenario.observation(state, seat), scenario.legal(state, seat))
    return tuple(sorted(found.values(), key=lambda point: point.seat))


def points_to_ask(scenario: Scenario[Any], sample: int | None = None) -> tuple[DecisionPoint, ...]:
    """The decision points that are asked; none where the scenario has none.

    `sample`: only so many of them, always the same ones; 0: all; None: all, or POINTS_AT_MOST_UNASKED where there are more. Raises
    ConfigError for a sample of more than there are.
    """
    if not has_decision_points(scenario):
        return ()
    points = decision_points(scenario)
    if sample is None:
        sample = min(len(points), POINTS_AT_MOST_UNASKED)
    if not 0 <= sample <= len(points):
        raise ConfigError(f"{scenario.name}: got a sample of {sample}; allowed: from 1 to {len(points)} decision points")
    if sample in (0, len(points)):
        return points
    chosen = sorted(random.Random(_SAMPLE_SEED).sample(range(len(points)), sample))  # noqa: S311 - no secret
    return tuple(points[place] for place in chosen)


def draw_counts(points: Sequence[DecisionPoint], readings: Mapping[str, Sequence[str | None]]) -> dict[str, DrawCounts]:
    """Of each point that was asked, what its draws were. `readings`: by point, the command read from each draw; None: no legal one."""
    return {
        point.id: DrawCounts({command: draws.count(command) for command in point.legal}, len(draws))
        for point in points
        if (draws := readings.get(point.id)) is not None
    }
