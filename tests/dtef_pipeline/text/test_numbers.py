"""Numbers in texts: figures, words, what is none, and no text that breaks the reader."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.text.alignment import align_lower, align_text
from dtef_pipeline.text.number_words import format_count, read_number_at
from dtef_pipeline.text.numbers import convert_to_json_number, find_numbers, format_figures, is_same_number, parse_exact_number

BELOW_TWENTY_SPELLED = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS_SPELLED = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def spelled(number: int, joiner: str, conjunction: str) -> str:
    """The number in words, by the school rule."""
    if number < 0:
        return "minus " + spelled(-number, joiner, conjunction)
    for scale, name in ((10**9, "billion"), (10**6, "million"), (10**3, "thousand")):
        if number >= scale:
            rest = f" {spelled(number % scale, joiner, conjunction)}" if number % scale else ""
            return f"{spelled(number // scale, joiner, conjunction)} {name}{rest}"
    if number >= 100:
        rest = f"{conjunction}{spelled(number % 100, joiner, conjunction)}" if number % 100 else ""
        return f"{BELOW_TWENTY_SPELLED[number // 100]} hundred{rest}"
    if number >= 20:
        return TENS_SPELLED[number // 10 - 2] + (f"{joiner}{BELOW_TWENTY_SPELLED[number % 10]}" if number % 10 else "")
    return BELOW_TWENTY_SPELLED[number]


def values(text: str) -> list[str]:
    return [format_figures(found.value) for found in find_numbers(align_lower(text))]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("one hundred fifty-seven thousand", 157_000),
        ("a hundred", 100),
        ("minus five", -5),
        ("Seventy-two", 72),
        ("one million, two hundred thousand and five", 1_200_005),
        ("fifteen hundred", 1500),
        ("two and a half", Fraction(5, 2)),
        ("two-thirds", Fraction(2, 3)),
        ("three point one four", Fraction(157, 50)),
        ("one point five million", 1_500_000),
        ("1,234.50", Fraction(2469, 2)),
        ("-$5", -5),
        ("$-5", -5),
        ("\u22125", -5),
        (".5", Fraction(1, 2)),
        ("3/4", Fraction(3, 4)),
        ("2 1/2", Fraction(5, 2)),
        ("1½", Fraction(3, 2)),
        ("1e3", 1000),
        ("4 × 10^3", 4000),
        ("2^{10}", 1024),
        ("2^-2", Fraction(1, 4)),
        ("-2^2", -4),
        ("12 345", 12_345),
        ("$12\u202f345.50", Fraction(24_691, 2)),
        ("1_000", 1000),
        ("1,00,000", 100_000),
        ("1.5 million", 1_500_000),
        ("$10k", 10_000),
        ("50 percent", 50),
        ("**72**.", 72),
        ("５", 5),
        ("٥", 5),
    ],
)
def test_one_number_has_its_exact_value(text: str, value: Fraction | int) -> None:
    assert parse_exact_number(text) == value


NO_NUMBERS = (
    "", "fifth", "5th", "twenty-first", "twenty first", "3:45", "1.2.3", "12/25/2020", "V", "x1", "3/0", "five apples", "5 6",
    "1e999", "no", "2 ** n", "10^999", "0^-1", "1_00", "1,23", "$1,23", "5,000,00", "1.234,56", "1000,50", "2^n", "two dozen",
    "a dozen", "half a dozen", "half", "5 12 345",
)  # fmt: skip


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_not_one_number_is_none(text: str) -> None:
    assert parse_exact_number(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 minus 3", ["5", "3"]),
        ("the change is - 5, x = - .5, it equals - 2", ["-5", "-0.5", "-2"]),
        ("- 5, this - 6, 9 - 2", ["5", "6", "9", "2"]),
        ("5-3 and 7 - 2", ["5", "3", "7", "2"]),
        ("five six", ["5", "6"]),
        ("twenty twenty-four", ["20", "24"]),
        ("one hundred two hundred", ["100", "200"]),
        ("at 3:45 we ran 300g", ["300"]),
        ("legos_4x500 and x2 and 1_00", []),
        ("5 m^2, 7 m^{3}", ["5", "7"]),
        ("10 100 1000", ["10", "100", "1000"]),
        ("3 100-gram bags", ["3", "100"]),
        ("1,2,3", ["1", "2", "3"]),
        ("the first of 5th Avenue 7", ["7"]),
        ("so it is...5", ["5"]),
        ("5 7/3", ["5", "7/3"]),
        ("答案是18个", ["18"]),
        ("<<60/100*5=3.0>>3", ["0.6", "5", "3", "3"]),
    ],
)
def test_numbers_of_a_text_come_in_order(text: str, expected: list[str]) -> None:
    assert values(text) == expected


def test_what_a_number_is_may_not_be_clear() -> None:
    texts = ("at 1,23 and 5", "2^n", "two dozen", "half a dozen", "a dozen")
    found = [(text[one.start : one.end], one.is_clear) for text in texts for one in find_numbers(align_lower(text))]
    assert found == [("1,23", False), ("5", True), ("2", False), *((text, False) for text in texts[2:])]
    assert [one.value for text in texts[2:] for one in find_numbers(align_lower(text))] == [24, 6, 12]


def test_words_of_a_list_are_read_from_a_place_on() -> None:
    assert read_number_at(["seventy", "two", "clips"]) == (72, 2)
    assert read_number_at(["in", "a", "hundred", "and", "five", "years"], 1) == (105, 5)
    assert read_number_at(["clips"]) is None
    assert read_number_at(["a", "car"]) is None
    assert read_number_at([], 3) is None


@given(st.integers(-(10**11), 10**11), st.sampled_from(["-", " "]), st.sampled_from([" ", " and "]))
def test_any_number_is_read_back_from_its_words(number: int, joiner: str, conjunction: str) -> None:
    words = spelled(number, joiner, conjunction)
    assert parse_exact_number(words) == number
    assert read_number_at(words.replace("-", " ").split()) == (number, len(words.replace("-", " ").split()))
    assert [found.value for found in find_numbers(f"she has {words} of them")] in ([number], [-number])


@given(st.decimals(-(10**12), 10**12, allow_nan=False, allow_infinity=False, places=4))
def test_any_decimal_is_read_back_from_its_figures(number: object) -> None:
    exact = Fraction(str(number))
    assert parse_exact_number(f"{number:,f}") == parse_exact_number(f"${number}") == parse_exact_number(f"{number}%") == exact
    assert parse_exact_number(format_figures(exact)) == exact


@given(st.fractions())
def test_figures_are_one_spelling_for_one_value(value: Fraction) -> None:
    assert Fraction(format_figures(value)) == value


@given(st.text(st.sampled_from("0123456789.,:/-+$%eE xone hundred½minus and a ^10*\n\ud800\x00")) | st.text())
def test_every_place_lies_in_the_text_and_none_overlaps(text: str) -> None:
    assert len(align_text(text)) == len(align_lower(text)) == len(text)
    passed = 0
    for found in find_numbers(align_lower(text)):
        assert passed <= found.start < found.end <= len(text)
        passed = found.end
        convert_to_json_number(found.value)


PIECES = (
    "(", "1", "####", "1,23,", "1,234,", "1.234", "1_000", "1 000 ", "2^", "a half ", "1:", "1.1.", "one ", "one, ", "a hundred ",
    "-", "minus ", "1/", "\x00", "�", "½", "²", " ",
)  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_a_long_text_of_one_piece_is_read(piece: str) -> None:
    for _ in find_numbers(piece * (15_000 // len(piece))):
        pass


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("72.0", "72", True),
        ("0.5", "50", False),
        ("1000000", "1000001", True),
        ("1000000", "1000002", False),
        ("0.0000005", "0", True),
        ("0.000002", "0", False),
        ("1/3", "0.333333", True),
    ],
)
def test_numbers_are_the_same_up_to_a_millionth(a: str, b: str, same: bool) -> None:
    assert is_same_number(Fraction(a), Fraction(b)) is same


def test_whole_numbers_are_whole_in_json() -> None:
    assert repr(convert_to_json_number(Fraction(72))) == "72"
    assert repr(convert_to_json_number(Fraction(144, 2))) == "72"
    assert repr(convert_to_json_number(Fraction(74, 5))) == "14.8"
    assert isinstance(convert_to_json_number(Fraction(10) ** 60), float)


def test_one_is_singular_and_thousands_have_a_comma() -> None:
    texts = [format_count(number, "more row") for number in (0, 1, 2, 1200)]
    assert texts == ["0 more rows", "1 more row", "2 more rows", "1,200 more rows"]
    assert [format_count(2, noun) for noun in ("day", "battery", "question battery")] == [
        "2 days",
        "2 batteries",
        "2 question batteries",
    ]
