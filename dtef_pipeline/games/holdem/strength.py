"""The strength of two cards on a street, which decides whether a bet with them is a bluff.

After the flop a hand is weak if no own card is part of a pair, straight or flush, and fewer than 8 unseen cards would make a straight or
flush with an own card: a flush draw has 9 such outs, an open straight draw or a double inside draw has 8. On the river there are no outs. A
pair, straight or flush with an own card counts even if the board has a better one. Before the flop a hand is weak if it is below the median
of the 169 starting hands, ordered by their results against a random hand (`starting_hands.csv`, made by `data/make_starting_hands.py` from
exact counts; equal leads are equally strong). The median is the 85th of the 169 and is itself not weak.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from dtef_pipeline.games.holdem.betting import HOLDEM_RANKS, Cards

ENOUGH_OUTS = 8
BOARD_COMPLETE = 5
_FIVE = 0b11111
_STRAIGHTS = (1 << 12 | 0b1111, *(_FIVE << low for low in range(9)))
"""Ranks of each straight as bits, 2 lowest; the first is A 2 3 4 5."""


def is_weak_hand(hole: Cards, board: Cards) -> bool:
    """Return whether a bet with these cards on a board of 0, 3, 4 or 5 cards is a bluff."""
    if not board:
        return rate_starting_hand(hole) < find_median_lead()
    return not has_made_hand(hole, board) and (len(board) == BOARD_COMPLETE or count_outs(hole, board) < ENOUGH_OUTS)


def has_made_hand(hole: Cards, board: Cards) -> bool:
    """Return whether an own card is in a pair, straight or flush."""
    hole_ranks, lying = _mask_ranks(hole), _mask_ranks(board)
    paired = hole[0][0] == hole[1][0] or hole_ranks & lying
    return (
        bool(paired)
        or any(line & hole_ranks and not line & ~(hole_ranks | lying) for line in _STRAIGHTS)
        or _count_best_suit(hole, board) >= BOARD_COMPLETE
    )


def count_outs(hole: Cards, board: Cards) -> int:
    """Count the unseen cards that would make a straight or flush with an own card, for a hand that has neither.

    >>> outs(("Ah", "Kh"), ("2h", "7h", "9c")), outs(("8c", "9d"), ("Tc", "Jd", "2s")), outs(("8c", "9d"), ("Tc", "Qd", "2s"))
    (9, 8, 4)
    """
    hole_ranks, lying = _mask_ranks(hole), _mask_ranks(board)
    missing = 0
    for line in _STRAIGHTS:
        gap = line & ~(hole_ranks | lying)
        if line & hole_ranks and gap.bit_count() == 1:
            missing |= gap
    straight = missing.bit_count()
    flush = _count_best_suit(hole, board) == BOARD_COMPLETE - 1
    return 4 * straight + (9 - straight if flush else 0)


def name_starting_hand(hole: Cards) -> str:
    """Return the usual name of two cards: `AKs` for one suit, `AKo` for two, `AA`."""
    high, low = sorted(hole, key=lambda card: HOLDEM_RANKS.index(card[0]), reverse=True)
    if high[0] == low[0]:
        return high[0] + low[0]
    return high[0] + low[0] + ("s" if high[1] == low[1] else "o")


def rate_starting_hand(hole: Cards) -> int:
    """Return wins minus losses against all hands on all boards, 2,097,572,400 in total; higher is better."""
    return load_starting_leads()[name_starting_hand(hole)]


@cache
def load_starting_leads() -> dict[str, int]:
    """Return the lead of each of the 169 starting hands, best first."""
    text = files("dtef_pipeline.games.holdem").joinpath("starting_hands.csv").read_text(encoding="utf-8")
    rows = (line.split(",") for line in text.split()[1:])
    return {hand: int(wins) for hand, wins in rows}


@cache
def find_median_lead() -> int:
    """Return the median lead of the 169 starting hands, each counted once."""
    leads = sorted(load_starting_leads().values())
    return leads[len(leads) // 2]


def _mask_ranks(cards: Cards) -> int:
    """Return the ranks of cards as bits."""
    mask = 0
    for card in cards:
        mask |= 1 << HOLDEM_RANKS.index(card[0])
    return mask


def _count_best_suit(hole: Cards, board: Cards) -> int:
    """Return the largest number of cards of one suit that include an own card."""
    suits = [card[1] for card in (*hole, *board)]
    return max(suits.count(card[1]) for card in hole)
