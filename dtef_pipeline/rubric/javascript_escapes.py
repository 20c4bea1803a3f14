"""What follows a backslash in a JavaScript pattern, and the sets in square brackets. Positions are those in the pattern's code units."""

from __future__ import annotations

import re

from dtef_pipeline.rubric.javascript_characters import BLANK_UNITS, DIGIT_UNITS, WORD_UNITS, all_others, merged
from dtef_pipeline.rubric.javascript_syntax import BadPattern, CodeRanges, OneOf

NAMED_SETS: dict[str, CodeRanges] = {
    "d": DIGIT_UNITS,
    "D": all_others(DIGIT_UNITS),
    "w": WORD_UNITS,
    "W": all_others(WORD_UNITS),
    "s": BLANK_UNITS,
    "S": all_others(BLANK_UNITS),
}
_CONTROLS = {"f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
_HEXADECIMAL = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})")
_OCTAL = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?")
_CONTROL_LETTER = re.compile("c([A-Za-z])")
_CONTROL_IN_SET = re.compile("c([A-Za-z0-9_])")


def escaped_unit(pattern: str, at: int, *, in_set: bool) -> tuple[int, int]:
    """The code unit that a backslash and what follows it, at `at`, stand for, and where the pattern goes on."""
    if at >= len(pattern):
        raise BadPattern("it ends with a backslash")
    character = pattern[at]
    if character in _CONTROLS:
        return _CONTROLS[character], at + 1
    if found := _HEXADECIMAL.match(pattern, at):
        return int(found[1] or found[2], 16), found.end()
    if found := _OCTAL.match(pattern, at):
        return int(found[0], 8), found.end()
    if character == "c":
        found = (_CONTROL_IN_SET if in_set else _CONTROL_LETTER).match(pattern, at)
        return (ord(found[1]) % 32, found.end()) if found else (ord("\\"), at)
    return ord(character), at + 1


def set_in_brackets(pattern: str, at: int, *, named_groups: bool) -> tuple[OneOf, int]:
    """The set whose opening bracket is before `at`, and where the pattern goes on. `named_groups`: whether the pattern has any."""
    negated = pattern.startswith("^", at)
    at += negated
    found: list[tuple[int, int]] = []
    while not pattern.startswith("]", at):
        first, at = _member(pattern, at, named_groups)
        if not pattern.startswith("-", at) or pattern.startswith("-]", at):
            found.extend(first)
            continue
        last, at = _member(pattern, at + 1, named_groups)
        found.extend(_span(first, last))
    return OneOf(merged(found), negated), at + 1


def _span(first: CodeRanges, last: CodeRanges) -> CodeRanges:
    """What `first-last` in a set means: a set such as \\d at either end makes the hyphen a hyphen."""
    if first in NAMED_SETS.values() or last in NAMED_SETS.values():
        return (*first, (0x2D, 0x2D), *last)
    if first[0][0] > last[0][0]:
        raise BadPattern(f"a range in square brackets runs backwards, from {chr(first[0][0])!r} to {chr(last[0][0])!r}")
    return ((first[0][0], last[0][0]),)


def _member(pattern: str, at: int, named_groups: bool) -> tuple[CodeRanges, int]:
    """One member of a set in brackets, a code unit or a set such as \\d, and where the pattern goes on."""
    if at >= len(pattern):
        raise BadPattern("a square bracket is not closed")
    if pattern[at] != "\\":
        return ((ord(pattern[at]),) * 2,), at + 1
    after = pattern[at + 1 : at + 2]
    if after in NAMED_SETS:
        return NAMED_SETS[after], at + 2
    if after == "b":
        return ((0x08, 0x08),), at + 2
    if after == "k" and named_groups:
        raise BadPattern("\\k stands in square brackets, of a pattern with named groups")
    unit, at = escaped_unit(pattern, at + 1, in_set=True)
    return ((unit, unit),), at
