"""Column descriptions split into the parts that readers look up."""

from __future__ import annotations

import re
from typing import NamedTuple

from dtef_pipeline.report.terminal import format_meaning, heading

_STATED_RANGE = re.compile(r", (-?[\d.]+(?:-| to )[\d.]+|[\d.]+ or more|from 1 \(best\))(?=[,;:) ]|\Z)")
_STATED_DIRECTION = re.compile(r"[:,] ((?:higher|lower) is [a-z ]+|(?:above|below) 0 is better)(?=[,;:.]|\Z)")
_STATED_UNIT = re.compile(r"US dollars|\bseconds\b|\btokens\b|\blogits\b|chips per hand|log10\b", re.IGNORECASE)


class ColumnMeaning(NamedTuple):
    """A column as `dtef explain` prints it; parts that its description lacks are empty."""

    column: str
    title: str
    """Its heading in a table for people."""
    unit: str
    range: str
    """Such as 0-1."""
    direction: str
    """Such as `higher is better`."""
    meaning: str


def split_description(name: str, description: str) -> ColumnMeaning:
    """Split a column's description into its parts; the meaning is the rest."""
    text = format_meaning(description)
    stated_range, text = _cut(_STATED_RANGE, text)
    direction, text = _cut(_STATED_DIRECTION, text)
    return ColumnMeaning(name, heading(name), _find_unit(name, text), stated_range, direction, text)


def _cut(pattern: re.Pattern[str], text: str) -> tuple[str, str]:
    """Return the first match of the pattern's group before any semicolon, and the text without it."""
    main, semicolon, tail = text.partition(";")
    match = pattern.search(main)
    return (match[1], f"{main[: match.start()]}{main[match.end() :]}{semicolon}{tail}") if match else ("", text)


def _find_unit(name: str, meaning: str) -> str:
    if unit := _STATED_UNIT.search(meaning):
        return unit[0] if unit[0] == "US dollars" else unit[0].lower()
    if name.startswith("n_"):
        return "count"
    return "share" if re.match(r"(?:Mean |Weighted )?share\b", meaning, re.IGNORECASE) else ""
