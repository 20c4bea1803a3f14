"""Leduc poker: six cards, one public card, two stages of betting with bets of 2 and 4 chips.

Southey and others, Bayes' bluff: opponent modelling in poker, UAI 2005. With perfect play the first seat loses .0856 chips in a hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, cached_property
from importlib.resources import files

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.small_poker import (
    SMALL_BETS,
    Betting,
    SmallHand,
    SmallPoker,
    Strategy,
    build_strategy,
    build_uniform_strategy,
    iterate_states_to_move,
)

LEDUC_BETS = (2, 4)
"""Chips of a bet or raise before and after the public card."""
LEDUC_RAISES = 2
"""Number of bets and raises allowed in one stage of betting, of both seats together."""
_STRATEGY_FILE = "leduc_strategy.json"
_LEDUC_RANKS = "JQK"


def of_manifest(manifest: ScenarioManifest) -> Leduc:
    """Make the scenario `poker/leduc`. Raises ConfigError for settings other than `suits`, or unless it has two seats."""
    suits = manifest.settings.get("suits", True)
    if set(manifest.settings) - {"suits"} or not isinstance(suits, bool) or len(manifest.seats) != 2:
        hint = "allowed: the setting `suits: true` or `suits: false`, two seats"
        raise ConfigError(f"{manifest.id}: got settings {manifest.settings} and seats {manifest.seats}; {hint}")
    return Leduc(manifest, suits=suits)


class Leduc(SmallPoker):
    """Leduc poker as a scenario.

    `suits`: whether players see the suits of cards, which never matter. With suits there are 936 information sets; without them,
    there are the 288 that differ in more than suits.
    """

    public_at = 2
    baseline_names = ("nash", "always-call", "always-raise")

    def __init__(self, manifest: ScenarioManifest, *, suits: bool = True) -> None:
        super().__init__(manifest)
        self.cards = tuple(f"{rank}{suit}" for rank in _LEDUC_RANKS for suit in (("s", "h") if suits else ("", "")))

    @cached_property
    def strategies(self) -> Mapping[str, Strategy]:
        """The strategy of each baseline that has one."""
        return {
            "nash": self._expand_ranks(load_leduc_table()),
            "always-call": build_strategy(self, lambda legal: {next(move for move in legal if move in ("check", "call")): 1.0}),
            "always-raise": build_strategy(self, lambda legal: {legal[-1]: 1.0}),
            "random": build_uniform_strategy(self),
        }

    def _expand_ranks(self, table: Strategy) -> Strategy:
        return {
            self.information(state, seat): table[self.name_by_rank(state, seat)] for state, seat in iterate_states_to_move(self)
        }

    def name_by_rank(self, state: SmallHand, seat: int) -> str:
        """Return the name of an information set without the suits: `K/Q:check,check`."""
        return self.information(SmallHand(tuple(card[0] for card in state.deck), state.commands), seat)

    def betting(self, commands: tuple[str, ...]) -> Betting:
        """Return the state of the betting: a call, or a check after a check, ends a stage."""
        return _compute_leduc_betting(commands)

    def strength(self, state: SmallHand, seat: int) -> int:
        """Rank hands: pairs with the public card first, then by card."""
        rank, public = state.deck[seat][0], state.deck[2][0]
        return _LEDUC_RANKS.index(rank) + len(_LEDUC_RANKS) * (rank == public)


@cache
def load_leduc_table() -> Strategy:
    """Load the shipped strategy of both seats, by ranks; a best response wins .0003 chips per hand against it (mean of the seats).

    `data/make_leduc_strategy.py` makes it."""
    read: dict[str, dict[str, float]] = json.loads(
        files("dtef_pipeline.games").joinpath(_STRATEGY_FILE).read_text(encoding="utf-8")
    )
    return read


@cache
def _compute_leduc_betting(commands: tuple[str, ...]) -> Betting:
    paid, stage, raises, seat, turn = [1, 1], 0, 0, 0, 0
    for command in commands:
        if command == "fold":
            return Betting((paid[0], paid[1]), None, (), stage, folded=seat)
        is_raise = command in SMALL_BETS
        paid[seat] = max(paid) + (LEDUC_BETS[stage] if is_raise else 0)
        if command == "call" or (command == "check" and turn == 1):
            if stage == 1:
                return Betting((paid[0], paid[1]), None, (), stage)
            stage, raises, seat, turn = 1, 0, 0, 0
        else:
            raises, seat, turn = raises + is_raise, 1 - seat, turn + 1
    is_behind = paid[seat] < paid[1 - seat]
    passive, active = (("fold", "call"), "raise") if is_behind else (("check",), "bet")
    legal = (*passive, active) if raises < LEDUC_RAISES else passive
    return Betting((paid[0], paid[1]), seat, legal, stage)
