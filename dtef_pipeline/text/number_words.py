"""Numbers in English words: `one hundred fifty-seven thousand`, `a hundred and five`, `three point one four`, `two and a half`.

The words are read once from left to right. Consecutive words that do not form one number are several
(`five six`, `twenty twenty-four`). Ordinals (`twenty-first`, `fifth`) are not numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

_FIGURES = "zero one two three four five six seven eight nine"
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
BELOW_TWENTY = {word: value for value, word in enumerate(f"{_FIGURES} {_TEENS}".split())}
TENS_OF_WORDS = {
    word: 10 * value
    for value, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], start=2)
} | {"fourty": 40}
SCALES_OF_WORDS = {word: 1000**power for power, word in enumerate(["thousand", "million", "billion", "trillion"], start=1)}
ORDINALS_BELOW_TEN = frozenset(["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"])
PARTS_OF_ONE = {"half": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourths": 4, "fifths": 5, "eighths": 8}
_ARTICLES = ("a", "an")
_SIGNS = ("minus", "negative")
_MAX_DIGITS = 30


class NumberRun(NamedTuple):
    """A number in words, and the index after its last word."""

    value: Fraction
    end: int


def read_number_at(words: Sequence[str], start: int = 0) -> NumberRun | None:
    """Return the longest number in words that begins at word `start`, or None.

    Words are lower case with hyphens split: `["seventy", "two", "clips"]` gives 72 with end 2.
    """
    sign, place = (-1, start + 1) if _word_at(words, start) in _SIGNS else (1, start)
    number = _read_whole(words, place)
    if number is None:
        is_half = _word_at(words, place) in _ARTICLES and _word_at(words, place + 1) == "half"
        return NumberRun(Fraction(sign, 2), place + 2) if is_half else None
    last, after = words[number.end - 1], _word_at(words, number.end)
    if after in ORDINALS_BELOW_TEN and (last in TENS_OF_WORDS or last == "hundred") and after != "second":
        return None  # an ordinal, such as `twenty first`
    result = _add_decimals(words, _add_fraction_words(words, number))
    return NumberRun(sign * result.value, result.end)


def _word_at(words: Sequence[str], place: int) -> str:
    return words[place] if place < len(words) else ""


def _read_below_hundred(words: Sequence[str], place: int) -> tuple[int, int] | None:
    word = _word_at(words, place)
    if (small := BELOW_TWENTY.get(word)) is not None:
        return small, place + 1
    if (tens := TENS_OF_WORDS.get(word)) is None:
        return None
    unit = BELOW_TWENTY.get(_word_at(words, place + 1), 0)
    return (tens + unit, place + 2) if 0 < unit < 10 else (tens, place + 1)


def _read_below_thousand(words: Sequence[str], place: int) -> tuple[int, int] | None:
    """Read a number below 1,000, or `fifteen hundred`; `a` counts as one only before `hundred`."""
    if _word_at(words, place) in _ARTICLES and _word_at(words, place + 1) == "hundred":
        hundreds, end = 1, place + 1
    elif _word_at(words, place) == "hundred":
        hundreds, end = 1, place
    else:
        tens = _read_below_hundred(words, place)
        if tens is None or not tens[0] or _word_at(words, tens[1]) != "hundred":
            return tens
        hundreds, end = tens
    end += 1
    remainder = _read_below_hundred(words, end + 1 if _word_at(words, end) == "and" else end)
    if remainder is None or not remainder[0] or _word_at(words, remainder[1]) == "hundred":
        return 100 * hundreds, end
    return 100 * hundreds + remainder[0], remainder[1]


def _read_whole(words: Sequence[str], place: int) -> NumberRun | None:
    total, end, last_scale = 0, place, 1000**5
    while True:
        start = end + 1 if end > place and _word_at(words, end) == "and" else end
        count = _read_multiplier(words, start)
        if count is None:
            break
        value, after = count
        scale = SCALES_OF_WORDS.get(_word_at(words, after), 1)
        if scale >= last_scale or (scale == 1 and end > place and (not value or value >= last_scale)):
            break
        total, end, last_scale = total + value * scale, after + (scale > 1), scale
        if scale == 1:
            break
    return NumberRun(Fraction(total), end) if end > place else None


def _read_multiplier(words: Sequence[str], place: int) -> tuple[int, int] | None:
    """Read the multiplier before a scale word; `a` or no word is one."""
    if _word_at(words, place) in SCALES_OF_WORDS:
        return 1, place
    if _word_at(words, place) in _ARTICLES and _word_at(words, place + 1) in SCALES_OF_WORDS:
        return 1, place + 1
    return _read_below_thousand(words, place)


def _add_fraction_words(words: Sequence[str], number: NumberRun) -> NumberRun:
    """Read `two and a half`, `six and three quarters`, `one half`."""
    if number.value == 1 and _word_at(words, number.end) == "half":
        return NumberRun(Fraction(1, 2), number.end + 1)
    if _word_at(words, number.end) != "and":
        return number
    count = 1 if _word_at(words, number.end + 1) in _ARTICLES else BELOW_TWENTY.get(_word_at(words, number.end + 1), 0)
    parts = PARTS_OF_ONE.get(_word_at(words, number.end + 2), 0)
    return NumberRun(number.value + Fraction(count, parts), number.end + 3) if 0 < count < parts else number


def _add_decimals(words: Sequence[str], number: NumberRun) -> NumberRun:
    """Read `three point one four`, `one point five million`."""
    if _word_at(words, number.end) != "point" or _word_at(words, number.end + 1) not in BELOW_TWENTY:
        return number
    end, digits = number.end + 1, ""
    while len(digits) < _MAX_DIGITS and (word := _word_at(words, end)) in BELOW_TWENTY:
        digits += str(BELOW_TWENTY[word])
        end += 1
    value = number.value + Fraction(int(digits), 10 ** len(digits))
    scale = SCALES_OF_WORDS.get(_word_at(words, end))
    return NumberRun(value * scale, end + 1) if scale else NumberRun(value, end)


def format_count(number: int, noun: str) -> str:
    """Return `1 pair`, `2 pairs`, `1,200 batteries`. `noun` is singular and may have several words, see `format_plural`."""
    return f"{number:,} {noun if number == 1 else format_plural(noun)}"


def format_plural(noun: str) -> str:
    """Return `pairs`, `days`, `batteries`: the plural of one or several words that take an s."""
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{noun}s"


def list_first_names(names: Sequence[str], limit: int, separator: str = ", ") -> str:
    """List the first `limit` names and the number of others: `a, b and 3 more`."""
    suffix = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return f"{separator.join(names[:limit])}{suffix}"
