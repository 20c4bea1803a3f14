"""The betting is that of pokerkit with the same streets: allowed commands, who is to act, chips put in, and stacks in the end."""

from __future__ import annotations

import random

import pytest

from dtef_pipeline.games.holdem.betting import (
    HoldemHand,
    apply_command,
    compare_hands,
    deal_new_hand,
    list_allowed_commands,
    shuffle_deck,
)
from tests.made.holdem_hands import after_commands, limit_holdem, played, walk, won
from tests.made.pokerkit_table import same_at_both_tables
from tests.made.voted import shared_cases

HANDS = 150


def test_pokerkit_allows_the_same_and_pays_the_same_in_random_hands() -> None:
    rng = random.Random(3)
    shown = sum(same_at_both_tables(seed, rng).has_showdown for seed in range(HANDS))
    assert HANDS / 10 < shown < HANDS * 9 / 10


def test_the_fourth_bet_on_a_street_is_the_last() -> None:
    hand = after_commands(deal_new_hand(1), ["raise", "raise", "raise"])
    assert (hand.bets, list_allowed_commands(hand), hand.stakes) == (4, ("fold", "call"), (8, 6))
    hand = after_commands(hand, ["call", "check", "bet", "raise", "raise", "raise"])
    assert (hand.bets, list_allowed_commands(hand), hand.stakes) == (4, ("fold", "call"), (14, 16))


def test_the_most_a_hand_costs_is_48_chips() -> None:
    assert max(max(walk(seed, most)[-1].stakes) for seed in range(3)) == 48


def most(hand: HoldemHand, _: random.Random) -> str:
    return max(list_allowed_commands(hand), key=("fold", "check", "call", "bet", "raise").index)


@pytest.mark.parametrize(
    ("commands", "command", "message"),
    [
        ([], "check", "got check; allowed: fold, call, raise"),
        ([], "bet", "got bet; allowed: fold, call, raise"),
        (["call"], "fold", "got fold; allowed: check, raise"),
        (["fold"], "call", "got call; allowed: nothing, as the hand is over"),
    ],
)
def test_commands_that_are_not_allowed_are_refused(commands: list[str], command: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        apply_command(after_commands(deal_new_hand(1), commands), command)


def test_only_the_seat_to_act_may_step() -> None:
    scenario = limit_holdem()
    with pytest.raises(ValueError, match="got 'call' from seat 1; allowed: seat 0, whose turn it is"):
        scenario.step(scenario.reset(1), 1, "call")


def test_decks_of_the_vectors() -> None:
    for case in shared_cases("poker_deck"):
        assert list(shuffle_deck(case["in"]["seed"])[: case["in"]["first"]]) == case["out"], case["id"]


def test_hands_of_the_vectors() -> None:
    for case in shared_cases("poker_hand"):
        hand = played(case["in"]["seed"], *(f"always-{policy}" for policy in case["in"]["policies"].split(",")))
        result = limit_holdem().result(hand)
        assert result is not None
        assert [[action.seat, action.command] for action in hand.actions] == case["out"]["actions"], case["id"]
        assert list(result.rewards) == case["out"]["net"], case["id"]


def test_comparisons_of_the_vectors() -> None:
    for case in shared_cases("poker_compare"):
        one, other, board = (two_letters(case["in"][part]) for part in ("a", "b", "board"))
        assert compare_hands(one, other, board) == case["out"], case["id"]
        assert compare_hands(other, one, board) == -case["out"], case["id"]


def two_letters(cards: str) -> tuple[str, ...]:
    return tuple(cards[start : start + 2] for start in range(0, len(cards), 2))


def test_what_one_wins_the_other_loses_in_every_hand() -> None:
    hands = [won(seed, "random", "random") for seed in range(shared_cases("poker_zero_sum")[0]["in"]["hands"])]
    assert all(first + second == 0 for first, second in hands)
    assert any(first for first, _ in hands)
