"""Numbers among the words of a text, however they are written: `five`, `5.0` and `05` are `5`, `seventy two` is `72`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from dtef_pipeline.text.numbers import in_figures
from dtef_pipeline.text.spoken_numbers import BELOW_TWENTY, SCALES_OF_WORDS, TENS_OF_WORDS, number_at

_LARGE = {"hundred": 100, **SCALES_OF_WORDS}
_MAY_BEGIN_NUMBER = frozenset((*BELOW_TWENTY, *TENS_OF_WORDS, *_LARGE, "minus", "negative", "a", "an"))
_DIGITS_ONLY = re.compile(r"(-?)0*([0-9]+)(?:\.([0-9]*?)0*)?")
_LONGEST_MULTIPLIED = 15
"""Digits of the longest number that a word such as `million` multiplies."""


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

    A number that is written in several words becomes one, also after `minus`. Numbers side by side stay apart: `twenty twenty four` is 20
    and 24. `5th`, `twenty first` and `v` are no numbers.
    """
    at = 0
    while at < len(words):
        word = words[at]
        number, end = None, at + 1
        if word[0] in "0123456789-":
            number, end = _in_digits(words, at)
        elif word in _MAY_BEGIN_NUMBER:
            number, end = _in_words(words, at)
        yield (word, False) if number is None else (number, True)
        at = end


def _in_digits(words: Sequence[str], at: int) -> tuple[str | None, int]:
    """`5`, `1.5 million`, `3 hundred thousand`."""
    number, end = plain_number(words[at]), at + 1
    if number is None or len(number) > _LONGEST_MULTIPLIED:
        return number, end
    factor = 1
    while end < len(words) and factor < 10**6 and words[end] in _LARGE:
        factor *= _LARGE[words[end]]
        end += 1
    return (number, end) if factor == 1 else (in_figures(Fraction(number) * factor), end)


def _in_words(words: Sequence[str], at: int) -> tuple[str | None, int]:
    """`five`, `a hundred and five`, `minus five`, `minus 5`. Of the words of an ordinal none is a number."""
    run = number_at(words, at)
    if run is not None:
        return in_figures(run.value), run.end
    if words[at] in ("minus", "negative") and at + 1 < len(words) and words[at + 1][0] in "0123456789":
        number, end = _in_digits(words, at + 1)
        return (None, at + 1) if number is None else (plain_number(f"-{number}"), end)
    return None, at + 1
