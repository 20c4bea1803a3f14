"""The shared vectors of hold'em: the deck, four hands of two deals, and hands compared."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from dtef_pipeline.games.holdem.betting import compare_hands, shuffle_deck
from tests.conftest import SHARED
from tests.made.holdem_hands import limit_holdem, played, won

VECTOR_FILE = SHARED / "votes" / "vectors.json"
NO_VECTOR_FILE = "the shared vectors are not there"


@cache
def cases(name: str) -> list[dict[str, Any]]:
    if not VECTOR_FILE.exists():
        pytest.skip(NO_VECTOR_FILE)
    found = [case for case in json.loads(VECTOR_FILE.read_text(encoding="utf-8"))["cases"] if case["fn"] == name]
    assert found
    return found


def test_decks_of_the_vectors() -> None:
    for case in cases("poker_deck"):
        assert list(shuffle_deck(case["in"]["seed"])[: case["in"]["first"]]) == case["out"], case["id"]


def test_hands_of_the_vectors() -> None:
    for case in cases("poker_hand"):
        hand = played(case["in"]["seed"], *(f"always-{policy}" for policy in case["in"]["policies"].split(",")))
        result = limit_holdem().result(hand)
        assert result is not None
        assert [[action.seat, action.command] for action in hand.actions] == case["out"]["actions"], case["id"]
        assert list(result.rewards) == case["out"]["net"], case["id"]


def test_comparisons_of_the_vectors() -> None:
    for case in cases("poker_compare"):
        one, other, board = (two_letters(case["in"][part]) for part in ("a", "b", "board"))
        assert compare_hands(one, other, board) == case["out"], case["id"]
        assert compare_hands(other, one, board) == -case["out"], case["id"]


def two_letters(cards: str) -> tuple[str, ...]:
    return tuple(cards[start : start + 2] for start in range(0, len(cards), 2))


def test_what_one_wins_the_other_loses_in_every_hand() -> None:
    hands = [won(seed, "random", "random") for seed in range(cases("poker_zero_sum")[0]["in"]["hands"])]
    assert all(first + second == 0 for first, second in hands)
    assert any(first for first, _ in hands)
