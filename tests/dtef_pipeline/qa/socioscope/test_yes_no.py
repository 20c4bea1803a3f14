"""Yes/No: the first word decides."""

from __future__ import annotations

import pytest
from hypothesis import given

from dtef_pipeline.qa.model import ItemError
from dtef_pipeline.qa.socioscope.yes_no import NO_WORDS, YES_WORDS, YesNo
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
