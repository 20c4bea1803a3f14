"""Hands of hold'em at a table of pokerkit's, with the same deal and the same commands: the oracle of the betting."""

from __future__ import annotations

import random

from pokerkit import Automation, BettingStructure, Deck, Mode, Opening, StandardHighHand, State, Street

from dtef_pipeline.games.holdem.betting import (
    BET_SIZES,
    BETS_ALLOWED,
    BLINDS,
    STACK,
    HoldemHand,
    apply_command,
    compute_nets,
    deal_new_hand,
    list_allowed_commands,
)

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


def same_at_both_tables(seed: int, rng: random.Random) -> HoldemHand:
    """A random hand played at both tables, which agree in every state on whose turn it is, what is allowed, the chips and the board."""
    hand = deal_new_hand(seed)
    table = pokerkit_hand(hand)
    while hand.turn is not None:
        assert table.actor_index == 1 - hand.turn
        assert list_allowed_commands(hand) == pokerkit_allows(table)
        assert table.stacks == [STACK - hand.stakes[1], STACK - hand.stakes[0]]
        assert "".join(map(repr, table.get_board_cards(0))) == "".join(hand.board)
        commands = list_allowed_commands(hand)
        command = rng.choices(commands, [SELDOM_FOLDS[one] for one in commands])[0]
        pokerkit_does(table, command, hand)
        hand = apply_command(hand, command)
    assert table.actor_index is None
    assert not table.status
    assert table.stacks == [STACK + compute_nets(hand)[1], STACK + compute_nets(hand)[0]]
    return hand
