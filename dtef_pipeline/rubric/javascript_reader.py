"""Reads a pattern as JavaScript does without the flags `u` and `v`, with what old scripts rely on (ECMA-262, section B.1.2).

Patterns are read as UTF-16 code units. ECMAScript 2024 is meant: flags within a pattern (`(?i:`) and one name for two groups are faults.
"""

from __future__ import annotations

import re

from dtef_pipeline.rubric.javascript_characters import LINE_END_UNITS, code_units
from dtef_pipeline.rubric.javascript_escapes import NAMED_SETS, escaped_unit, set_in_brackets
from dtef_pipeline.rubric.javascript_syntax import (
    FIRST_EDGE,
    LAST_EDGE,
    NO_WORD_EDGE,
    WORD_EDGE,
    Again,
    BadPattern,
    Bracketed,
    Edge,
    EitherOf,
    InOrder,
    Looked,
    OneOf,
    Part,
    ReadPattern,
    Repeated,
)

DEEPEST = 60
"""Groups within groups; beyond it a pattern is refused, since Python's own reader would not get through."""
_MOST_COUNTED = 2**31 - 1
"""A count as large as this one means: without limit."""
_TOKEN = re.compile(r"\\[\s\S]?|\[(?:\\[\s\S]|[^\]\\])*\]?|\((?:\?(?:<(?![=!])(?P<name>[^>]*)(?P<closed>>?))?)?|[^\\\[(]+")
_REPEAT_COUNTS = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_LOOKS = {"(?=": (True, False), "(?!": (True, True), "(?<=": (False, False), "(?<!": (False, True)}
_ESCAPED_IN_NAME = re.compile(r"\\u(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{4}))")
_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_EDGES = {"^": FIRST_EDGE, "$": LAST_EDGE}
_WORD_EDGES = {"b": WORD_EDGE, "B": NO_WORD_EDGE}
_ANY = OneOf(LINE_END_UNITS, negated=True)


def read_pattern(pattern: str) -> ReadPattern:
    """The parts of a pattern; BadPattern if JavaScript would not take it, or if it is nested deeper than `DEEPEST`."""
    return _Reader(code_units(pattern)).whole()


def _name(written: str) -> str:
    """The name of a group, of which JavaScript allows those that a variable could have."""
    name = _ESCAPED_IN_NAME.sub(lambda found: chr(min(int(found[1] or found[2], 16), 0x10FFFF)), written)
    name = _HALVES.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), name)
    if not re.sub("[$\u200c\u200d]", "_", name.replace("$", "_", 1)).isidentifier() or name[0] in "\u200c\u200d":
        raise BadPattern(f"{written!r} is no name of a group")
    return name


