"""What a judge of pairs is shown, and the vote that its two verdicts come to."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import pytest

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Response
from dtef_pipeline.preference.pair_verdicts import (
    PairEpisode,
    is_own_pair,
    judge_reviewer_id,
    pair_messages,
    pair_verdict,
    parse_judge_model,
    parse_order_verdicts,
)
from dtef_pipeline.preference.pairing import BlindedPair

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
