"""A judgement: one request, one correction where the reply cannot be read, then a class or a reason."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dtef_pipeline.asking.request import Failure, Request, Response
from dtef_pipeline.judging.judgement import build_first_request, build_next_request, resolve_judgement
from dtef_pipeline.judging.judges import JudgeConfig
from dtef_pipeline.judging.prompts import Case
from tests.dtef_pipeline.judging.cases import CASE, CRITERIA, GOOD, JUDGE, MINI, replied

FIRST = build_first_request(CASE, JUDGE, 0, "base")
BAD = "Rather good."


def replies(*said: str | tuple[str, str]) -> list[Response]:
    """The stored replies, each with its own key; a pair has a finish reason."""
    pairs = [(one, "stop") if isinstance(one, str) else one for one in said]
    return [replied(FIRST, text, finish_reason=why, request_key=f"k{at}") for at, (text, why) in enumerate(pairs)]


def test_an_unreadable_reply_is_shown_to_its_judge_once() -> None:
    again = build_next_request(FIRST, replies(BAD))
    assert again is not None
    assert again.messages[:2] == FIRST.messages
    assert again.messages[2].text == BAD
    assert (again.model, again.role, again.draw, again.snapshot) == (FIRST.model, "judge", FIRST.draw, FIRST.snapshot)
    assert again.key != FIRST.key
    assert build_next_request(FIRST, replies(BAD, BAD)) is None
    judged = resolve_judgement(replies(BAD, GOOD))
    assert (judged.score, judged.attempts, judged.raws) == (0.75, 2, (BAD, GOOD))


@pytest.mark.parametrize("text", ["", "<reflection>The text", "CLASS_UNMET would mean that"])
def test_after_a_reply_that_was_cut_there_is_room_for_twice_the_tokens(text: str) -> None:
    again = build_next_request(FIRST, replies((text, "length")))
    assert again is not None
    assert again.model.variant == "openai/mini[max_tokens=4096,temperature=0]"
    assert again.model.name == "mini"
    assert resolve_judgement(replies((text, "length"), (text, "length"))).reason == "cut"


def test_a_verdict_in_its_tags_counts_even_where_the_reply_was_cut_behind_it() -> None:
    said = replies((GOOD + "\nBesides", "length"))
    assert build_next_request(FIRST, said) is None
    assert resolve_judgement(said).score == 0.75


def test_a_judge_without_a_limit_is_asked_again_without_one() -> None:
    judge = JudgeConfig("standard", MINI.model_validate({"name": "m", "model": "openai/m", "max_tokens": None}))
    again = build_next_request(build_first_request(CASE, judge, 0, "base"), replies(("", "length")))
    assert again is not None
    assert again.model.variant == "openai/m[temperature=0]"


@pytest.mark.parametrize(
    ("outcomes", "reason"),
    [
        (replies(BAD, BAD), "unreadable"),
        (replies(BAD), "unreadable"),
        (replies(BAD, ("<reflection>a", "length")), "cut"),
        (replies(BAD, ""), "empty"),
        (replies(("", "content_filter"), ("", "content_filter")), "declined"),
        (replies(BAD, "I'm sorry, but I can't."), "declined"),
        ([Failure("k", "HTTP 500", 7)], "error"),
        ([*replies(BAD), Failure("k", "HTTP 500", 7)], "error"),
        ([*replies(BAD), Failure("k", "over", 0, "budget")], "budget"),
        ([], "error"),
    ],
)
def test_what_has_no_class_has_a_reason_and_no_number(outcomes: Sequence[Response | Failure], reason: str) -> None:
    judged = resolve_judgement(outcomes)
    assert (judged.name, judged.score, judged.reason) == (None, None, reason)
    assert len(judged.request_keys) == judged.attempts == len(outcomes)
    assert len(judged.raws) == sum(isinstance(one, Response) for one in outcomes)


def judged_by(approach: str, criteria: tuple[str, ...], at: int = 0) -> Request:
    return build_first_request(Case(CASE.text, criteria[at], CASE.turns, criteria), JudgeConfig(approach, MINI), 0, "base")


@pytest.mark.parametrize(("approach", "asked_again"), [("standard", False), ("prompt-aware", False), ("holistic", True)])
def test_an_edited_criterion_judges_the_others_again_only_where_they_are_seen_together(
    approach: str, asked_again: bool
) -> None:
    edited = (CRITERIA[0], "Names two sources.", CRITERIA[2])
    assert (judged_by(approach, CRITERIA).key != judged_by(approach, edited).key) == asked_again
    assert judged_by(approach, CRITERIA, 1).key != judged_by(approach, edited, 1).key


def test_criteria_in_another_order_are_judged_already() -> None:
    turned = CRITERIA[::-1]
    assert judged_by("holistic", CRITERIA).key == judged_by("holistic", turned, 2).key
