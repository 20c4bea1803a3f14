"""The cards of hold'em, and who gets which of a shuffled deck."""

from __future__ import annotations

import random

HOLDEM_RANKS = "23456789TJQKA"
HOLDEM_SUITS = "cdhs"
BOARD_STARTS, DEALT_ENDS = 4, 9
"""The first four cards of a deck are dealt one by one, beginning with seat 0; the next five are the board. Nothing is burnt."""
SORTED_DECK = tuple(rank + suit for rank in HOLDEM_RANKS for suit in HOLDEM_SUITS)

Cards = tuple[str, ...]
"""Cards as two letters each: `Ts` is the ten of spades."""


def shuffled(seed: int) -> Cards:
    """The 52 cards in the order in which they are dealt: all ranks 2..A, within each the suits c d h s, shuffled by `random.Random(seed)`."""
    cards = list(SORTED_DECK)
    random.Random(seed).shuffle(cards)  # noqa: S311 - a game's cards, no secret
    return tuple(cards)


def own_cards(deck: Cards, seat: int) -> Cards:
    """The two cards of a seat, in the order in which they came."""
    return deck[seat], deck[seat + 2]


def dealt_anew(deck: Cards, known: set[int], rng: random.Random) -> Cards:
    """The deck with all cards but those at the known places in a new order."""
    hidden = [place for place in range(len(deck)) if place not in known]
    places = dict(zip(hidden, rng.sample(hidden, len(hidden)), strict=True))
    return tuple(deck[places.get(place, place)] for place in range(len(deck)))
