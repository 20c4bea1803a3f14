"""poker/leduc by hand: who may raise, who wins, and that suits never count."""

from __future__ import annotations

import random

import pytest

from dtef_pipeline.games.leduc import load_leduc_table
from dtef_pipeline.games.small_poker import SmallHand, iterate_states_to_move
from tests.made.small_poker import small_poker


@pytest.mark.parametrize(
    ("commands", "seat", "legal", "paid"),
    [
        ("", 0, "check bet", [1, 1]),
        ("bet", 1, "fold call raise", [3, 1]),
        ("bet raise", 0, "fold call", [3, 5]),
        ("check bet raise", 1, "fold call", [5, 3]),
        ("check check", 0, "check bet", [1, 1]),
        ("bet call", 0, "check bet", [3, 3]),
        ("check bet call check", 1, "check bet", [3, 3]),
        ("bet raise call bet", 1, "fold call raise", [9, 5]),
        ("bet raise call bet raise", 0, "fold call", [9, 13]),
    ],
)
def test_who_may_do_what(commands: str, seat: int, legal: str, paid: list[int]) -> None:
    game = small_poker("leduc")
    state = SmallHand(game.cards, tuple(commands.split()))
    assert (game.seat_to_move(state), game.legal(state, seat), game.encode_state(state)["paid"]) == (
        seat,
        tuple(legal.split()),
        paid,
    )
    assert game.legal(state, 1 - seat) == ()


@pytest.mark.parametrize(
    ("cards", "commands", "rewards"),
    [
        ("Js Ks Jh", "check check check check", (1, -1)),
        ("Qs Ks Jh", "bet call bet call", (-7, 7)),
        ("Ks Kh Jh", "bet raise call bet raise call", (0, 0)),
        ("Ks Js Jh", "bet raise call bet raise call", (-13, 13)),
        ("Js Ks Qs", "bet fold", (1, -1)),
        ("Ks Js Kh", "check check bet raise fold", (-5, 5)),
    ],
)
def test_who_wins_what(cards: str, commands: str, rewards: tuple[int, int]) -> None:
    game, dealt = small_poker("leduc"), cards.split()
    deck = (*dealt, *(card for card in game.cards if card not in dealt))
    result = game.result(SmallHand(deck, tuple(commands.split())))
    assert result is not None
    assert result.rewards == rewards


def test_the_shipped_strategy_has_every_hand_by_rank_and_probabilities_that_sum_to_1() -> None:
    game, table = small_poker("leduc without suits"), load_leduc_table()
    legal = {game.information(state, seat): game.legal(state, seat) for state, seat in iterate_states_to_move(game)}
    assert set(table) == set(legal)
    for name, shares in table.items():
        assert set(shares) <= set(legal[name])
        assert sum(shares.values()) == pytest.approx(1, abs=1e-9)
        assert min(shares.values()) > 0


def test_suits_change_no_baselines_play() -> None:
    suited, plain = small_poker("leduc"), small_poker("leduc without suits")
    for state, seat in iterate_states_to_move(suited):
        without = SmallHand(tuple(card[0] for card in state.deck), state.commands)
        assert (
            suited.strategies["nash"][suited.information(state, seat)]
            == plain.strategies["nash"][plain.information(without, seat)]
        )
    opening = suited.reset(4)
    for name, command in (("always-call", "check"), ("always-raise", "bet")):
        assert suited.baselines[name](opening, 0, random.Random(1)) == command
    for name, command in (("always-call", "call"), ("always-raise", "raise")):
        assert suited.baselines[name](suited.step(opening, 0, "bet"), 1, random.Random(1)) == command
