"""Auctions by sealed bids: shared vectors, the known value of bidding one's value, and regret against all bids tried."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.games.negotiation.sealed_bid import HIGHEST_BID, Price, compute_regret, find_best_surplus, run_auction
from tests.conftest import SHARED

VECTORS = SHARED / "votes" / "vectors.json"
PRICES: dict[str, Price] = {"first_price": "first", "second_price": "second"}
points = st.integers(0, HIGHEST_BID)
tables = st.lists(st.tuples(points, points), min_size=2, max_size=4)
"""By bidder, value and bid."""


def named(numbers: Any) -> dict[str, int]:
    return dict(zip("ABCD", numbers, strict=False))


def test_the_shared_auctions_end_as_they_say() -> None:
    if not VECTORS.exists():
        pytest.skip(f"no shared vectors at {VECTORS}")
    cases = [case for case in json.loads(VECTORS.read_text(encoding="utf-8"))["cases"] if case["fn"] == "sealed_bid"]
    assert cases
    for case in cases:
        given_ = case["in"]
        ended = run_auction(given_["bids"], given_["values"], PRICES[given_["rule"]], given_["seed"])
        for name, expected in case["out"].items():
            assert getattr(ended, name) == expected, (case["id"], name)


def test_the_winner_pays_its_own_bid_or_that_of_the_runner_up() -> None:
    bids, values = {"A": 40, "B": 70, "C": 55}, {"A": 90, "B": 60, "C": 55}
    first, second = run_auction(bids, values, "first", 1), run_auction(bids, values, "second", 1)
    assert (first.winner, first.price, first.surplus) == ("B", 70, {"A": 0, "B": -10, "C": 0})
    assert (second.winner, second.price, second.surplus) == ("B", 55, {"A": 0, "B": 5, "C": 0})


@given(st.integers(0, 2**32))
def test_the_lot_between_equal_bids_is_the_seeds_choice_of_the_names_in_order(seed: int) -> None:
    ended = run_auction({"C": 9, "A": 9, "B": 3}, {"A": 9, "B": 9, "C": 9}, "second", seed)
    assert ended.tied_bidders == ("A", "C")
    assert ended.winner == random.Random(seed).choice(["A", "C"])
    assert ended.price == 9


@given(tables, st.sampled_from(["first", "second"]), st.integers(0, 99))
def test_the_best_surplus_is_that_of_the_best_of_all_bids(table: list[tuple[int, int]], price: Price, seed: int) -> None:
    values, bids = named(value for value, _ in table), named(bid for _, bid in table)
    tried = [run_auction({**bids, "A": bid}, values, price, seed).surplus["A"] for bid in range(HIGHEST_BID + 1)]
    assert find_best_surplus(bids, values, price, seed, "A") == max(tried) >= 0
    assert compute_regret(bids, values, price, seed, "A") >= 0


@given(tables, st.integers(0, 99))
def test_who_bids_its_value_for_the_second_price_regrets_nothing(table: list[tuple[int, int]], seed: int) -> None:
    values, bids = named(value for value, _ in table), named(bid for _, bid in table)
    assert compute_regret({**bids, "A": values["A"]}, values, "second", seed, "A") == 0


def test_with_the_first_price_ones_value_is_no_good_bid() -> None:
    assert compute_regret({"A": 80, "B": 30}, {"A": 80, "B": 30}, "first", 1, "A") in (49, 50), (
        "31 wins for certain, 30 by the lot"
    )


def test_one_bidder_and_bids_without_values_are_rejected() -> None:
    with pytest.raises(ValueError, match="two or more bidders"):
        run_auction({"A": 3}, {"A": 3}, "first", 1)
    with pytest.raises(ValueError, match="two or more bidders"):
        run_auction({"A": 3, "B": 4}, {"A": 3}, "first", 1)
