"""Words as values are compared with them: singulars, numbers."""

from __future__ import annotations

import re
import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.socioscope.words import (
    convert_numbers_to_digits,
    extract_folded_answer,
    normalise_number,
    singularise,
    words,
)
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)
ANY_TEXT = st.text(st.characters(exclude_categories=()))
ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def in_english(number: int) -> str:
    """A number below 10^15 in words, written down independently of the code that reads it."""
    for power, name in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= power:
            head, rest = divmod(number, power)
            joint = " and " if power == 100 else " "
            return f"{in_english(head)} {name}" + (joint + in_english(rest) if rest else "")
    if number < 20:
        return [*ONES, *TEENS][number]
    return TENS[number // 10 - 2] + (f"-{ONES[number % 10]}" if number % 10 else "")


@pytest.mark.parametrize(("plural", "one"), CASES["singulars"])
def test_singulars(plural: str, one: str) -> None:
    assert singularise(plural) == one


@given(st.text("abcdehiosuyxz", max_size=12))
def test_a_singular_keeps_how_the_word_begins(word: str) -> None:
    one = singularise(word + "s")
    kept = max(0, len(word) - 3)
    assert one[:kept] == word[:kept]
    assert one


@pytest.mark.parametrize(("text", "found"), CASES["words_of_texts"])
def test_words_of_texts(text: str, found: list[str]) -> None:
    assert words(text) == found


@given(st.integers(0, 10**15 - 1))
def test_a_number_in_words_is_its_digits(number: int) -> None:
    assert words(in_english(number)) == [str(number)]
    assert words(f"{number:,}") == [str(number)]


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9))
def test_equal_numbers_are_one_word_and_others_are_not(number: Decimal) -> None:
    assert normalise_number(f"{number:f}") == normalise_number(f"{number:.9f}")
    assert Decimal(normalise_number(f"{number:f}") or "NaN") == number
    assert normalise_number(f"{number:f}") != normalise_number(f"{number + 1:f}")


@given(ANY_TEXT)
def test_words_of_any_text_are_words_of_small_ascii_letters(text: str) -> None:
    assert all(re.fullmatch(r"-?[a-z0-9]+(?:[./][a-z0-9]+)*|%", word) for word in words(extract_folded_answer(text)))


@given(
    st.lists(st.sampled_from([*ONES, *TENS, "hundred", "thousand", "million", "and", "a", "minus", "5", "-3", "0.5", "car"]))
)
def test_number_words_in_any_order_neither_fail_nor_vanish(mixed: list[str]) -> None:
    found = list(convert_numbers_to_digits(mixed))
    assert len(found) <= len(mixed)
    assert [word for word, _ in found if word == "car"] == ["car"] * mixed.count("car")
    assert all((normalise_number(word) == word) is is_number for word, is_number in found)


def test_thinking_and_pictures_are_not_read() -> None:
    assert extract_folded_answer("<think>No, wait.</think>✅ **Yes**, 👍") == "\n  **yes**,  "
    assert extract_folded_answer(None) == ""


@pytest.mark.parametrize("run", ["five hundred ", "1,111", "\u0301\u0316"])
def test_a_long_text_takes_no_more_than_its_length(run: str) -> None:
    started = time.perf_counter()
    words(run * (300_000 // len(run)))
    assert time.perf_counter() - started < 20
