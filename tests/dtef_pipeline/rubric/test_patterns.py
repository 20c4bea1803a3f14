"""Patterns of blueprints find what JavaScript finds, and a hostile pattern ends with a clear result."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.rubric.blueprint import patterns
from dtef_pipeline.rubric.blueprint.patterns import BadPattern, SearchTooLong, compile_pattern, count_words, pattern_fault

FOUND_OR_NOT: list[tuple[str, bool, str, bool]] = [
    # The end: `$` before a final newline, in a set, and escaped.
    ("^a$", False, "a", True),
    ("^a$", False, "a\n", False),
    ("a$|b", False, "a\nb", True),
    ("^a[$]", False, "a$\n", True),
    (r"^a\$", False, "a$\n", True),
    # Digits, word characters and white space are those of JavaScript.
    (r"\d", False, "\u0663", False),
    (r"\w", False, "\xe9", False),
    (r"\W", False, "\xe9", True),
    ("\\b\xe9", False, "\xe9", False),
    ("\xe9\\b", False, "\xe9a", True),
    (r"\bword\b", False, "a word.", True),
    (r"\s", False, "\ufeff", True),
    (r"\s", False, "\xa0", True),
    (r"\s", False, "\x85", False),
    (r"\s", False, "\x1c", False),
    (r"\S", False, "\u180e", True),
    # Any character but the end of a line.
    ("a.b", False, "a\nb", False),
    ("a.b", False, "a\rb", False),
    ("a.b", False, "a\u2028b", False),
    ("a.b", False, "a\x85b", True),
    (r"Nile[\s\S]+Amazon", False, "Nile\n\nAmazon", True),
    # Sets.
    ("a[^]b", False, "a\nb", True),
    ("a[]b", False, "ab", False),
    ("[[]", False, "[", True),
    ("[[a]]", False, "a]", True),
    ("[[:alpha:]]", False, ":]", True),
    (r"[\d-x]", False, "-", True),
    (r"[a-\d]", False, "b", False),
    (r"[\w-]", False, "-", True),
    (r"[^\W_]", False, "\u0131", False),
    (r"[\W]", False, "\u0131", True),
    (r"[^\D1]", False, "1a", False),
    (r"[^\S\n]", False, "\n", False),
    (r"[\b]", False, "\x08", True),
    # Names, numbers and escapes.
    (r"(?<x>a)\k<x>", False, "aa", True),
    (r"(?<x>a)\k<x>", False, "ab", False),
    (r"(a)\1", True, "aA", True),
    (r"\u{2}", False, "uu", True),
    (r"\u0061\x41", False, "aA", True),
    (r"\x6", False, "x6", True),
    (r"\/\-\_\Q\R\X\Z\e\m\p{L}", False, "/-_QRXZemp{L}", True),
    ("a{,2}", False, "aa", False),
    (r"\frac{d}{2}", False, "anything", False),
    ("a{", False, "a{", True),
    ("x{2}y", False, "xxy", True),
    ("(?<=a+)b", False, "aab", True),
    ("(?<!a)b", False, "ab", False),
    # Where case does not matter.
    ("ABC", True, "xabcx", True),
    ("\xe9", True, "\xc9", True),
    ("[\xe0-\xfd]", True, "\xc9", True),
    ("[^\xe9]", True, "\xc9", False),
    ("\u03c3", True, "\u03c2", True),
    ("i", True, "\u0130", False),
    ("i", True, "\u0131", False),
    ("s", True, "\u017f", False),
    ("k", True, "\u212a", False),
    ("\u212a", True, "k", False),
    ("[a-z]", True, "\u212a", False),
    ("[^a-z]", True, "\u212a", True),
    (r"[\W]", True, "k", False),
    (r"\W", True, "\u017f", True),
    ("ss", True, "\xdf", False),
]
"""Pattern, whether case is ignored, text, and whether it is found, as node 20 has it."""
REFUSED = [
    *("(", ")", "(?", "(?i:a)", "(?i)a", "(?#a)", "(?>a)", "(?P<x>a)", "(?<>x)", "(?:", "a(?<=", "(?<a>x)\\k<b>"),
    *("[", "[a", "[\\", r"a[\S", "\\", "[z-a]", "*", "+a", "{1}", "a**", "a++", "a{2}+", "a*?+", "a{2,1}", "a|*"),
]
"""JavaScript refuses these."""


@pytest.mark.parametrize(("pattern", "ignore_case", "text", "found"), FOUND_OR_NOT)
def test_pattern_is_found_where_javascript_finds_it(pattern: str, ignore_case: bool, text: str, found: bool) -> None:
    assert compile_pattern(pattern, ignore_case).has_match(text) is found


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_is_no_pattern_is_refused_with_a_reason(pattern: str) -> None:
    assert pattern_fault(pattern)
    with pytest.raises(BadPattern):
        compile_pattern(pattern)


@pytest.mark.parametrize(("pattern", "text"), [("(a|a)*$", "a" * 60 + "b"), (r"(x+x+)+y", "x" * 5_000)])
def test_search_that_takes_too_long_is_given_up(pattern: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its time limit the first would take longer than the test's own."""
    monkeypatch.setattr(patterns, "LONGEST_SEARCH", 0.1)
    with pytest.raises(SearchTooLong):
        compile_pattern(pattern).has_match(text)


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
        assert compile_pattern(pattern, ignore_case).has_match(text) in (True, False)


@pytest.mark.parametrize(
    ("text", "words"), [("", 0), (" a  b\n", 2), ("a\x1cb", 1), ("a\ufeffb", 2), ("\x85", 1), ("a\u00a0b", 2)]
)
def test_words_are_counted_between_white_space_of_javascript(text: str, words: int) -> None:
    assert count_words(text) == words
