"""Writes `dtef_pipeline/games/holdem/starting_hands.csv`: how each of the 169 starting hands fares against a random hand.

    python data/make_starting_hands.py

The numbers are exact: all boards with all pairs of hands, 2,097,572,400 for each starting hand. A board stands for all that differ from it
by the names of suits only, which leaves 134,459 boards. `lead` is the number of wins less the number of losses of one pair of cards of its kind.
Takes half a minute on one core.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations, combinations_with_replacement
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pokerkit import Card, StandardLookup

from dtef_pipeline.games.holdem.limit_holdem import HOLDEM_RANKS, SORTED_DECK

TARGET = Path(__file__).resolve().parent.parent / "dtef_pipeline" / "games" / "holdem" / "starting_hands.csv"
BATCH = 250
_POWERS = 5 ** np.arange(13, dtype=np.int64)
_RANK, _SUIT = np.arange(52) // 4, np.arange(52) % 4
_CARDS = tuple(next(Card.parse(name)) for name in SORTED_DECK)
_LOOKUP = StandardLookup()
Whole = NDArray[np.int64]


def best_of(cards: tuple[Card, ...]) -> int:
    """The strength of the best five cards."""
    return max(_LOOKUP.get_entry(five).index for five in combinations(cards, 5))


def by_ranks() -> tuple[Whole, Whole]:
    """The keys of all multisets of seven ranks in order, and the strength of each where no flush is."""
    strengths = {}
    for ranks in combinations_with_replacement(range(13), 7):
        if max(Counter(ranks).values()) <= 4:
            cards = [4 * rank + place % 4 for place, rank in enumerate(ranks)]
            strengths[int(_POWERS[list(ranks)].sum())] = without_flush(cards)
    keys = np.array(sorted(strengths))
    return keys, np.array([strengths[key] for key in keys.tolist()])


def without_flush(cards: list[int]) -> int:
    """The strength of the best five of seven cards, those of one suit counted as if they were not."""
    return max(_LOOKUP.get_entry(of_two_suits(five)).index for five in combinations(cards, 5))


def of_two_suits(five: tuple[int, ...]) -> tuple[Card, ...]:
    """Five cards of these ranks that are no flush."""
    if len({card % 4 for card in five}) > 1:
        return tuple(_CARDS[card] for card in five)
    return (_CARDS[five[0] // 4 * 4 + (five[0] + 1) % 4], *(_CARDS[card] for card in five[1:]))


def by_flush() -> Whole:
    """By the set of ranks of one suit, as bits: the strength of the best flush; -1 for less than five cards."""
    found = np.full(8192, -1, np.int64)
    for size in (5, 6, 7):
        for ranks in combinations(range(13), size):
            found[sum(1 << rank for rank in ranks)] = best_of(tuple(_CARDS[4 * rank] for rank in ranks))
    return found


def boards() -> tuple[Whole, Whole]:
    """One board of each kind, (kinds, 5), and how many boards are of its kind."""
    everything = np.fromiter((card for five in combinations(range(52), 5) for card in five), np.int64).reshape(-1, 5)
    masks = np.zeros((len(everything), 4), np.int64)
    for place in range(5):
        masks[np.arange(len(masks)), _SUIT[everything[:, place]]] |= 1 << _RANK[everything[:, place]]
    masks.sort(axis=1)
    key = masks[:, 0] | masks[:, 1] << 13 | masks[:, 2] << 26 | masks[:, 3] << 39
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    return everything[first], counts


def strengths_of(five: Whole, rest: Whole, keys: Whole, plain: Whole, flush: Whole) -> Whole:
    """The strengths of all pairs of the 47 other cards with boards, (boards, 47, 47); -1 where a card meets itself."""
    key = _POWERS[_RANK[five]].sum(axis=1)[:, None] + _POWERS[_RANK[rest]]
    i, j = np.triu_indices(47, 1)
    of_pair = plain[np.searchsorted(keys, key[:, i] + _POWERS[_RANK[rest[:, j]]])]
    for suit in range(4):
        on_board = ((_SUIT[five] == suit) << _RANK[five]).sum(axis=1)
        (near,) = np.nonzero(np.bitwise_count(on_board) >= 3)
        bit = (_SUIT[rest[near]] == suit) << _RANK[rest[near]]
        of_pair[near] = np.maximum(of_pair[near], flush[on_board[near, None] | bit[:, i] | bit[:, j]])
    found = np.full((len(five), 47, 47), -1, np.int64)
    found[:, i, j] = found[:, j, i] = of_pair
    return found


def leads_of(strengths: Whole) -> Whole:
    """For all pairs of cards: opponents' hands that are worse less those that are better, of hands that share no card with it."""
    i, j = np.triu_indices(47, 1)
    of_pair = strengths[:, i, j]
    size = int(of_pair.max()) + 2
    flat = of_pair + 1 + size * np.arange(len(of_pair))[:, None]
    count = np.bincount(flat.ravel(), minlength=size * len(of_pair)).reshape(-1, size).cumsum(axis=1)
    lead = np.take_along_axis(count, of_pair, 1) - (count[:, -1:] - np.take_along_axis(count, of_pair + 1, 1))
    small = strengths.astype(np.int16)
    worse = (small[:, :, :, None] > small[:, :, None, :]).sum(axis=3, dtype=np.int16) - 1
    better = (small[:, :, :, None] < small[:, :, None, :]).sum(axis=3, dtype=np.int16)
    of_card = worse - better
    found: Whole = lead - of_card[:, i, j] - of_card[:, j, i]
    return found


def kinds_of(rest: Whole) -> Whole:
    """The kind of each pair of the other cards, as 13 x high + low where suited, 13 x low + high where not."""
    i, j = np.triu_indices(47, 1)
    low, high = _RANK[rest[:, i]], _RANK[rest[:, j]]
    return np.where(_SUIT[rest[:, i]] == _SUIT[rest[:, j]], 13 * high + low, 13 * low + high)


def named(kind: int) -> tuple[str, int]:
    """What people call a kind of hand, and how many pairs of cards are of it."""
    first, second = divmod(kind, 13)
    ranks = HOLDEM_RANKS[max(first, second)] + HOLDEM_RANKS[min(first, second)]
    return (ranks, 6) if first == second else (ranks + "s", 4) if first > second else (ranks + "o", 12)


def main() -> None:
    keys, plain = by_ranks()
    flush = by_flush()
    five, times = boards()
    totals = np.zeros(169)
    for start in range(0, len(five), BATCH):
        part, weight = five[start : start + BATCH], times[start : start + BATCH]
        others = np.ones((len(part), 52), bool)
        np.put_along_axis(others, part, values=False, axis=1)
        rest = np.nonzero(others)[1].reshape(-1, 47)
        lead = leads_of(strengths_of(part, rest, keys, plain, flush)) * weight[:, None]
        totals += np.bincount(kinds_of(rest).ravel(), lead.ravel().astype(float), 169)
    rows = [(round(totals[kind]) // named(kind)[1], named(kind)[0]) for kind in range(169)]
    lines = [f"{hand},{lead}" for lead, hand in sorted(rows, reverse=True)]
    TARGET.write_text("\n".join(["hand,lead", *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
