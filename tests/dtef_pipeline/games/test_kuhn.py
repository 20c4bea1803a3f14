"""poker/kuhn by hand: every way that a hand can go, and that the baseline `nash` plays by its formula."""

from __future__ import annotations

import random

import pytest

from dtef_pipeline.games.kuhn import build_nash_strategy
from dtef_pipeline.games.small_poker import SmallHand
from tests.made.small_poker import small_poker


@pytest.mark.parametrize(
    ("commands", "with_the_higher", "with_the_lower"),
    [("check check", 1, -1), ("bet fold", 1, 1), ("bet call", 2, -2), ("check bet fold", -1, -1), ("check bet call", 2, -2)],
)
def test_what_the_first_seat_wins(commands: str, with_the_higher: float, with_the_lower: float) -> None:
    game = small_poker("kuhn")
    for deck, won in ((("Q", "J", "K"), with_the_higher), (("Q", "K", "J"), with_the_lower)):
        result = game.result(SmallHand(deck, tuple(commands.split())))
        assert result is not None
        assert result.rewards == (won, -won)
        assert result.outcomes == (("win", "loss") if won > 0 else ("loss", "win"))


def test_nash_is_kuhns_formula() -> None:
    found = build_nash_strategy()
    assert len(found) == 12
    assert found["J:"]["bet"] == pytest.approx(1 / 3)
    assert (found["Q:"]["bet"], found["K:"]["bet"]) == pytest.approx((0, 1))
    assert found["Q:check,bet"]["call"] == pytest.approx(2 / 3)
    assert found["J:check"]["bet"] == found["Q:bet"]["call"] == pytest.approx(1 / 3)
    assert (found["J:bet"]["call"], found["K:bet"]["call"], found["K:check"]["bet"]) == (0, 1, 1)


def test_the_baseline_draws_as_often_as_its_strategy_says() -> None:
    game, rng = small_poker("kuhn"), random.Random(3)
    state = SmallHand(("J", "Q", "K"))
    bets = sum(game.baselines["nash"](state, 0, rng) == "bet" for _ in range(3000))
    assert bets / 3000 == pytest.approx(1 / 3, abs=0.04)
