"""The columns of a table that fit the terminal, and their widths. Every column is shown with whole words, or is left out and named.

Where even the columns that are never left out have no room, names go over several lines, broken after a colon, slash or hyphen.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

GAP = 2
"""Blanks between two columns."""
WIDE = 240
"""Width of a table that is not drawn for a terminal: for pipes and files."""
HOW = "--wide shows them, --format csv has every column"
_BETWEEN_PARTS = re.compile(r"(?<=\w[:/-])(?=\w)")
_PROSE = 24
"""Letters from which a text of several words is prose: it may go over several lines, and has room for as many letters at least."""
_LONG_NAME = 36
"""Letters from which a name may go over several lines before columns are left out for it."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What a table has to fit into."""

    width: int | None = None
    """Of the terminal; None: there is none, so nothing is left out."""
    kept: Sequence[str] = ()
    """Columns that are never left out, because the table is about them. Without any, the first one."""
    first_out: Sequence[str] = ()
    """Columns that are left out before all others, in this order; the others follow from the last one on."""
    how: str = HOW
    """How to see what is left out."""


class TextColumn(NamedTuple):
    """A column as it is shown."""

    name: str
    heading: str
    cells: Sequence[str]
    is_number: bool

    @property
    def is_prose(self) -> bool:
        return not self.is_number and self.most > _PROSE and any(" " in cell for cell in self.cells)

    @property
    def most(self) -> int:
        """The width in which every cell stands in one line."""
        return max((len(line) for cell in (self.heading, *self.cells) for line in cell.splitlines()), default=0)

    @property
    def least(self) -> int:
        """The smallest width in which no word is cut."""
        if not self.is_prose:
            return self.most
        return max(_PROSE, *(len(word) for cell in (self.heading, *self.cells) for word in cell.split()))

    @property
    def short(self) -> int:
        """The same where long names go over several lines."""
        return self.least if self.is_prose else min(self.least, max(_LONG_NAME, self.narrowest))

    @property
    def shorter(self) -> int:
        """The same where all names do, and texts of several words stay in one line."""
        return self.least if any(" " in cell for cell in self.cells) else self.narrowest

    @property
    def narrowest(self) -> int:
        """The smallest width in which no part of a name is cut."""
        parts = [part for cell in (self.heading, *self.cells) for word in cell.split() for part in _BETWEEN_PARTS.split(word)]
        return self.least if self.is_number else max(map(len, parts), default=0)

    @property
    def briefly(self) -> str:
        """The heading; with the value where all rows have the same."""
        values = set(self.cells)
        return f"{self.heading} (always {self.cells[0]})" if len(values) == 1 and not self.is_prose else self.heading


class Fitted(NamedTuple):
    """The columns that are shown, the width of each, and in words those that are not."""

    columns: list[TextColumn]
    widths: list[int]
    left_out: list[str]


def fitted(columns: Sequence[TextColumn], fit: Fit) -> Fitted:
    """The columns that fit, as whole as there is room.

    Where room is scarce, first headings go over several lines, then prose does, then columns are left out, then names go over several lines.
    Columns that are never left out may together be wider than the terminal only where the parts of their names are.
    """
    width = fit.width or WIDE
    if _total([column.most for column in columns]) <= width:
        return Fitted(list(columns), [column.most for column in columns], [])
    if not fit.width:
        return Fitted(list(columns), _shared_out(columns, [column.least for column in columns], width), [])
    low = [column._replace(heading="\n".join(column.heading.split())) for column in columns]
    there = _that_fit({column.name: column.short for column in low}, fit, width)
    shown = [column for column in low if column.name in there]
    for least in (
        [column.short for column in shown],
        [column.shorter for column in shown],
        [column.narrowest for column in shown],
    ):
        if _total(least) <= width:
            break
    return Fitted(shown, _shared_out(shown, least, width), [column.briefly for column in columns if column.name not in there])


def _that_fit(least: Mapping[str, int], fit: Fit, width: int) -> set[str]:
    """Names of the columns that are shown, of all with the least width of each."""
    shown, out = dict(least), []
    for name in _in_turn(list(least), fit):
        if _total(shown.values()) <= width:
            break
        out.append(name)
        del shown[name]
    for name in reversed(out):  # a narrow one may still fit where a wide one had to go
        if _total([*shown.values(), least[name]]) <= width:
            shown[name] = least[name]
    return set(shown)


def _in_turn(names: Sequence[str], fit: Fit) -> Iterator[str]:
    """The columns that may be left out, the least important first."""
    kept = fit.kept or names[:1]
    yield from (name for name in fit.first_out if name in names and name not in kept)
    yield from (name for name in reversed(names) if name not in kept and name not in fit.first_out)


def _shared_out(columns: Sequence[TextColumn], least: Sequence[int], width: int) -> list[int]:
    """The width of each column: the widest give way, down to the least that they can have."""
    widths = [column.most for column in columns]
    while _total(widths) > width and (wider := [at for at in range(len(widths)) if widths[at] > least[at]]):
        widths[max(wider, key=lambda at: widths[at])] -= 1
    return widths


def broken(text: str, width: int) -> str:
    """The text in lines of that width: broken between words, and between the parts of a word that is longer."""
    lines: list[str] = []
    for line in text.splitlines():
        filled = ""
        for word in line.split(" "):
            parts = [word] if len(word) <= width else _BETWEEN_PARTS.split(word)
            for at, part in enumerate(parts):
                between = " " if filled and not at else ""
                if filled and len(filled) + len(between) + len(part) > width:
                    lines.append(filled)
                    filled, between = "", ""
                filled += between + part
        lines.append(filled)
    return "\n".join(lines)


def _total(widths: Collection[int]) -> int:
    return 1 + sum(widths) + GAP * (len(widths) - 1)
