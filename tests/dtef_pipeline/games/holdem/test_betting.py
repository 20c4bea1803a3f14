"""The betting is that of pokerkit with the same streets: allowed commands, who is to act, chips put in, and stacks in the end."""

from __future__ import annotations

import random

import pytest
from pokerkit import Automation, BettingStructure, Deck, Mode, Opening, StandardHighHand, State, Street

from dtef_pipeline.games.holdem.betting import BET_SIZES, BETS_ALLOWED, BLINDS, STACK, HoldemHand, after, allowed, new_hand
from dtef_pipeline.games.holdem.showdown import nets
from tests.made.holdem_hands import after_commands, limit_holdem, walk

HANDS = 2000
BOARD_CARDS = (0, 3, 1, 1)
SELDOM_FOLDS = {"fold": 1, "check": 4, "call": 6, "bet": 6, "raise": 6}
AUTOMATIC = (
    Automation.ANTE_POSTING,
    Automation.BET_COLLECTION,
    Automation.BLIND_OR_STRADDLE_POSTING,
    Automation.HOLE_CARDS_SHOWING_OR_MUCKING,
    Automation.HAND_KILLING,
    Automation.CHIPS_PUSHING,
    Automation.CHIPS_PULLING,
)


def pokerkit_hand(hand: HoldemHand) -> State:
    """The same deal at pokerkit's table, where player 0 is the big blind."""
    streets = tuple(
        Street(
            False,
            (False, False) if street == 0 else (),
            BOARD_CARDS[street],
            False,
            Opening.POSITION,
            size,
            BETS_ALLOWED - (street == 0),
        )
        for street, size in enumerate(BET_SIZES)
    )
    state = State(
        AUTOMATIC,
        Deck.STANDARD,
        (StandardHighHand,),
        streets,
        BettingStructure.FIXED_LIMIT,
        True,
        0,
        BLINDS,
        0,
        STACK,
        2,
        mode=Mode.TOURNAMENT,
    )
    for seat in (1, 0):
        state.deal_hole("".join((hand.deck[seat], hand.deck[seat + 2])))
    return state


def pokerkit_allows(state: State) -> tuple[str, ...]:
    if state.actor_index is None:
        return ()
    due = max(state.bets) - state.bets[state.actor_index]
    found = (("fold",) if state.can_fold() else ()) + (("call" if due else "check",) if state.can_check_or_call() else ())
    if not state.can_complete_bet_or_raise_to():
        return found
    assert state.min_completion_betting_or_raising_to_amount == state.max_completion_betting_or_raising_to_amount
    return (*found, "raise" if any(state.bets) else "bet")


def pokerkit_does(state: State, command: str, hand: HoldemHand) -> None:
    """One command, and the cards of the next street, if one begins."""
    {"fold": state.fold, "check": state.check_or_call, "call": state.check_or_call}.get(
        command, state.complete_bet_or_raise_to
    )()
    if state.can_deal_board():
        lying = len(tuple(state.get_board_cards(0)))
        state.deal_board("".join(hand.deck[4 + lying : 4 + lying + BOARD_CARDS[state.street_index or 0]]))


def test_pokerkit_allows_the_same_and_pays_the_same_in_random_hands() -> None:
    rng = random.Random(3)
    ends = {"fold": 0, "showdown": 0}
    for seed in range(HANDS):
        hand, table = new_hand(seed), pokerkit_hand(new_hand(seed))
        while hand.turn is not None:
            assert table.actor_index == 1 - hand.turn
            assert allowed(hand) == pokerkit_allows(table)
            assert table.stacks == [STACK - hand.paid[1], STACK - hand.paid[0]]
            assert ["".join(map(repr, table.get_board_cards(0)))] == ["".join(hand.board)]
            commands = allowed(hand)
            command = rng.choices(commands, [SELDOM_FOLDS[one] for one in commands])[0]
            pokerkit_does(table, command, hand)
            hand = after(hand, command)
        assert table.actor_index is None
        assert not table.status
        assert table.stacks == [STACK + nets(hand)[1], STACK + nets(hand)[0]]
        ends["showdown" if hand.shown else "fold"] += 1
    assert min(ends.values()) > HANDS / 10


def test_the_fourth_bet_on_a_street_is_the_last() -> None:
    hand = after_commands(new_hand(1), ["raise", "raise", "raise"])
    assert (hand.bets, allowed(hand), hand.paid) == (4, ("fold", "call"), (8, 6))
    hand = after_commands(hand, ["call", "check", "bet", "raise", "raise", "raise"])
    assert (hand.bets, allowed(hand), hand.paid) == (4, ("fold", "call"), (14, 16))


def test_the_most_a_hand_costs_is_48_chips() -> None:
    assert max(max(walk(seed, most)[-1].paid) for seed in range(3)) == 48


def most(hand: HoldemHand, _: random.Random) -> str:
    return max(allowed(hand), key=("fold", "check", "call", "bet", "raise").index)


def test_the_big_blind_may_raise_when_everyone_has_called() -> None:
    hand = after_commands(new_hand(1), ["call"])
    assert (hand.turn, hand.street, allowed(hand)) == (1, 0, ("check", "raise"))
    assert after(hand, "check").street == 1
    assert after(hand, "raise").paid == (2, 4)


def test_the_button_acts_last_after_the_flop() -> None:
    hand = after_commands(new_hand(1), ["call", "check"])
    assert (hand.turn, len(hand.board), allowed(hand)) == (1, 3, ("check", "bet"))


def test_a_folded_hand_costs_what_was_put_in() -> None:
    assert nets(after(new_hand(1), "fold")) == (-1, 1)
    assert nets(after_commands(new_hand(1), ["raise", "fold"])) == (2, -2)


def test_states_stay_as_they_were() -> None:
    first = new_hand(5)
    before = hash(first)
    after_commands(first, ["raise", "call", "check"])
    assert (hash(first), first) == (before, new_hand(5))


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
        after(after_commands(new_hand(1), commands), command)


def test_only_the_seat_to_act_may_step() -> None:
    scenario = limit_holdem()
    with pytest.raises(ValueError, match="got 'call' from seat 1; allowed: seat 0, whose turn it is"):
        scenario.step(scenario.reset(1, (0, 1)), 1, "call")
