"""Pairs: who is shown beside whom, how often, and never twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.identity import normalize_text
from dtef_pipeline.preference.pairing import make_new_pairs
from dtef_pipeline.preference.votes import PairedResponse, VotePair, make_paired_response, vote_pair
from tests.made.voted import responses


def exposure(pairs: list[VotePair], rows: list[PairedResponse]) -> Counter[str]:
    player = {row.response_id: row.player for row in rows}
    return Counter(dict.fromkeys(player.values(), 0)) + Counter(
        player[side] for pair in pairs for side in (pair.left, pair.right)
    )


def spread(pairs: list[VotePair], rows: list[PairedResponse]) -> int:
    shown = exposure(pairs, rows)
    counts = [shown[row.player] for row in rows]
    return max(counts) - min(counts)


@given(st.integers(2, 13), st.integers(0, 100))
def test_every_player_is_shown_about_equally_often(players: int, per_item: int) -> None:
    rows = responses(players)
    pairs = make_new_pairs(rows, per_item=per_item)
    assert len(pairs) == min(per_item, players * (players - 1) // 2)
    assert spread(pairs, rows) <= 1


@given(st.integers(2, 9), st.lists(st.integers(1, 5), max_size=6))
def test_pairs_that_are_made_in_several_goes_stay_balanced(players: int, goes: list[int]) -> None:
    rows = responses(players)
    made: list[VotePair] = []
    for more in goes:
        made += make_new_pairs(rows, made, per_item=len(made) + more)
        assert spread(made, rows) <= 1
    assert len({pair.pair_id for pair in made}) == len(made)


def test_no_pair_is_made_twice_not_even_swapped() -> None:
    rows = responses(5, items=2)
    pairs = make_new_pairs(rows)
    assert len(pairs) == 20
    assert len({frozenset((pair.left, pair.right)) for pair in pairs}) == 20
    assert make_new_pairs(rows, pairs) == []
    assert all(vote_pair(right, left) == vote_pair(left, right) for left, right in combinations(rows[:5], 2))


def test_both_sides_are_of_one_item_and_draw_and_of_different_players() -> None:
    rows = [*responses(4, items=3, draws=2), replace(responses(1)[0], response_id="again", text="Something else.")]
    by_id = {row.response_id: row for row in rows}
    pairs = make_new_pairs(rows)
    assert len(pairs) == 3 * 2 * 6 + 3
    for pair in pairs:
        left, right = by_id[pair.left], by_id[pair.right]
        assert (left.item_id, left.draw, left.snapshot) == (right.item_id, right.draw, right.snapshot)
        assert left.player != right.player
        assert normalize_text(left.text) != normalize_text(right.text)


def test_texts_that_differ_by_space_and_case_alone_are_no_pair() -> None:
    rows = [
        make_paired_response("qa", "a", player, text, prompt="?")
        for player, text in (("x", "Yes.  "), ("y", "yes."), ("z", "No."))
    ]
    assert len(make_new_pairs(rows)) == 2


def test_pairs_follow_from_the_responses_and_not_from_their_order() -> None:
    rows = responses(6, items=4)
    assert make_new_pairs(rows, most=7) == make_new_pairs(rows[::-1], most=7)


def test_few_pairs_are_spread_over_the_items() -> None:
    pairs = make_new_pairs(responses(4, items=5), most=10)
    assert set(Counter(pair.item_id for pair in pairs).values()) == {2}


def test_one_player_or_none_makes_no_pair() -> None:
    assert make_new_pairs(responses(1)) == []
    assert make_new_pairs([]) == []
