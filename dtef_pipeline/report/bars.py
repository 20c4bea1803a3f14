"""Bars of values from 0 to 1, one beneath the other, with the number that each rests on under it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dtef_pipeline.report.markup import shortened
from dtef_pipeline.report.stored_rows import decimals, written
from dtef_pipeline.report.svg import LEFT, RIGHT, across, axis, drawing, group, label, line
from dtef_pipeline.text.counted import counted
from dtef_pipeline.text.printable import printable

BAR_ROW, MOST_OF_A_NAME = 54, 42
"""Pixels that a bar takes with its name and its number, and the characters of a name that find room beside the value on a phone."""
_BAR_TOP, _BAR_HEIGHT = 20, 10
"""Of a bar in its row, in pixels."""
_NO_CHARACTERS = {0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD}
_TITLE_HEIGHT, _LINE_HEIGHT = 26, 18


class Bar(NamedTuple):
    """A value from 0 to 1 with its name; None: there is none. `n` is what it rests on, `low` and `high` are the ends of its interval."""

    name: str
    value: float | None
    n: int
    low: float | None = None
    high: float | None = None


def bars(rows: Sequence[Bar], title: str, *, standalone: bool) -> str:
    """An SVG with a bar for each row, in their order, and `n` under each; rows without a value are listed beneath as having no score.

    Where no row has a value, the figure says that there is no data. `standalone`: a file of its own (its title in sight, light colours);
    else a part of a page, which gives the colours and says in words what it shows.
    """
    known = [row for row in rows if _is_known(row.value)]
    unknown = [row for row in rows if not _is_known(row.value)]
    top = _TITLE_HEIGHT if standalone else 4
    heading = [label(LEFT, 16, _plain(title), anchor="start", kind="title")] if standalone else []
    drawn, bottom = _drawn(known, top) if known else ([label(50, top + 28, "no data", anchor="middle", kind="soft")], top + 44)
    listed = [
        label(LEFT, bottom + _LINE_HEIGHT * at, words, anchor="start", kind="soft")
        for at, words in enumerate(_listed(unknown), 1)
    ]
    height = bottom + (_LINE_HEIGHT * len(listed) + 8 if listed else 4)
    return drawing([*heading, *drawn, *listed], height, _in_words(_plain(title), known, unknown), standalone=standalone)


def _drawn(rows: Sequence[Bar], top: float) -> tuple[list[str], float]:
    """The bars with their axis, and how far down they reach."""
    place = across(0.0, 1.0)
    tops = [top + BAR_ROW * at for at in range(len(rows))]
    bands = [(y + _BAR_TOP - 3, y + _BAR_TOP + _BAR_HEIGHT + 3) for y in tops]
    bottom = top + BAR_ROW * len(rows)
    return [axis(place, 0.0, 1.0, bands, bottom), *(_bar(row, y) for row, y in zip(rows, tops, strict=True))], bottom + 22


def _bar(row: Bar, y: float) -> str:
    place = across(0.0, 1.0)
    name, value = _plain(row.name), _shown(row)
    width = place(float(row.value or 0.0)) - LEFT
    parts = [
        label(LEFT, y + 14, shortened(name, MOST_OF_A_NAME), anchor="start"),
        label(RIGHT, y + 14, value, anchor="end"),
        f'<rect x="{LEFT:.2f}%" y="{y + _BAR_TOP:.1f}" width="{width:.2f}%" height="{_BAR_HEIGHT}" class="bar"/>',
        label(LEFT, y + _BAR_TOP + _BAR_HEIGHT + 13, f"n = {row.n:,}", anchor="start", kind="soft"),
    ]
    told = f"{name}: {value}, n = {row.n:,}"
    if _is_known(row.low) and _is_known(row.high):
        parts += _whisker(place(float(row.low)), place(float(row.high)), y + _BAR_TOP + _BAR_HEIGHT / 2)  # type: ignore[arg-type]
        told += f", 95 % interval {row.low:.4f} to {row.high:.4f}"
    return group(parts, told)


def _whisker(low: float, high: float, y: float) -> list[str]:
    """The interval over the end of the bar: a line with two ends, in the colour of the text, so that it is seen on the bar and beside it."""
    return [line(low, y, high, y, "middle"), *(line(x, y - 4, x, y + 4, "middle") for x in (low, high))]


def _shown(row: Bar) -> str:
    """The value with the digits that its interval supports."""
    known = [math.nan if end is None else float(end) for end in (row.value, row.low, row.high)]
    return written(known[0], decimals(*known))


def _listed(unknown: Sequence[Bar]) -> list[str]:
    names = [f"{shortened(_plain(row.name), MOST_OF_A_NAME)} (n = {row.n:,})" for row in unknown]
    return [] if not names else ["No score:", *names]


def _in_words(title: str, known: Sequence[Bar], unknown: Sequence[Bar]) -> str:
    """What the drawing is called for those who cannot see it."""
    if not known:
        return f"{title}: no data"
    ends = (f"{best.name} {_shown(best)}" for best in _extremes(known))
    told = f"{title}: {counted(len(known), 'bar')}, from {' to '.join(_plain(end) for end in ends)}"
    return told + (f"; {len(unknown):,} without a score" if unknown else "")


def _extremes(rows: Iterable[Bar]) -> tuple[Bar, Bar]:
    ordered = sorted(rows, key=lambda row: float(row.value or 0.0))
    return ordered[0], ordered[-1]


def _plain(text: str) -> str:
    """The text without what a drawing in a file must not hold: control characters as their numbers, and U+FFFD for what is no character."""
    return printable(text).translate(_NO_CHARACTERS)


def _is_known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
