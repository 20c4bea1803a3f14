"""Opponents to measure players by. They look at their own cards at most."""

from __future__ import annotations

import random
from collections.abc import Mapping

from dtef_pipeline.games.contract import Chooses
from dtef_pipeline.games.holdem.betting import HoldemHand, allowed
from dtef_pipeline.games.holdem.deck import own_cards

_MOST_RAISES, _MOST_CALLS, _MOST_FOLDS = ("raise", "bet", "call", "check"), ("call", "check"), ("fold", "check")
_HIGH_RANKS = "TJQKA"


def _first(hand: HoldemHand, wishes: tuple[str, ...]) -> str:
    """The first wish that is allowed."""
    return next(wish for wish in wishes if wish in allowed(hand))


def _always(wishes: tuple[str, ...]) -> Chooses:
    def chooses(hand: HoldemHand, _: int, __: random.Random) -> str:
        return _first(hand, wishes)

    return chooses


def _tight(hand: HoldemHand, seat: int, _: random.Random) -> str:
    """Raises with a pair or two cards from ten up, calls with one such card, else checks or folds: on every street by its own cards alone."""
    own = own_cards(hand.deck, seat)
    high = sum(card[0] in _HIGH_RANKS for card in own)
    if own[0][0] == own[1][0] or high == len(own):
        return _first(hand, _MOST_RAISES)
    return _first(hand, _MOST_CALLS if high else _MOST_FOLDS)


HOLDEM_BASELINES: Mapping[str, Chooses] = {
    "always-call": _always(_MOST_CALLS),
    "always-raise": _always(_MOST_RAISES),
    "always-fold": _always(_MOST_FOLDS),
    "tight": _tight,
}
"""By name. always-raise calls where no raise is left; always-fold checks where nothing is to be called."""
