"""Numbers among the words of a text, however they are written: `five`, `5.0` and `05` are `5`, `seventy two` is `72`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

_ONES_NAMES = "zero one two three four five six seven eight nine"
_TEENS_NAMES = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS_NAMES = "twenty thirty forty fifty sixty seventy eighty ninety"
_UNITS = {word: value for value, word in enumerate(f"{_ONES_NAMES} {_TEENS_NAMES}".split())}
_TENS_WORDS = {word: 10 * tens for tens, word in enumerate(_TENS_NAMES.split(), 2)}
_POWERS = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_LARGE = frozenset(("hundred", *_POWERS))
_BEGINS_NUMBER = frozenset((*_UNITS, *_TENS_WORDS, *"0123456789-"))
_DIGITS_ONLY = re.compile(r"(-?)0*([0-9]+)(?:\.([0-9]*?)0*)?")
_LONGEST_MULTIPLIED = 15
"""Digits of the longest number that a word such as `million` multiplies."""


class SpelledNumber(NamedTuple):
    """A number among words, and the place of the first word after it."""

    value: Decimal
    end: int


def plain_number(word: str) -> str | None:
    """A number in its shortest decimal form: `5` for `5.0` and `05`. None: the word is no number written in digits."""
    found = _DIGITS_ONLY.fullmatch(word)
    if found is None:
        return None
    sign, whole, part = found.groups()
    digits = f"{whole}.{part}" if part else whole
    return digits if digits == "0" else sign + digits


def numbers_in_digits(words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """The normalised words with every number in its shortest decimal form, and whether each is a number.

    A number that is written in several words becomes one; `a` counts as one before `hundred` and what is larger, and `minus` makes the
    number after it negative. Numbers side by side stay apart: `twenty twenty four` is 20 and 24. `5th` and `v` are no numbers.
    """
    at = 0
    while at < len(words):
        sign = "-" if words[at] == "minus" else ""
        number, end = _number_at(words, at + len(sign))
        if number is None or (sign and (number == "0" or number[0] == "-")):
            yield words[at], False
            at += 1
        else:
            yield sign + number, True
            at = end


def _number_at(words: Sequence[str], at: int) -> tuple[str | None, int]:
    word = words[at] if at < len(words) else ""
    if word not in _BEGINS_NUMBER and word[:1] not in _BEGINS_NUMBER and not _is_one(words, at):
        return None, at
    digits = plain_number(word)
    if digits is not None and (len(digits) > _LONGEST_MULTIPLIED or _word(words, at + 1) not in _LARGE):
        return digits, at + 1
    spelled = _powers_at(words, at)
    return (plain_number(f"{spelled.value:f}"), spelled.end) if spelled else (None, at)


def _word(words: Sequence[str], at: int) -> str:
    return words[at] if at < len(words) else ""


def _is_one(words: Sequence[str], at: int) -> bool:
    return _word(words, at) in ("a", "an") and _word(words, at + 1) in _LARGE


def _powers_at(words: Sequence[str], at: int) -> SpelledNumber | None:
    """`two million three hundred thousand and five`: parts below a thousand, each times a smaller power of ten than the one before."""
    number, smallest = None, 10 * max(_POWERS.values())
    while part := _hundreds_at(words, at, first=number is None):
        power = _POWERS.get(_word(words, part.end), 1)
        if power >= smallest:
            break
        before = number.value if number else Decimal(0)
        number, smallest = SpelledNumber(before + part.value * power, part.end + (power > 1)), power
        at = number.end + (power > 1 and _word(words, number.end) == "and")
    return number


def _hundreds_at(words: Sequence[str], at: int, first: bool) -> SpelledNumber | None:
    """`three hundred and five`, `seventy two`, `a hundred`; digits only where a number begins with them: `5 million`."""
    digits = plain_number(_word(words, at)) if first else None
    if digits is not None:
        part: SpelledNumber | None = SpelledNumber(Decimal(digits), at + 1)
    else:
        part = SpelledNumber(Decimal(1), at + 1) if _is_one(words, at) else _below_hundred(words, at)
    if part is None or _word(words, part.end) != "hundred":
        return part
    hundreds = SpelledNumber(part.value * 100, part.end + 1)
    rest = _below_hundred(words, hundreds.end + (_word(words, hundreds.end) == "and"))
    if rest is None or _word(words, rest.end) == "hundred":
        return hundreds
    return SpelledNumber(hundreds.value + rest.value, rest.end)


def _below_hundred(words: Sequence[str], at: int) -> SpelledNumber | None:
    word = _word(words, at)
    if word in _UNITS:
        return SpelledNumber(Decimal(_UNITS[word]), at + 1)
    if word not in _TENS_WORDS:
        return None
    unit = _UNITS.get(_word(words, at + 1), 0)
    is_joined = 0 < unit < 10
    return SpelledNumber(Decimal(_TENS_WORDS[word] + unit * is_joined), at + 1 + is_joined)