class _Reader:
    """Reads one pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at, self.depth = pattern, 0, 0
        self.names: dict[str, int] = {}
        self.groups = self.opened = 0
        self.named = False
        self.referred: set[int] = set()
        self.open: list[int] = []
        self._count_groups()

    def _count_groups(self) -> None:
        """How many groups there will be, and their names, which parts may refer to before they come."""
        for token in _TOKEN.finditer(self.pattern):
            if token["name"] is not None:
                self.named = True
            if token[0] == "(" or token["name"] is not None:
                self.groups += 1
            if token["name"] is not None and token["closed"]:
                name = _name(token["name"])
                if name in self.names:
                    raise BadPattern(f"two groups have the name {name!r}")
                self.names[name] = self.groups

    def whole(self) -> ReadPattern:
        body = self._alternatives()
        if self.at < len(self.pattern):
            raise BadPattern("a round bracket is closed that was not opened")
        return ReadPattern(body, frozenset(self.referred))

    def _alternatives(self) -> Part:
        """Everything up to the bracket that closes it, or to the end."""
        found = [self._sequence()]
        while self._takes("|"):
            found.append(self._sequence())
        return found[0] if len(found) == 1 else EitherOf(tuple(found))

    def _takes(self, text: str) -> bool:
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def _sequence(self) -> Part:
        found: list[Part] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            part = self._part()
            repeatable = not isinstance(part, Edge) and not (isinstance(part, Looked) and not part.ahead)
            found.append(self._repeated(part) if repeatable else part)
        return found[0] if len(found) == 1 else InOrder(tuple(found))

    def _part(self) -> Part:
        """One part, without how often it occurs."""
        character = self.pattern[self.at]
        if character in "*+?" or (character == "{" and _REPEAT_COUNTS.match(self.pattern, self.at)):
            raise BadPattern(f"nothing stands before {character!r} that could occur several times")
        if character == "(":
            return self._bracketed()
        self.at += 1
        if character in _EDGES:
            return Edge(_EDGES[character])
        if character == ".":
            return _ANY
        if character == "[":
            found, self.at = set_in_brackets(self.pattern, self.at, named_groups=self.named)
            return found
        return self._escaped() if character == "\\" else OneOf(((ord(character),) * 2,))

    def _repeated(self, part: Part) -> Part:
        """The part, with how often it occurs, if this is said."""
        if self._takes("*"):
            counts: tuple[int, int | None] = (0, None)
        elif self._takes("+"):
            counts = (1, None)
        elif self._takes("?"):
            counts = (0, 1)
        elif found := _REPEAT_COUNTS.match(self.pattern, self.at):
            self.at = found.end()
            counts = _counts(found)
        else:
            return part
        return Repeated(part, *counts, lazy=self._takes("?"))

    def _bracketed(self) -> Part:
        self.depth += 1
        if self.depth > DEEPEST:
            raise BadPattern(f"groups are nested deeper than {DEEPEST}")
        for opening, (ahead, negated) in _LOOKS.items():
            if self._takes(opening):
                return Looked(self._closed(), ahead, negated)
        if self._takes("(?:"):
            return Bracketed(self._closed(), None)
        if self._takes("(?<"):
            end = self.pattern.find(">", self.at)
            _name(self.pattern[self.at : end if end >= 0 else None] if end >= 0 else "")
            self.at = end + 1
        elif self.pattern.startswith("(?", self.at):
            raise BadPattern(f"{self.pattern[self.at : self.at + 3]!r} opens no kind of group")
        else:
            self.at += 1
        self.opened += 1
        number = self.opened
        self.open.append(number)
        body = self._closed()
        self.open.remove(number)
        return Bracketed(body, number)

    def _closed(self) -> Part:
        body = self._alternatives()
        if not self._takes(")"):
            raise BadPattern("a round bracket is not closed")
        self.depth -= 1
        return body

    def _escaped(self) -> Part:
        """What a backslash begins."""
        after = self.pattern[self.at : self.at + 1]
        if after in _WORD_EDGES:
            self.at += 1
            return Edge(_WORD_EDGES[after])
        if after in NAMED_SETS:
            self.at += 1
            return OneOf(NAMED_SETS[after])
        if after == "k" and self.named:
            return self._named_reference()
        found = re.compile("[1-9][0-9]*").match(self.pattern, self.at)
        if found and len(found[0]) < 9 and int(found[0]) <= self.groups:
            self.at = found.end()
            return self._reference(int(found[0]))
        unit, self.at = escaped_unit(self.pattern, self.at, in_set=False)
        return OneOf(((unit, unit),))

    def _named_reference(self) -> Part:
        found = re.compile("k<([^>]*)>").match(self.pattern, self.at)
        if not found:
            raise BadPattern("\\k names no group, though the pattern has named groups")
        if (name := _name(found[1])) not in self.names:
            raise BadPattern(f"\\k names {name!r}, and no group has this name")
        self.at = found.end()
        return self._reference(self.names[name])

    def _reference(self, number: int) -> Part:
        if number in self.open:
            return InOrder(())  # within the group itself nothing has been matched yet
        self.referred.add(number)
        return Again(number)


def _counts(found: re.Match[str]) -> tuple[int, int | None]:
    """How often a part occurs by `{least}`, `{least,}` or `{least,most}`."""
    least = _counted(found[1])
    most = least if not found[2] else _counted(found[3]) if found[3] else _MOST_COUNTED
    if most < least:
        raise BadPattern(f"the numbers of {found[0]} are in the wrong order")
    return least, None if most == _MOST_COUNTED and (found[2] or least == _MOST_COUNTED) else most


def _counted(digits: str) -> int:
    return _MOST_COUNTED if len(digits.lstrip("0")) > 10 else min(int(digits), _MOST_COUNTED)
