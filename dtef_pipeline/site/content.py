"""The content of pages: sections with an answer, tables, charts and folds. Values only; templates turn them into HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import pandas as pd

Kind = Literal["text", "long", "code", "model", "number", "score", "signed", "count", "percent", "dollars", "p", "note"]
"""Format of the values of a column. `model`: a name, linked to the page of the model if there is one. `note`: a remark, printed once below
the table, with a mark in each row that it applies to."""


class Link(NamedTuple):
    """A text with a link: `href` is a path from the root of the site, such as `models/gpt-4.1.html`."""

    text: str
    href: str


class Estimate(NamedTuple):
    """A number with the ends of its interval; NaN or None if unknown."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any], name: str, low: str = "", high: str = "") -> Estimate:
        """Return the value of a column with the ends of its interval, by default `{name}_low` and `{name}_high`."""
        return cls(row.get(name), row.get(low or f"{name}_low"), row.get(high or f"{name}_high"))


@dataclass(frozen=True)
class Column:
    """A column of a table, by the name of its values in the rows."""

    name: str
    title: str
    kind: Kind = "text"
    meaning: str = ""
    """Explanation, shown at the heading."""
    more: bool = False
    """Whether it is shown only when the reader asks for more columns."""
    heat: bool = False
    """Whether cells are shaded by their value, 0-1."""
    always: bool = False
    """Whether it is shown although all rows have one value."""
    ends: tuple[str, str] | None = None
    """Columns with the ends of the interval of its values."""

    def value_in(self, row: Mapping[str, Any]) -> Any:
        """Return its value in a row, as an estimate if the column has `ends`."""
        return row.get(self.name) if self.ends is None else Estimate.from_row(row, self.name, *self.ends)


@dataclass(frozen=True)
class Table:
    """Rows under headings. The first column names the row."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    """Values by column: text, number, Link, Estimate, or a list of them. `_kind` of a row: a class, such as `reference`."""
    search: bool = False
    """Whether the reader may filter it; a table of more than SEARCH_FROM rows always has the field."""
    first: int = 0
    """Rows that are shown until the reader asks for all; 0: all."""
    shades: tuple[float, float] = (0.0, 1.0)
    """The values of the palest and of the deepest cell of columns with `heat`."""


@dataclass(frozen=True)
class Chart:
    """A chart of `charts.CHARTS` with its rows."""

    kind: str
    rows: Sequence[Mapping[str, Any]]
    caption: str
    lines: Sequence[Mapping[str, Any]] = ()
    """Reference lines: `value` and `label`."""


@dataclass(frozen=True)
class Prose:
    """Paragraphs of plain text."""

    paragraphs: Sequence[str]


@dataclass(frozen=True)
class Fold:
    """Blocks that open under a title."""

    title: str
    blocks: Sequence[Block]
    is_open: bool = False


@dataclass(frozen=True)
class TemplateBlock:
    """A family's template, by its name under `templates/`, with its values."""

    template: str
    values: Mapping[str, Any]


Block = Table | Chart | Prose | Fold | TemplateBlock


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading."""

    id: str
    title: str
    blocks: Sequence[Block]
    answer: str = ""
    """Its answer, in a sentence with numbers."""
    guide: str = ""
    """How to read it: folded."""
    is_folded: bool = False
    """Whether its blocks are folded, so that only its title and its answer are visible."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.answer and not any(map(has_content, self.blocks))


@dataclass(frozen=True)
class Page:
    """One HTML file of the site."""

    path: str
    """From the root of the site, such as `games/scenarios/kuhn.html`."""
    title: str
    answer: str
    """The first sentence of the page: its answer, with numbers."""
    sections: Sequence[Section] = ()
    crumbs: Sequence[Link] = ()
    """The pages above it, from the front page down, without both."""
    introduction: str = ""
    """At most 25 words."""
    template: str = "page.html.j2"
    values: Mapping[str, Any] = field(default_factory=dict)
    """Further values of the template."""
    scripts: Sequence[str] = ()
    """Scripts under `static/` that it needs in addition to `site.js`."""


class DataFile(NamedTuple):
    """Data that pages load by script on demand: `dtef.load(path)` returns `value`, anything that JSON can represent."""

    path: str
    """From the root of the site, ending in `.js`."""
    value: Any


SEARCH_FROM = 12
"""Rows from which a table has a field that filters them."""


def has_content(block: Block) -> bool:
    """Return whether a block shows anything."""
    match block:
        case Table() | Chart():
            return bool(block.rows)
        case Prose():
            return any(block.paragraphs)
        case Fold():
            return any(map(has_content, block.blocks))
        case TemplateBlock():
            return True


def is_unknown(value: Any) -> bool:
    """Return whether there is no value: None, NaN, an empty text or list, or an estimate of none."""
    if isinstance(value, Estimate):
        return is_unknown(value.value)
    if value is None or isinstance(value, str | list | tuple):
        return not value
    return bool(pd.isna(value)) if pd.api.types.is_scalar(value) else False


def list_shown_columns(table: Table) -> list[Column]:
    """Return the first column and all others except empty ones and, unless `always` is set, constant texts, codes and counts."""
    columns = list(table.columns[:1])
    for column in table.columns[1:]:
        values = [column.value_in(row) for row in table.rows]
        if all(map(is_unknown, values)):
            continue
        is_constant = len(values) > 1 and not column.always and all(value == values[0] for value in values)
        if not (is_constant and column.kind in ("text", "code", "model", "count")):
            columns.append(column)
    return columns


def list_constant_columns(table: Table) -> list[tuple[Column, Any]]:
    """Each column that is left out because all rows have the same value, and that value."""
    visible = {column.name for column in list_shown_columns(table)}
    columns = [column for column in table.columns if column.name not in visible and column.kind != "note" and table.rows]
    return [(column, value) for column in columns if not is_unknown(value := column.value_in(table.rows[0]))]


def footnotes(table: Table) -> dict[str, bool]:
    """Return the distinct notes in the order of the rows; True for those only about baselines, which come last."""
    names = [column.name for column in table.columns if column.kind == "note"]
    notes: dict[str, bool] = {}
    for row in sorted(table.rows, key=_is_reference):
        for name in names:
            if not is_unknown(row.get(name)):
                notes.setdefault(str(row[name]), _is_reference(row))
    return notes


def _is_reference(row: Mapping[str, Any]) -> bool:
    return row.get("_kind") == "reference"


def drop_empty_sections(sections: Sequence[Section]) -> list[Section]:
    """Return the sections with content, without their empty blocks."""
    results = [replace(section, blocks=[block for block in section.blocks if has_content(block)]) for section in sections]
    return [section for section in results if not section.is_empty]


def convert_to_rows(frame: pd.DataFrame, **formatters: Callable[[Any], Any]) -> list[dict[str, Any]]:
    """Return the rows of a frame, each by column. `formatters`: by column, the function that formats its values."""
    rows = [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]
    return [{**row, **{name: make(row[name]) for name, make in formatters.items()}} for row in rows] if formatters else rows
