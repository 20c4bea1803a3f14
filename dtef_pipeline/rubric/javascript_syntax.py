"""The parts of a JavaScript pattern, as it is read (javascript_reader.py) and written again for Python (javascript_writer.py)."""

from __future__ import annotations

from dataclasses import dataclass

CodeRanges = tuple[tuple[int, int], ...]
"""Pairs of UTF-16 code units, both ends belong to the set; sorted, and apart from each other."""
FIRST_EDGE, LAST_EDGE, WORD_EDGE, NO_WORD_EDGE = "start", "end", "word", "no word"


class BadPattern(ValueError):
    """The text is no pattern of JavaScript's; the message says why."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """One code unit of a set."""

    ranges: CodeRanges
    negated: bool = False
    """Whether it is one that the set does not have."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A place: `^`, `$`, `\\b` or `\\B`."""

    kind: str


@dataclass(frozen=True, slots=True)
class Bracketed:
    """A part in round brackets."""

    body: Part
    number: int | None
    """Counted from 1 by opening brackets; None: what it matches is not kept."""


@dataclass(frozen=True, slots=True)
class Looked:
    """A look ahead or behind, which consumes nothing."""

    body: Part
    ahead: bool
    negated: bool


@dataclass(frozen=True, slots=True)
class Repeated:
    """A part that occurs several times."""

    body: Part
    least: int
    most: int | None
    """None: without limit."""
    lazy: bool


@dataclass(frozen=True, slots=True)
class Again:
    """What a group has matched, once more; of several names or numbers JavaScript allows one."""

    number: int


@dataclass(frozen=True, slots=True)
class InOrder:
    """Parts that follow each other."""

    items: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class EitherOf:
    """Alternatives, of which the first that leads to a match counts."""

    items: tuple[Part, ...]


Part = OneOf | Edge | Bracketed | Looked | Repeated | Again | InOrder | EitherOf


@dataclass(frozen=True, slots=True)
class ReadPattern:
    """A whole pattern."""

    body: Part
    referred: frozenset[int]
    """The groups that some part refers to."""
