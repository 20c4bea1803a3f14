"""The number that a sentence gives, if it gives one: `3 or 5`, `10 - 15` and `between 3 and 5` give two in place of one.

Two numbers replace one only if `to`, `or`, `-`, `through` or a blank joins them directly, or `between` or `from` opens a range. `3, or 5
with the red ones` and `10 through 3 steps` give one number and an aside. A precision is not a second number: `3.33 to 2 decimal places`,
`130 to the nearest 10`. A number that follows an unclear one replaces it: `two dozen (24)`, `between 5 and 10: 7`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from dtef_pipeline.text.alignment import align_lower
from dtef_pipeline.text.numbers import FoundNumber, find_numbers, is_same_number

_SIDE_BY_SIDE = re.compile(r"[*_]{0,3}[ \t]+[*_]{0,3}")
_IN_A_WORD = re.compile(r"-[a-z]")
_BY_MEANS_OF = re.compile(r"[ %*_]*\bthrough[ *_]*")
_JOINS_TWO = re.compile(r"%?[*_]{0,3}[ \t]*(?:-|\u2014|\b(?:to|or|through)\b)[ \t]*[*_]{0,3}")
_JOINS_EQUALS = re.compile(r"%?[*_]{0,3}[ \t]+and[ \t]+[*_]{0,3}")
_JOINS_ENDS = re.compile(r"[ %*_]*(?:[a-z]{1,15}[ *_]+)?(?:and|to)[ *_]+")
_OPENS_RANGE = re.compile(r"\b(?:between|from)[ *_]*\Z")
_LONGEST_JOINT = 30
_SAYS_HOW_EXACT = re.compile(
    r"[ %*_,(]{1,5}(?P<words>(?:[a-z]{1,15}[ ,(*_]{1,3}){0,3})to[ ](?:the[ ])?(?P<nearest>nearest[ $]{1,2})?"
)
_PLACES_BEHIND = re.compile(
    r"(?:[ ]\([^()\n]{1,10}\))?[ -](?:(?P<certain>decimals?|significant|sig|d\.?p|s\.?f)|digits?|figures?|places?)\b"
)
_NAMES_IT = re.compile(r"(?:[ ][a-z]{1,15}){0,3}[ *_]{0,4}(?::|,?[ ]namely[,:]?)[ *_$(]{0,5}")


def read_sentence_number(sentence: str) -> FoundNumber | None:
    """Read the number after the last `=`, else the first one; `one` only if there is no other. One of two numbers is not clear."""
    lower = align_lower(sentence)
    numbers = list(find_numbers(lower))
    behind = sentence.rfind("=") + 1
    after = [number for number in numbers if number.start >= behind]
    candidates = [*(after if behind else ()), *numbers]
    stated_number = next((value for value in candidates if not is_the_word_one(sentence, value)), next(iter(candidates), None))
    if stated_number is None:
        return None
    result = compare_with_neighbours(lower, numbers, stated_number, is_stated=True)
    named = None if result.is_clear else _read_number_behind(lower, numbers[numbers.index(stated_number) :])
    return compare_with_neighbours(lower, numbers, named, is_stated=True) if named else result


def compare_with_neighbours(
    lower: str, numbers: Sequence[FoundNumber], stated_number: FoundNumber, *, is_stated: bool
) -> FoundNumber:
    """Return the number; it is not clear if another number is joined to it, before or after. `is_stated`: `and` joins numbers too, asides
    do not."""
    place = numbers.index(stated_number)
    for pair in pairwise(numbers[max(0, place - 1) : place + 2]):
        gap = (pair[0].end, pair[1].start)
        if is_stated and _is_aside(lower, *pair):
            continue
        if _is_pair(lower, *pair) or (
            is_stated and _JOINS_EQUALS.fullmatch(lower, *gap) and not _is_same_in_other_spelling(lower, *pair)
        ):
            return stated_number._replace(is_clear=False)
    return stated_number


def is_the_word_one(text: str, number: FoundNumber) -> bool:
    """Return whether the number is `one`, which is often a pronoun."""
    return number.in_words and number.value == 1 and number.end - number.start == len("one")


def is_stating_precision(lower: str, first: FoundNumber, second: FoundNumber) -> bool:
    """Return whether the second number is the precision of the first: `3.33 to 2 decimal places`, `130, rounded to the nearest 10`."""
    joint = _SAYS_HOW_EXACT.fullmatch(lower, first.end, second.start)
    if joint is None or joint["nearest"]:
        return joint is not None
    places = _PLACES_BEHIND.match(lower, second.end)
    if places is None or places["certain"]:
        return places is not None
    return not joint["words"] and (first.value.denominator > 1 or second.value < first.value)


def _read_number_behind(lower: str, numbers: Sequence[FoundNumber]) -> FoundNumber | None:
    """Read the value that explains the first number, which is not clear: `two dozen, or 24`, `between 5 and 10: 7`; None: there is none."""
    first, *tail = numbers
    if first.in_words and not first.is_clear:
        return next((number for number in tail if number.is_clear and is_same_number(number.value, first.value)), None)
    if len(tail) > 1 and _NAMES_IT.fullmatch(lower, tail[0].end, tail[1].start):
        return tail[1]
    return None


def _is_same_in_other_spelling(lower: str, first: FoundNumber, second: FoundNumber) -> bool:
    """Return whether two numbers are equal in two spellings: `1/2 or 50%`."""
    values = [number.value / 100 if lower[number.end : number.end + 1] == "%" else number.value for number in (first, second)]
    return is_same_number(first.value, second.value) or is_same_number(*values)


def _is_pair(lower: str, first: FoundNumber, second: FoundNumber) -> bool:
    """Whether two numbers are given in place of one: `3 to 5`, `10 - 15`, `3 or 5`, `between 3 km and 5 km`, `five six`."""
    gap = (first.end, second.start)
    if gap[1] - gap[0] > _LONGEST_JOINT or _is_same_in_other_spelling(lower, first, second):
        return False
    if _SIDE_BY_SIDE.fullmatch(lower, *gap):
        return first.in_words == second.in_words and (lower[second.start].isalnum() or lower[second.start] == "-")
    if _OPENS_RANGE.search(lower, max(0, first.start - 12), first.start):
        return _JOINS_ENDS.fullmatch(lower, *gap) is not None
    return _JOINS_TWO.fullmatch(lower, *gap) is not None and not is_stating_precision(lower, first, second)


def _is_aside(lower: str, first: FoundNumber, second: FoundNumber) -> bool:
    """Return whether the second number only describes the first: `10 5-dollar bills`, `10 through 3 steps` (a range ascends)."""
    if _IN_A_WORD.match(lower, second.end):
        return True
    return second.value < first.value and _BY_MEANS_OF.fullmatch(lower, first.end, second.start) is not None
