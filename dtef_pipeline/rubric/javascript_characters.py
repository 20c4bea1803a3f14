"""Characters as JavaScript has them: UTF-16 code units, white space, sets of them, and when two are one in another case.

Source: ECMA-262, sections 22.2.2 (CharacterSets, Canonicalize without the flag `u`) and 12.2 (WhiteSpace).
"""

from __future__ import annotations

import functools
import re
from array import array
from collections.abc import Iterable

from dtef_pipeline.rubric.javascript_syntax import CodeRanges

LAST_UNIT = 0xFFFF
DIGIT_UNITS: CodeRanges = ((0x30, 0x39),)
WORD_UNITS: CodeRanges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
LINE_END_UNITS: CodeRanges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
BLANK_UNITS: CodeRanges = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
_AS_PYTHON_SPLITS = {0x1C: "x", 0x1D: "x", 0x1E: "x", 0x1F: "x", 0x85: "x", 0xFEFF: " "}
"""Where Python and JavaScript do not agree on what white space is."""
_SPLIT_OTHERWISE = re.compile("[\x1c-\x1f\x85\ufeff]")


def merged(ranges: Iterable[tuple[int, int]]) -> CodeRanges:
    """The same set, sorted, without overlaps."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found)


def all_others(ranges: CodeRanges) -> CodeRanges:
    """The code units that a set does not have."""
    found, start = [], 0
    for first, last in merged(ranges):
        if first > start:
            found.append((start, first - 1))
        start = last + 1
    return (*found, (start, LAST_UNIT)) if start <= LAST_UNIT else tuple(found)


def code_units(text: str) -> str:
    """The text with one character per UTF-16 code unit: those beyond U+FFFF become two surrogates."""
    if text.isascii() or max(text, default="") <= "\uffff":
        return text
    return "".join(map(chr, array("H", text.encode("utf-16-le", "surrogatepass"))))


def _capital(unit: int) -> str:
    """A code unit as it is compared where case does not matter."""
    capital = chr(unit).upper()
    if len(capital) != 1 or ord(capital) > LAST_UNIT or (unit >= 0x80 > ord(capital)):
        return chr(unit)
    return capital


@functools.cache
def _capitals() -> str:
    """Of every code unit, the one that stands for it where case does not matter."""
    return "".join(map(_capital, range(LAST_UNIT + 1)))


@functools.cache
def _changed() -> tuple[tuple[int, int], ...]:
    """Code units that another stands for, with that other."""
    return tuple((unit, ord(capital)) for unit, capital in enumerate(_capitals()) if ord(capital) != unit)


def capitals(text: str) -> str:
    """The text with every code unit replaced by the one that stands for it where case does not matter; as long as before."""
    return text.upper() if text.isascii() else text.translate(_capitals())


def of_capitals(ranges: CodeRanges) -> CodeRanges:
    """A set that has a code unit of `capitals` exactly if the given set has it, or one that it stands for."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return ((ord(_capitals()[ranges[0][0]]),) * 2,)
    added = [(to, to) for unit, to in _changed() if any(first <= unit <= last for first, last in ranges)]
    return merged((*ranges, *added))


def word_count(text: str) -> int:
    """How many runs of characters are not white space, as JavaScript sees white space (`\\S+`)."""
    return len((text.translate(_AS_PYTHON_SPLITS) if _SPLIT_OTHERWISE.search(text) else text).split())
