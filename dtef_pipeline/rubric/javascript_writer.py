"""Writes a pattern of JavaScript's for the package `regex`, so that both find it in the same texts.

The two differ in what a group holds. In JavaScript every turn of a repetition forgets the groups inside, a group that took no part
matches nothing when it is referred to, and a turn that consumed nothing does not count. So a group that is referred to is emptied
at the start of the pattern and of each such turn, by an empty group of the same name.
"""

from __future__ import annotations

from dtef_pipeline.rubric.javascript_characters import LAST_UNIT, all_others, of_capitals
from dtef_pipeline.rubric.javascript_syntax import (
    FIRST_EDGE,
    LAST_EDGE,
    NO_WORD_EDGE,
    WORD_EDGE,
    Again,
    BadPattern,
    Bracketed,
    CodeRanges,
    Edge,
    EitherOf,
    InOrder,
    Looked,
    OneOf,
    Part,
    ReadPattern,
    Repeated,
)

LARGEST_PATTERN = 100_000
_EDGES_WRITTEN = {FIRST_EDGE: r"\A", LAST_EDGE: r"\Z", WORD_EDGE: r"\b", NO_WORD_EDGE: r"\B"}
_LOOK_OPENS = {(True, False): "(?=", (True, True): "(?!", (False, False): "(?<=", (False, True): "(?<!"}


def written_for_python(pattern: ReadPattern, ignore_case: bool) -> str:
    """The pattern for `regex` with its flag ASCII; where case is ignored, for texts in `capitals`.

    BadPattern if it is larger than `LARGEST_PATTERN`.
    """
    if size_of(pattern.body) > LARGEST_PATTERN:
        raise BadPattern(f"its parts have to occur more than {LARGEST_PATTERN:,} times")
    writer = _Writer(pattern.referred, ignore_case)
    return writer.emptied(pattern.referred) + writer.part(pattern.body, backwards=False)


def _unit(unit: int) -> str:
    character = chr(unit)
    if character.isascii() and character.isalnum():
        return character
    return f"\\x{unit:02x}" if unit < 0x100 else f"\\u{unit:04x}"


def _set(ranges: CodeRanges, negated: bool) -> str:
    if negated and len(ranges) != 1:
        ranges, negated = all_others(ranges), False
    if not ranges:
        return "(?!)"
    if ranges == ((0, LAST_UNIT),):
        return "(?!)" if negated else r"[\x00-\U0010ffff]"
    if not negated and len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _unit(ranges[0][0])
    members = "".join(_unit(first) if first == last else f"{_unit(first)}-{_unit(last)}" for first, last in ranges)
    return f"[{'^' if negated else ''}{members}]"


def groups_of(part: Part) -> frozenset[int]:
    """The numbers of the groups within a part."""
    match part:
        case Bracketed(body, number):
            return groups_of(body) | ({number} if number else frozenset())
        case Looked() | Repeated():
            return groups_of(part.body)
        case InOrder(items) | EitherOf(items):
            return frozenset().union(*map(groups_of, items))
        case _:
            return frozenset()


def may_be_empty(part: Part) -> bool:
    """Whether a part can match without consuming anything."""
    match part:
        case Bracketed(body, _):
            return may_be_empty(body)
        case Repeated(body, least, _, _):
            return least == 0 or may_be_empty(body)
        case InOrder(items):
            return all(map(may_be_empty, items))
        case EitherOf(items):
            return any(map(may_be_empty, items))
        case OneOf():
            return False
        case _:
            return True


def size_of(part: Part) -> int:
    """How many parts there are once each is written as often as it has to occur; `regex` needs memory in proportion."""
    match part:
        case Repeated(body, least, _, _):
            return max(1, least) * size_of(body)
        case Bracketed() | Looked():
            return 1 + size_of(part.body)
        case InOrder(items) | EitherOf(items):
            return 1 + sum(map(size_of, items))
        case _:
            return 1


class _Writer:
    """Writes the parts of one pattern; `backwards`: the part stands in a look behind, where matching runs from right to left."""

    def __init__(self, referred: frozenset[int], ignore_case: bool) -> None:
        self.referred, self.ignore_case, self.marks = referred, ignore_case, 0

    def emptied(self, groups: frozenset[int]) -> str:
        return "".join(f"(?P<g{number}>)" for number in sorted(groups))

    def part(self, part: Part, *, backwards: bool) -> str:
        match part:
            case OneOf(ranges, negated):
                return _set(of_capitals(ranges) if self.ignore_case else ranges, negated)
            case Edge(kind):
                return _EDGES_WRITTEN[kind]
            case Bracketed(body, number):
                opens = f"(?P<g{number}>" if number in self.referred else "(?:"
                return f"{opens}{self.part(body, backwards=backwards)})"
            case Looked(body, ahead, negated):
                return f"{_LOOK_OPENS[ahead, negated]}{self.part(body, backwards=not ahead)})"
            case Repeated():
                return self._repeated(part, backwards)
            case Again(number):
                return f"(?P=g{number})"
            case InOrder(items):
                return "".join(self.part(item, backwards=backwards) for item in items)
            case EitherOf(items):
                return f"(?:{'|'.join(self.part(item, backwards=backwards) for item in items)})"

    def _repeated(self, part: Repeated, backwards: bool) -> str:
        if isinstance(part.body, Looked):
            return self.part(part.body, backwards=backwards) if part.least else ""
        groups = groups_of(part.body) & self.referred
        body = self.part(part.body, backwards=backwards)
        if not groups:
            return f"(?:{body}){_times(part.least, part.most, part.lazy)}"
        empties = self.emptied(groups)
        turn = body + empties if backwards else empties + body
        if part.least == part.most or not may_be_empty(part.body):
            return f"(?:{turn}){_times(part.least, part.most, part.lazy)}"
        required = f"(?:{turn}){_times(part.least, part.least, False)}" if part.least else ""
        further = _times(0, None if part.most is None else part.most - part.least, part.lazy)
        checked = f"(?:{self._consuming(turn, backwards)}){further}"
        return checked + required if backwards else required + checked

    def _consuming(self, turn: str, backwards: bool) -> str:
        """The turn of a repetition, refused where it consumes nothing: what lies beyond must have become shorter."""
        self.marks += 1
        name = f"m{self.marks}"
        if backwards:
            return rf"(?<!\A(?P={name})){turn}(?<=\A(?P<{name}>(?s:.*)))"
        return rf"(?=(?P<{name}>(?s:.*))){turn}(?!(?P={name})\Z)"


def _times(least: int, most: int | None, lazy: bool) -> str:
    counts = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    if counts is None:
        counts = f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
    return counts + ("?" if lazy else "")
