"""The betting is that of pokerkit with the same streets: allowed commands, who is to act, chips put in, and stacks in the end."""

from __future__ import annotations

import random

import pytest

from dtef_pipeline.games.holdem.betting import HoldemHand, apply_command, deal_new_hand, list_allowed_commands
from tests.made.holdem_hands import after_commands, limit_holdem, walk
from tests.made.pokerkit_table import same_at_both_tables

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
