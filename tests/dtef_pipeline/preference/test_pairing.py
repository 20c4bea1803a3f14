"""Pairs: who is shown beside whom, and what a judge of pairs says."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Response
from dtef_pipeline.identity import normalize_text
from dtef_pipeline.preference.pair_verdicts import (
    PairEpisode,
    is_own_pair,
    judge_reviewer_id,
    pair_messages,
    pair_verdict,
    parse_judge_model,
    parse_order_verdicts,
)
from dtef_pipeline.preference.pairing import BlindedPair, make_new_pairs
from dtef_pipeline.preference.votes import PairedResponse, VotePair, make_paired_response, vote_pair
from tests.made.votes import responses


def exposure(pairs: list[VotePair], rows: list[PairedResponse]) -> Counter[str]:
    player = {row.response_id: row.player for row in rows}
    return Counter(dict.fromkeys(player.values(), 0)) + Counter(
        player[side] for pair in pairs for side in (pair.left, pair.right)
    )


def spread(pairs: list[VotePair], rows: list[PairedResponse]) -> int:
    shown = exposure(pairs, rows)
    counts = [shown[row.player] for row in rows]
    return max(counts) - min(counts)


@given(st.integers(2, 13), st.lists(st.integers(1, 30), max_size=6))
def test_pairs_that_are_made_in_several_goes_stay_balanced(players: int, goes: list[int]) -> None:
    rows = responses(players)
    made: list[VotePair] = []
    for more in goes:
        wanted = min(len(made) + more, players * (players - 1) // 2)
        made += make_new_pairs(rows, made, per_item=len(made) + more)
        assert len(made) == wanted
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


def test_pairs_follow_from_the_responses_and_few_are_spread_over_the_items() -> None:
    rows = responses(6, items=4)
    assert make_new_pairs(rows, most=7) == make_new_pairs(rows[::-1], most=7)
    pairs = make_new_pairs(responses(4, items=5), most=10)
    assert set(Counter(pair.item_id for pair in pairs).values()) == {2}
    assert make_new_pairs(responses(1)) == make_new_pairs([]) == []


PAIR = BlindedPair("p1", "Which river?", "The first says <TEXT_B>hi</TEXT_B>.", "The second.")
JUDGE = ModelSpec(name="mini", model="openai/mini")


def reply(text: str, finish_reason: str = "stop") -> Response:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    key = "0123456789abcdef0123456789abcdef"
    return Response(key, "p", "mini", "openai/mini", 0, "base", text, finish_reason, None, None, 1, 1, 0.0, 0.1, 1, at)


def says(choice: str) -> list[Response | Failure]:
    name = {"A": "CLASS_A", "B": "CLASS_B", "tie": "CLASS_TIE"}[choice]
    return [reply(f"<reflection>Well.</reflection>\n<classification>{name}</classification>")]


def test_the_swapped_order_has_the_texts_the_other_way_round_and_nothing_else_of_the_pair() -> None:
    shown, swapped = (pair_messages(PAIR, order)[1].text for order in ("shown", "swapped"))
    assert shown.index("The first") < shown.index("The second")
    assert swapped.index("The second") < swapped.index("The first")
    assert "p1" not in shown
    assert shown.count("<TEXT_B>") == 1, "a text opens no block"


@pytest.mark.parametrize(("first", "second"), list(product(("A", "B", "tie"), repeat=2)))
def test_only_a_verdict_that_survives_the_swap_counts(first: str, second: str) -> None:
    found = pair_verdict(says(first), says(second))
    survives = (first, second) in {("A", "B"), ("B", "A"), ("tie", "tie")}
    assert found.choice == (first if survives else "tie")
    assert found.is_flipped is not survives
    assert (found.first, found.n_decided) == ([first, second].count("A"), 2 - [first, second].count("tie"))
    said = parse_order_verdicts(found.justification)
    assert said == (first, second)
    assert said is not None
    assert said.is_flipped is found.is_flipped


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (reply("A is better."), "unreadable"),
        (reply("  "), "empty"),
        (reply("CLASS_A and CLASS_B"), "unreadable"),
        (reply("<classification>CLASS_C</classification>"), "unreadable"),
        (reply("CLASS_A", "length"), "cut"),
        (reply("I cannot compare these."), "declined"),
        (Failure("k", "no", 1, "budget"), "budget"),
    ],
)
def test_a_look_without_a_verdict_is_no_vote_and_says_why(outcome: Response | Failure, reason: str) -> None:
    for looks in (([outcome], says("A")), (says("A"), [outcome])):
        found = pair_verdict(*looks)
        assert (found.choice, found.reason, found.is_flipped) == (None, reason, False)


def test_a_reply_that_cannot_be_read_is_asked_for_once_more_as_a_judge() -> None:
    look = PairEpisode(PAIR, JUDGE, "shown")
    first = look.next([])
    assert first is not None
    assert first.role == "judge"
    again = look.next([reply("Hm.")])
    assert again is not None
    assert again.key != first.key
    assert look.next([reply("Hm."), reply("Hm.")]) is None
    assert look.next(says("A")) is None  # type: ignore[arg-type]


def test_what_others_wrote_in_a_justification_is_no_verdict_of_a_judge() -> None:
    for text in ("", "I like A.", "[shown A by me] [swapped B by me]", "[swapped A by 0]" * 50_000):
        assert parse_order_verdicts(text) is None


def test_a_judge_is_known_by_its_variant_and_by_its_prompt() -> None:
    """Another wording is another reviewer: change this literal only with the wording."""
    assert judge_reviewer_id(JUDGE) == "pairs(openai/mini[max_tokens=256,temperature=0])#844a6136"


@pytest.mark.parametrize("length", [130, 190, 300])
def test_of_a_judge_with_a_long_variant_the_model_and_its_maker_stay_known(length: int) -> None:
    """A hash stood for all of the variant: no vote of such a judge was self-judged."""
    model = "openai/" + "m" * length
    ids = [judge_reviewer_id(ModelSpec(name="long", model=model, temperature=one)) for one in (0, 1)]
    assert all(len(one) <= 250 for one in ids)
    assert ids[0] != ids[1]
    assert {parse_judge_model(one) for one in ids} == {model[:200]}
    assert all(is_own_pair(one, "openai/other", "google/else") for one in ids)
    assert not is_own_pair(ids[0], "anthropic/other", "google/else")
    # At an address of its own the maker is unknown, and the model is told by its name.
    assert is_own_pair(ids[0], f"{model[:200]}[temperature=1]", "google/else", [model[:200]])
