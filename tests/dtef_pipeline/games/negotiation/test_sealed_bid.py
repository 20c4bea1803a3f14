"""Auctions from deal to result: bids in words, what a bidder sees, known values, what is counted."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import Count, Illegal, list_baselines
from dtef_pipeline.games.negotiation.sealed_bid import SealedBid, SealedBids, of_manifest
from tests.made.negotiations import an_auction, shipped

NEW = SealedBids(seed=1, values=(60, 40))


def bids(game: SealedBid, state: SealedBids, *amounts: int) -> SealedBids:
    for amount in amounts:
        seat = game.seat_to_move(state)
        assert seat is not None
        state = game.step(state, seat, f"bid {amount}")
    return state


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("ACTION: bid 37", "bid 37"),
        ("action: BID 37.", "bid 37"),
        ("ACTION: 37", "bid 37"),
        ("ACTION: **bid $37**", "bid 37"),
        ("ACTION: bid 37, which is my value", "bid 37"),
        ("ACTION: bid 5\nno:\nACTION: bid 37", "bid 37"),
        ("37", "bid 37"),
        ("037", "bid 37"),
        ("I bid 37", "bid 37"),
        ("My bid is **37** points.", "bid 37"),
        ("I value it at 74. So I bid 37 and hope.", "bid 37"),
        ("It is worth 74.\n\nBid: 37", "bid 37"),
        ("<think>ACTION: bid 90</think>\n37", "bid 37"),
        ("\uff13\uff17", "bid 37"),
        ("0", "bid 0"),
        ("bid 100", "bid 100"),
        ("bid: 37", "bid 37"),
        ("ACTION: bid: 37", "bid 37"),
        ("Bid $37.", "bid 37"),
        ("**37**", "bid 37"),
        ("ACTION: `bid` **37**", "bid 37"),
        ("ACTION: bid 37 (my final offer)", "bid 37"),
        ("bid 37 (half of my value)", "bid 37"),
        ("ACTION: bid 37 points — my value", "bid 37"),
        ("ACTION: I'd like to bid 37.", "bid 37"),
        ("ACTION: I will bid 37 because it is my value.", "bid 37"),
        (r"ACTION: \boxed{bid 37}", "bid 37"),
    ],
)
def test_a_bid_is_read_as_people_write_it(text: str, command: str) -> None:
    assert an_auction().read(text, NEW, 0) == command


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ACTION: bid 101", "101"),
        ("ACTION: bid -1", "-1"),
        ("ACTION: bid 37.5", "37.5"),
        ("ACTION: bid thirty", "bid thirty"),
        ("ACTION: bid 1,000", "1,000"),
        ("I bid 37.5 for it", "37.5"),
        ("bid 1,000", "1,000"),
        ("150", "150"),
        ("-5", "-5"),
        ("9" * 20, "9" * 20),
    ],
)
def test_what_is_no_whole_number_of_0_to_100_is_illegal_and_never_cut_to_one(text: str, said: str) -> None:
    found = an_auction().read(text, NEW, 0)
    assert isinstance(found, Illegal)
    assert found.kind == "illegal"
    assert "a whole number from 0 to 100" in found.reason.lower()
    assert repr(said) in found.reason


@pytest.mark.parametrize("text", ["", "hello", "It is worth 37 to me.", "Either bid 30 or bid 40.", "<think>bid 37"])
def test_a_text_without_one_bid_is_unparsed(text: str) -> None:
    found = an_auction().read(text, NEW, 0)
    assert isinstance(found, Illegal)
    assert found.kind == "unparsed"


CUT_BIDS = """50 or 60|50-60|1 000|5k|1e2|10^2|37/2|35+35|70 - 1|0x20|20 more than 30|37 million|70*0.5|70**2|70 * 0.5|50 to 60|50, no, 60
50%|37 and a half|20 more than my value|50 or sixty|50 minus ten|50 (or 60)|10\u00b2|37\u00bd|50..60|5 0|50 x 2|.5|50 at most|-.5
1. 000|50 — 60""".replace("\n", "|").split("|")


@pytest.mark.parametrize("said", CUT_BIDS)
def test_no_number_is_cut_out_of_what_was_stated(said: str) -> None:
    for text in (f"ACTION: bid {said}", f"ACTION: {said}"):
        found = an_auction().read(text, NEW, 0)
        assert isinstance(found, Illegal), text
        assert found.kind == "illegal"
        assert "a whole number from 0 to 100" in found.reason
    for text in (f"bid {said}", f"I think I bid {said}", said):
        assert isinstance(an_auction().read(text, NEW, 0), Illegal), text


@given(
    st.integers(0, 100),
    st.integers(0, 100),
    st.sampled_from(["", "bid ", "I bid ", "bid: ", "my bid is ", "**"]),
    st.text(" abork.,;:()-+*/^$%\n\u2014", max_size=6).filter(lambda between: "\n" not in between),
    st.sampled_from(["", " points", "**", ".", " (my final offer)"]),
)
def test_with_two_numbers_or_an_operator_beside_the_number_no_bid_is_read(
    one: int, other: int, before: str, between: str, behind: str
) -> None:
    game = an_auction()
    if not (one == other or (between == "" and f"{one}{other}".isdecimal())):
        assert isinstance(game.read(f"ACTION: {before}{one}{between}{other}{behind}", NEW, 0), Illegal)
    for operator in "+-/^%~":
        assert isinstance(game.read(f"ACTION: {before}{one}{operator}{between}{behind}", NEW, 0), Illegal)
        assert isinstance(game.read(f"ACTION: {before}{one} {operator} x{behind}", NEW, 0), Illegal)


def test_who_declines_has_refused() -> None:
    found = an_auction().read("I'm sorry, but I can't help with that.", NEW, 0)
    assert isinstance(found, Illegal)
    assert found.kind == "refused"


@pytest.mark.parametrize(
    "piece", ["bid 37 ", "37\n", "ACTION: ", "bid " * 9 + "1.", "-", "$$", "\ud800\0", "*", "bid 3*", "a:"]
)
def test_a_long_hostile_text_is_read_in_no_time(piece: str) -> None:
    started = time.process_time()
    an_auction().read(piece * (300_000 // len(piece)), NEW, 0)
    assert time.process_time() - started < 3


def test_the_second_price_is_the_other_bid() -> None:
    game = an_auction(price="second")
    result = game.result(bids(game, NEW, 50, 30))
    assert result is not None
    assert (result.rewards, result.outcomes) == ((30.0, 0.0), ("win", "loss"))


def test_the_first_price_is_the_own_bid() -> None:
    game = an_auction(price="first")
    result = game.result(bids(game, NEW, 50, 30))
    assert result is not None
    assert result.rewards == (10.0, 0.0)


def test_who_wins_above_its_value_loses_points() -> None:
    game = an_auction()
    result = game.result(bids(game, NEW, 70, 90))
    assert result is not None
    assert (result.rewards, result.outcomes) == ((0.0, -30.0), ("loss", "win"))


def test_a_tie_and_its_lot_are_reported() -> None:
    game = an_auction()
    state = bids(game, NEW, 50, 50)
    result = game.result(state)
    assert result is not None
    assert result.flags == ("tie_by_lot",)
    assert game.encode_state(state)["lot_between"] == ["A", "B"]
    assert "The lot decided between the equal bids of A and B." in game.observation(state, 0)


def test_an_overbid_is_flagged_only_where_the_manifest_says_so() -> None:
    plain, watched = an_auction(), of_manifest(shipped("sealed-bid", severities={"overbid": "low"}))
    for game, flags in [(plain, ()), (watched, ("overbid",))]:
        result = game.result(bids(game, NEW, 70, 30))
        assert result is not None
        assert result.flags == flags


def test_what_an_auction_counts() -> None:
    game = an_auction()
    state = bids(game, NEW, 30, 45)
    measured = {seat: {name: count.numerator for name, count in game.measure_seat(state, seat).items()} for seat in (0, 1)}
    assert measured[0] == {"overbid": 0, "underbid": 30, "win_share": 0, "surplus": 0, "regret": 15, "efficiency": 0}
    assert measured[1] == {"overbid": 5, "underbid": 0, "win_share": 1, "surplus": 10, "regret": 0, "efficiency": 0}


def test_of_an_auction_that_was_not_held_only_bids_are_counted() -> None:
    game = an_auction()
    state = bids(game, NEW, 30)
    assert game.measure_seat(state, 0) == {"overbid": Count(0), "underbid": Count(30)}
    assert game.measure_seat(state, 1) == {}
    stopped = game.stop_episode(state, 1)
    assert (stopped.rewards, stopped.outcomes, stopped.flags) == ((0.0, 0.0), ("draw", "loss"), ("forfeit",))


@pytest.mark.parametrize("n_seats", [2, 3, 4])
def test_the_truthful_baseline_regrets_nothing_at_the_second_price(n_seats: int) -> None:
    game = an_auction(n_seats, price="second")
    baselines, rng = list_baselines(game), random.Random(2)
    for seed in range(150):
        state = game.reset(seed, tuple(range(n_seats)))
        while (seat := game.seat_to_move(state)) is not None:
            name = "truthful" if seat == 0 else rng.choice(list(baselines))
            state = game.step(state, seat, baselines[name](state, seat, rng))
        assert game.measure_seat(state, 0)["regret"].numerator == 0
        assert min(game.measure_seat(state, seat)["regret"].numerator for seat in range(n_seats)) >= 0


def test_baselines_bid_what_their_names_say() -> None:
    rng = random.Random(1)
    said = {name: chooses(NEW, 0, rng) for name, chooses in an_auction().baselines.items()}
    assert said == {"truthful": "bid 60", "shade-half": "bid 30", "max": "bid 100", "zero": "bid 0"}


def test_values_are_even_and_say_nothing_of_the_lot() -> None:
    game = an_auction()
    dealt = [game.reset(seed, (0, 1)) for seed in range(2_000)]
    assert {value for state in dealt for value in state.values} == set(range(101))
    low = [game.encode_state(bids(game, state, 7, 7))["winner"] for state in dealt if state.values[0] < 33]
    assert 0.4 < low.count("A") / len(low) < 0.6


def test_bids_are_hidden_until_all_have_bid() -> None:
    game = an_auction(3)
    state = bids(game, SealedBids(1, (60, 40, 20)), 83, 91)
    assert "91" not in game.observation(state, 0)
    assert "83" not in game.observation(state, 2)
    opened = game.observation(bids(game, state, 5), 2)
    assert "The bids: A 83, B 91, C 5." in opened
    assert "60" not in opened, "values are never told"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"settings": {"price": "third"}}, "price: first or second"),
        ({"settings": {"values": "public"}}, "settings"),
        ({"seats": ["A"]}, "2 to 4"),
        ({"seats": ["A", "A"]}, "2 to 4"),
        ({"seats": list("ABCDE")}, "2 to 4"),
        ({"turn_limit": 1}, "turn_limit"),
    ],
)
def test_a_manifest_that_cannot_be_played_is_rejected(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        of_manifest(shipped("sealed-bid", **changed))
