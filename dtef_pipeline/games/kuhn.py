"""Kuhn poker: three cards, an ante of one chip, one bet of one chip. The smallest poker in which bluffing pays.

Harold W. Kuhn, A simplified two-person poker, 1950. With perfect play the first seat loses 1/18 of a chip per hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import Count, GameMetric
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.small_poker import (
    Betting,
    SmallHand,
    SmallPoker,
    Strategy,
    build_strategy,
    build_uniform_strategy,
)

KUHN_ALPHA = 1 / 3
"""Share of its jacks with which the first seat of `nash` bets; any share from 0 to 1/3 is perfect."""
_JACK_BET_RATE = GameMetric(
    "bluff_rate", "risk", "share", "none", "Bets with the jack, as a share of the turns with it in which one was allowed."
)
_KING_BET_RATE = GameMetric(
    "value_bet_rate", "risk", "share", "none", "Bets with the king, as a share of the turns with it in which one was allowed."
)
_KUHN_RANKS = "JQK"


def of_manifest(manifest: ScenarioManifest) -> Kuhn:
    """Make the scenario `poker/kuhn`. Raises ConfigError unless it has two seats and no settings."""
    if manifest.settings or len(manifest.seats) != 2:
        raise ConfigError(
            f"{manifest.id}: got settings {manifest.settings} and seats {manifest.seats}; allowed: no settings, two seats"
        )
    return Kuhn(manifest)


class Kuhn(SmallPoker):
    """Kuhn poker as a scenario."""

    cards = tuple(_KUHN_RANKS)
    metrics = (*SmallPoker.metrics, _JACK_BET_RATE, _KING_BET_RATE)
    baseline_names = ("nash", "always-bet", "always-pass")

    @cached_property
    def strategies(self) -> Mapping[str, Strategy]:
        """The strategy of each baseline that has one."""
        return {
            "nash": build_nash_strategy(),
            "always-bet": build_strategy(self, lambda legal: {legal[-1]: 1.0}),
            "always-pass": build_strategy(self, lambda legal: {legal[0]: 1.0}),
            "random": build_uniform_strategy(self),
        }

    def betting(self, commands: tuple[str, ...]) -> Betting:
        """Return the state of the betting: two checks, or an answer to a bet, end the hand."""
        return _compute_kuhn_betting(commands)

    def strength(self, state: SmallHand, seat: int) -> int:
        """Return the card's rank."""
        return _KUHN_RANKS.index(state.deck[seat])

    def measure_seat(self, state: SmallHand, seat: int) -> Mapping[str, Count]:
        """Count the metrics of all small poker, and the bets with the lowest and the highest card."""
        could = [command for before, command in self.iterate_turns(state, seat) if "bet" in before.legal]
        bets = Count(could.count("bet"), len(could))
        metric = {"J": _JACK_BET_RATE.name, "K": _KING_BET_RATE.name}.get(state.deck[seat])
        none = dict.fromkeys((_JACK_BET_RATE.name, _KING_BET_RATE.name), Count(0, 0))
        return {**super().measure_seat(state, seat), **none, **({metric: bets} if metric else {})}


@cache
def _compute_kuhn_betting(commands: tuple[str, ...]) -> Betting:
    seat = len(commands) % 2
    if commands[-1:] == ("fold",):
        loser = 1 - seat
        return Betting((1, 2) if loser == 0 else (2, 1), None, (), folded=loser)
    if commands[-1:] == ("call",):
        return Betting((2, 2), None, ())
    if commands[-1:] == ("bet",):
        return Betting((1, 2) if seat == 0 else (2, 1), seat, ("fold", "call"))
    if commands == ("check", "check"):
        return Betting((1, 1), None, ())
    return Betting((1, 1), seat, ("check", "bet"))


def build_nash_strategy() -> Strategy:
    """Build a perfect strategy of both seats: the first bets with the king three times as often as with the jack (`KUHN_ALPHA`); the second
    has only one perfect strategy. Source: Kuhn 1950."""
    alpha = KUHN_ALPHA
    first = {"J": (alpha, 0.0), "Q": (0.0, alpha + 1 / 3), "K": (3 * alpha, 1.0)}
    second = {"J": (1 / 3, 0.0), "Q": (0.0, 1 / 3), "K": (1.0, 1.0)}
    strategy: dict[str, dict[str, float]] = {}
    for card in _KUHN_RANKS:
        for bets, calls, open_history, bet_history in ((*first[card], "", "check,bet"), (*second[card], "check", "bet")):
            strategy[f"{card}:{open_history}"] = {"check": 1 - bets, "bet": bets}
            strategy[f"{card}:{bet_history}"] = {"fold": 1 - calls, "call": calls}
    return strategy
