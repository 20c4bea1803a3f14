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


@pytest.mark.parametrize(
    ("plural", "one"),
    [
        *(("cars", "car"), ("studies", "study"), ("buses", "bus"), ("bus", "bus"), ("glass", "glass"), ("glasses", "glass")),
        *(("boxes", "box"), ("dishes", "dish"), ("churches", "church"), ("houses", "house"), ("causes", "cause")),
        *(("viruses", "virus"), ("potatoes", "potato"), ("movies", "movie"), ("ties", "tie"), ("oysters", "oyster")),
        *(("children", "child"), ("wives", "wife"), ("shelves", "shelf"), ("analyses", "analysis"), ("analysis", "analysis")),
        *(("news", "news"), ("mathematics", "mathematics"), ("texas", "texas"), ("collections", "collection")),
        *(("his", "his"), ("gas", "gas"), ("s", "s"), ("", ""), ("5s", "5s"), ("1990s", "1990s"), ("sts", "sts")),
    ],
)
def test_singulars(plural: str, one: str) -> None:
    assert singularise(plural) == one


@given(st.text("abcdehiosuyxz", max_size=12))
def test_a_singular_keeps_how_the_word_begins(word: str) -> None:
    one = singularise(word + "s")
    kept = max(0, len(word) - 3)
    assert one[:kept] == word[:kept]
    assert one


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("five 5.0 05 5", ["5"] * 4),
        ("5th v V 15 fin", ["5th", "v", "v", "15", "fin"]),
        ("seventy-two clips", ["72", "clip"]),
        ("94.07 94", ["94.07", "94"]),
        ("1,319 1319 1,234,567.50", ["1319", "1319", "1234567.5"]),
        ("75,82,101,105", ["75", "82", "101", "105"]),
        ("one hundred and five oysters and a hundred cars", ["105", "oyster", "and", "100", "car"]),
        ("5 million, 1.5 thousand", ["5000000", "1500"]),
        ("twenty twenty-four", ["20", "24"]),
        ("two million and a car", ["2000000", "and", "a", "car"]),
        ("five hundred and", ["500", "and"]),
        ("minus five -5 minus minus zero", ["-5", "-5", "minus", "0"]),
        ("50% fifty percent", ["50", "%"] * 2),
        ("STS-75 sts 75 STS–75", ["sts", "75"] * 3),
        ("3.5kg v2.0", ["3.5kg", "v2.0"]),
        ("It was the Cars' museum", ["it", "was", "the", "car", "museum"]),
        ("a an minus cars", ["a", "an", "minus", "car"]),
        ("the twenty-first, the 5th, two fifths", ["the", "twenty", "first", "the", "5th", "2", "fifth"]),
        ("two and a half, 3 hundred thousand, hundreds", ["2.5", "300000", "hundred"]),
        ("six and two thirds", ["20/3"]),
        ("1 thousand 2 million", ["1000", "2000000"]),
    ],
)
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
