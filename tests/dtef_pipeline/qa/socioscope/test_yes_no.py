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
from tests.dtef_pipeline.qa.socioscope.scored import ANY_ANSWER, score
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)


@pytest.mark.parametrize("word", YES_WORDS)
def test_each_word_of_the_list_is_yes(word: str) -> None:
    assert score(YesNo(), f"**{word.upper()}**.", "Yes").value == 1
    assert score(YesNo(), word, "no").value == 0


@pytest.mark.parametrize("word", NO_WORDS)
def test_each_word_of_the_list_is_no(word: str) -> None:
    assert score(YesNo(), f"“{word.title()}” – they did", "False").value == 1
    assert score(YesNo(), word, "yes").value == 0


@pytest.mark.parametrize("answer", CASES["read_as_yes"])
def test_read_as_yes(answer: str) -> None:
    found = score(YesNo(), answer, "yes")
    assert (found.status, found.value, found.read_by, found.flags) == ("ok", 1.0, "first_word", ())


@pytest.mark.parametrize("answer", CASES["two_words_side_by_side_are_ambiguous"])
def test_two_words_side_by_side_are_ambiguous(answer: str) -> None:
    found = score(YesNo(), answer, "yes")
    assert (found.status, found.value, found.score, found.flags) == ("unparseable", None, 0.0, ("ambiguous",))


@pytest.mark.parametrize("answer", CASES["anything_else_cannot_be_read"])
def test_anything_else_cannot_be_read(answer: str | None) -> None:
    found = score(YesNo(), answer, "yes")
    assert (found.status, found.value, found.score, found.flags) == ("unparseable", None, 0.0, ("unparsed",))


@pytest.mark.parametrize("metric", ["maybe", "1", '["yes", "no"]', '{"yes": 1, "no": 0}', "yes no", "{broken"])
def test_a_metric_that_is_neither_is_refused(metric: str) -> None:
    with pytest.raises(ItemError):
        score(YesNo(), "yes", metric)


def test_an_empty_metric_scores_nothing() -> None:
    found = score(YesNo(), "yes", " ")
    assert (found.status, found.score) == ("unscorable", None)


@given(ANY_ANSWER)
def test_any_answer_has_a_score_of_0_or_1(answer: str) -> None:
    yes, no = score(YesNo(), answer, "yes"), score(YesNo(), answer, "no")
    assert yes.status == no.status
    assert {yes.value, no.value} in ({None}, {0.0, 1.0})


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


class TestJudged:
    def test_a_right_answer_waits_for_the_judge(self) -> None:
        found = score(YesNoRationale(), "Yes, the tide", JUDGED)
        assert is_waiting_for_judge(found)
        assert (found.status, found.score, found.details["binary"]) == ("missing", None, 1)

    def test_a_wrong_answer_needs_none(self) -> None:
        found = score(YesNoRationale(), "No, the tide", JUDGED)
        assert (found.status, found.value) == ("ok", 0)
        assert add_judged_rationale(found, 1.0) is found

    def test_the_judge_gives_what_the_reasons_are_worth(self) -> None:
        found = add_judged_rationale(score(YesNoRationale(), "Yes, the tide", JUDGED), 0.4)
        assert (found.status, found.details["rationale"], found.flags) == ("ok", 0.4, ("judged",))
        assert found.value == pytest.approx(0.25 + 0.75 * 0.4)
        assert not is_waiting_for_judge(found)

    def test_a_judge_that_fails_leaves_no_score(self) -> None:
        found = add_judged_rationale(score(YesNoRationale(), "Yes", JUDGED), None, "no JSON")
        assert (found.status, found.value, found.score, found.reason) == ("judge_failed", None, None, "no JSON")


@pytest.mark.parametrize(("answer", "value"), CASES["an_answer_and_its_reasons_may_be_a_json_object"])
def test_an_answer_and_its_reasons_may_be_a_json_object(answer: str, value: float) -> None:
    """It was unparseable."""
    metric = {"answer": "yes", "rationale": {"tide": 1, "moon": 1}, "weight": 0.5}
    assert score(YesNoRationale(), answer, metric).value == value
