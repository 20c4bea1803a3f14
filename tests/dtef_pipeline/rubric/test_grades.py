"""Grades as analysts write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.rubric.summaries.analyst_report import extract_reasoning, score_in


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("REASONING: fine. SCORE: 8.5/10", 8.5),
        ("SCORE: 7", 7.0),
        ("SCORE: 85", 8.5),
        ("score: **9** / 10", 9.0),
        ("**SCORE:** 6,5/10", 6.5),
        ("REASONING: a\nb SCORE: 3\n", 3.0),
        ("its score: 2 by rule\nSCORE: 4/10", 4.0),
        ("SCORE: 10/10", 10.0),
        ("SCORE: about 7", 7.0),
        ("SCORE: N/A", None),
        ("SCORE:", None),
        ("8/10", None),
        ("SCORE: 0/10", None),
        ("SCORE: -3", None),
        ("SCORE: 850", None),
        # More than the highest grade is no grade: 11/10 counted as 1.1.
        ("SCORE: 11/10", None),
        ("SCORE: 11 out of ten", None),
        ("SCORE: 11 points of 10", None),
        ("SCORE: 11\\/10", None),
        ("SCORE: 8 of ten", 8.0),
        ("SCORE: 8 (of 10)", 8.0),
        ("SCORE: 8 of the best", 8.0),
        ("SCORE: 11 stars out of 10", None),
        ("SCORE: <b>11</b>/10", None),
        ("SCORE: eleven/10", None),
        ("SCORE: out of 10, a 7", None),
        ("SCORE: 85\nin 10 lines", 8.5),
        ("SCORE: 85/100", 8.5),
        ("SCORE: 4/5", 8.0),
        ("SCORE: 8/0", 8.0),
    ],
)
def test_the_score_is_the_first_number_behind_its_word(text: str, score: float | None) -> None:
    assert score_in(text) == (None if score is None else pytest.approx(score))


def test_reasoning_may_span_lines() -> None:
    assert extract_reasoning("REASONING: one\ntwo\nSCORE: 8/10") == "one\ntwo"
    assert extract_reasoning("**REASONING:** one") == "one"


@given(st.text(max_size=80))
def test_whatever_is_written_a_score_is_none_or_from_1_to_10(text: str) -> None:
    score = score_in(f"SCORE: {text}")
    assert score is None or 1 <= score <= 10
