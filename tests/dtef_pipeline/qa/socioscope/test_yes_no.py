"""Yes/No: the first word decides. Yes/No with Rationale: a good reason for the wrong answer earns nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.model import ItemError
from dtef_pipeline.qa.socioscope.lists import ListMany
from dtef_pipeline.qa.socioscope.yes_no import (
    NO_WORDS,
    YES_WORDS,
    YesNo,
    YesNoRationale,
    add_judged_rationale,
    is_waiting_for_judge,
)
from tests.dtef_pipeline.qa.socioscope.scored import score
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)


@pytest.mark.parametrize(("expected", "other", "words"), [("Yes", "no", YES_WORDS), ("False", "yes", NO_WORDS)])
def test_each_word_of_a_list_is_an_answer(expected: str, other: str, words: tuple[str, ...]) -> None:
    for word in words:
        assert score(YesNo(), f"**{word.upper()}**.", expected).value == 1
        assert score(YesNo(), f"“{word.title()}” – they did", expected).value == 1
        assert score(YesNo(), word, other).value == 0


@pytest.mark.parametrize("answer", CASES["read_as_yes"])
def test_read_as_yes(answer: str) -> None:
    found = score(YesNo(), answer, "yes")
    assert (found.status, found.value, found.read_by, found.flags) == ("ok", 1.0, "first_word", ())


@pytest.mark.parametrize(
    ("answer", "flag"),
    [
        *((answer, "ambiguous") for answer in CASES["two_words_side_by_side_are_ambiguous"]),
        *((answer, "unparsed") for answer in CASES["anything_else_cannot_be_read"]),
    ],
)
def test_two_words_side_by_side_are_ambiguous_and_anything_else_cannot_be_read(answer: str | None, flag: str) -> None:
    found = score(YesNo(), answer, "yes")
    assert (found.status, found.value, found.score, found.flags) == ("unparseable", None, 0.0, (flag,))


@pytest.mark.parametrize("metric", ["maybe", "1", '["yes", "no"]', '{"yes": 1, "no": 0}', "yes no", "{broken"])
def test_a_metric_that_is_neither_is_refused(metric: str) -> None:
    with pytest.raises(ItemError):
        score(YesNo(), "yes", metric)


def test_an_empty_metric_scores_nothing() -> None:
    found = score(YesNo(), "yes", " ")
    assert (found.status, found.score) == ("unscorable", None)


REASONS = {"tide": 0.5, "storm": 0.5}
METRIC = {"answer": "yes", "rationale": REASONS, "weight": 0.5}
JUDGED = {"answer": "yes", "rationale": {"judge": True}, "weight": 0.25}


@pytest.mark.parametrize(("answer", "binary", "rationale", "value"), CASES["hand_values"])
def test_hand_values(answer: str, binary: int, rationale: float, value: float) -> None:
    found = score(YesNoRationale(), answer, METRIC)
    assert (found.status, found.details["binary"], found.flags) == ("ok", binary, ())
    assert found.details["rationale"] == pytest.approx(rationale)
    assert found.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("answer", "flag"), [("maybe the tide", "unparsed"), ("", "unparsed"), ("yes and no: tide", "ambiguous")]
)
def test_without_an_answer_no_reason_is_read(answer: str, flag: str) -> None:
    found = score(YesNoRationale(), answer, METRIC)
    assert (found.status, found.score, found.flags, found.details) == (
        "unparseable",
        0,
        (flag,),
        {"binary": None, "rationale": None},
    )


@given(st.sampled_from(["Yes", "No", "Perhaps"]), st.sampled_from(["tide", "storm tide", "cold", ""]), st.floats(0, 1))
def test_it_is_made_of_the_two_other_scorers(answer: str, reason: str, weight: float) -> None:
    found = score(YesNoRationale(), f"{answer}: {reason}", {**METRIC, "weight": weight})
    b, r = score(YesNo(), answer, "yes").value, score(ListMany(), reason, REASONS).value or 0
    assert found.value == (None if b is None else pytest.approx(weight * b + (1 - weight) * b * r))


@pytest.mark.parametrize("metric", ["", "{}", {"answer": "no", "rationale": {}}, {"answer": "no", "rationale": {"tide": 0}}])
def test_without_a_reason_that_counts_nothing_is_scored(metric: object) -> None:
    assert score(YesNoRationale(), "no", metric).status == "unscorable"


@pytest.mark.parametrize(("metric", "message"), CASES["what_is_refused_is_named"])
def test_what_is_refused_is_named(metric: object, message: str) -> None:
    with pytest.raises(ItemError, match=message):
        score(YesNoRationale(), "yes", metric)


def test_a_right_answer_waits_for_the_judge_and_a_wrong_one_needs_none() -> None:
    right, wrong = (score(YesNoRationale(), f"{word}, the tide", JUDGED) for word in ("Yes", "No"))
    assert is_waiting_for_judge(right)
    assert (right.status, right.score, right.details["binary"]) == ("missing", None, 1)
    found = add_judged_rationale(right, 0.4)
    assert (found.status, found.details["rationale"], found.flags) == ("ok", 0.4, ("judged",))
    assert found.value == pytest.approx(0.25 + 0.75 * 0.4)
    assert not is_waiting_for_judge(found)
    failed = add_judged_rationale(right, None, "no JSON")
    assert (failed.status, failed.value, failed.score, failed.reason) == ("judge_failed", None, None, "no JSON")
    assert (wrong.status, wrong.value) == ("ok", 0)
    assert add_judged_rationale(wrong, 1.0) is wrong


@pytest.mark.parametrize(("answer", "value"), CASES["an_answer_and_its_reasons_may_be_a_json_object"])
def test_an_answer_and_its_reasons_may_be_a_json_object(answer: str, value: float) -> None:
    """It was unparseable."""
    metric = {"answer": "yes", "rationale": {"tide": 1, "moon": 1}, "weight": 0.5}
    assert score(YesNoRationale(), answer, metric).value == value
