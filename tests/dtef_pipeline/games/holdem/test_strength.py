"""Which hands are weak: cases by hand for each branch, and a naive definition that tries cards out on random boards."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from dtef_pipeline.games.holdem.limit_holdem import (
    HOLDEM_RANKS,
    SORTED_DECK,
    count_outs,
    find_median_lead,
    has_made_hand,
    is_weak_hand,
    load_starting_leads,
    name_starting_hand,
    rate_starting_hand,
)
from dtef_pipeline.games.small_poker import Cards

ALL_DEALS = 2_097_572_400
"""Opponents' hands and boards for two cards: (50 over 2) x (48 over 5)."""


def cards(text: str) -> Cards:
    return tuple(text.split())


@pytest.mark.parametrize(
    ("own", "board", "is_weak", "why"),
    [
        ("2c 2d", "Ah Kh Qs", False, "a pair in the hand, however low"),
        ("Ac 7d", "Kc Kh Qs Qd 2c", True, "both pairs are the board's"),
        ("Ac 2d", "3h 4s 5c", False, "a straight from the ace"),
        ("Ac 2d", "5h 6s 7c 8d 9h", True, "the straight is the board's"),
        ("Ac 2d", "5h 9h Kh 3h Jh", True, "the flush is the board's"),
        ("Ah 2c", "5h 9h Kh", False, "a flush draw of one own card"),
        ("Ac 2c", "5h 9h Kh Jh", True, "the flush draw is the board's"),
        ("Ah 2h", "5h 9h Kc 3s 7d", True, "no card comes after the river"),
        ("9c 8d", "7h 5s Kc", True, "an inside straight draw has 4 outs"),
        ("9c 7d", "8h 5s Jc", False, "two inside draws at once have 8 outs"),
        ("Ac 2d", "3h 4s Kc", True, "a draw closed by the ace below has 4 outs"),
        ("Ac Kd", "5h 6s 7c 8d", True, "the open draw is the board's alone"),
    ],
)
def test_bets_with_less_than_a_pair_and_few_outs_are_bluffs(own: str, board: str, is_weak: bool, why: str) -> None:
    assert is_weak_hand(cards(own), cards(board)) is is_weak, why


def rank(card: str) -> int:
    return HOLDEM_RANKS.index(card[0])


def is_straight(five: Cards) -> bool:
    ranks = sorted(map(rank, five))
    return ranks in ([low + step for step in range(5)] for low in range(9)) or ranks == [0, 1, 2, 3, 12]


def naively_long(own: Cards, others: Cards) -> bool:
    """Whether any five cards with an own one among them are a straight or a flush."""
    return any(
        (is_straight(five) or len({card[1] for card in five}) == 1) and set(five) & set(own)
        for five in combinations(own + others, 5)
    )


def naively_made(own: Cards, board: Cards) -> bool:
    return any(own[place][0] == card[0] for place in (0, 1) for card in (*board, own[1 - place])) or naively_long(own, board)


def naive_outs(own: Cards, board: Cards) -> int:
    unseen = set(SORTED_DECK) - set(own + board)
    return sum(naively_long(own, (*board, card)) for card in unseen)


@pytest.mark.parametrize("size", [3, 4, 5])
def test_a_naive_definition_agrees_on_random_boards(size: int) -> None:
    rng = random.Random(size)
    met = set()
    for number in range(96):
        pool = (
            SORTED_DECK
            if number % 2
            else rng.sample(SORTED_DECK, 20)
            if number % 4
            else [card for card in SORTED_DECK if card[1] in "ch"]
        )
        dealt = tuple(rng.sample(list(pool), 2 + size))
        own, board = dealt[:2], dealt[2:]
        is_made = naively_made(own, board)
        assert has_made_hand(own, board) is is_made, dealt
        if not is_made and size < 5:
            assert count_outs(own, board) == naive_outs(own, board), dealt
        expected = not is_made and (size == 5 or naive_outs(own, board) < 8)
        assert is_weak_hand(own, board) is expected, dealt
        met.add(expected)
    assert met == {True, False}


def test_before_the_flop_84_of_169_hands_are_weak_and_the_median_is_not() -> None:
    leads = load_starting_leads()
    assert len(leads) == len(set(leads.values())) == 169
    assert {name_starting_hand((one, other)) for one, other in combinations(SORTED_DECK, 2)} == set(leads)
    assert sum(wins < find_median_lead() for wins in leads.values()) == 84
    assert [hand for hand, wins in leads.items() if wins == find_median_lead()] == ["J6s"]
    assert not is_weak_hand(cards("Ah Kd"), ())
    assert is_weak_hand(cards("7h 2d"), ())


def test_starting_hands_win_and_lose_alike_in_all_deals_together() -> None:
    assert sum(rate_starting_hand(pair) for pair in combinations(SORTED_DECK, 2)) == 0


@pytest.mark.parametrize(("own", "equity"), [("Ac Ad", 0.85204), ("7c 2d", 0.34584), ("3c 2d", 0.32303), ("2c 2d", 0.50334)])
def test_equities_are_the_published_ones(own: str, equity: float) -> None:
    """A hand's wins with half its ties, as books print them to four digits."""
    assert 0.5 + rate_starting_hand(cards(own)) / ALL_DEALS / 2 == pytest.approx(equity, abs=6e-5)
