"""Who wins at a showdown. pokerkit ranks the hands."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

from pokerkit import Card, StandardHighHand

from dtef_pipeline.games.holdem.betting import HoldemHand
from dtef_pipeline.games.holdem.deck import BOARD_STARTS, DEALT_ENDS, SORTED_DECK, Cards, own_cards

_OF_POKERKIT = dict(zip(SORTED_DECK, Card.parse("".join(SORTED_DECK)), strict=True))


def compared(one: Cards, other: Cards, board: Cards) -> int:
    """1: the first two cards win with the five of the board | -1: the second two win | 0: both have equally good hands."""
    first, second = _best(one, board), _best(other, board)
    return (first > second) - (first < second)


def _best(own: Cards, board: Cards) -> int:
    """The strength of the best five of seven cards: higher is better."""
    seven = [_OF_POKERKIT[card] for card in (*own, *board)]
    return max(StandardHighHand.lookup.get_entry(five).index for five in combinations(seven, 5))


def nets(hand: HoldemHand) -> tuple[int, int]:
    """What each seat won, in chips: a hand that is over. The sum is 0."""
    if hand.folded is not None:
        lost = hand.paid[hand.folded]
        return (-lost, lost) if hand.folded == 0 else (lost, -lost)
    won = hand.paid[1] * winner(hand)
    return won, -won


def winner(hand: HoldemHand) -> int:
    """Of a showdown: 1: seat 0 wins | -1: seat 1 wins | 0: the pot is split."""
    return _dealt_winner(hand.deck[:DEALT_ENDS])


@lru_cache(maxsize=4096)
def _dealt_winner(dealt: Cards) -> int:
    return compared(own_cards(dealt, 0), own_cards(dealt, 1), dealt[BOARD_STARTS:])
