"""Patterns of blueprints find what JavaScript finds, and a hostile pattern ends with a clear result."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.rubric.blueprint import patterns
from dtef_pipeline.rubric.blueprint.patterns import BadPattern, SearchTooLong, compile_pattern, count_words, pattern_fault
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)


@pytest.mark.parametrize(("pattern", "ignore_case", "text", "found"), CASES["found_or_not"])
def test_pattern_is_found_where_javascript_finds_it(pattern: str, ignore_case: bool, text: str, found: bool) -> None:
    assert compile_pattern(pattern, ignore_case)(text) is found


@pytest.mark.parametrize("pattern", CASES["refused"])
def test_what_is_no_pattern_is_refused_with_a_reason(pattern: str) -> None:
    assert pattern_fault(pattern)
    with pytest.raises(BadPattern):
        compile_pattern(pattern)


@pytest.mark.parametrize(("pattern", "text"), [("(a|a)*$", "a" * 60 + "b"), (r"(x+x+)+y", "x" * 5_000)])
def test_search_that_takes_too_long_is_given_up(pattern: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its time limit the first would take longer than the test's own."""
    monkeypatch.setattr(patterns, "LONGEST_SEARCH", 0.1)
    with pytest.raises(SearchTooLong):
        compile_pattern(pattern)(text)


@pytest.mark.parametrize(
    "pattern", ["b{2147483647}", f"b{{{'9' * 5_000}}}", "((a{1000}){1000}){1000}", "(" * 500 + ")" * 500, "a" * 1_000_000]
)
def test_pattern_that_would_fill_the_memory_is_refused_at_once(pattern: str) -> None:
    started = time.process_time()
    assert pattern_fault(pattern)
    assert time.process_time() - started < 5


@given(st.text(), st.booleans(), st.text())
def test_any_text_is_a_pattern_or_has_a_fault(pattern: str, ignore_case: bool, text: str) -> None:
    if pattern_fault(pattern, ignore_case) is None:
        assert compile_pattern(pattern, ignore_case)(text) in (True, False)


@pytest.mark.parametrize(
    ("text", "words"), [("", 0), (" a  b\n", 2), ("a\x1cb", 1), ("a\ufeffb", 2), ("\x85", 1), ("a\u00a0b", 2)]
)
def test_words_are_counted_between_white_space_of_javascript(text: str, words: int) -> None:
    assert count_words(text) == words
