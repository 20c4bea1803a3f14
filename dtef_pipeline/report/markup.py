"""Pieces of HTML: sections, tables, folds, numbers as people read them. Whatever comes from data is escaped here."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import pandas as pd

from dtef_pipeline.report.page_files import rows_for_download
from dtef_pipeline.report.stored_rows import decimals, written
from dtef_pipeline.text.shortening import shorten as shortened

DASH = "–"
MOST_IN_SIGHT = 140
"""Characters of a long text that are shown before it is opened."""
Shown = Callable[[Any], str]


class Column(NamedTuple):
    """A column of a frame, its heading, how its values are shown, and what the heading means (seen when pointed at)."""

    name: str
    title: str
    shown: Shown
    meaning: str = ""


class Group(NamedTuple):
    """Rows whose numbers compare, under a heading (markup). Those of two groups never do."""

    title: str
    rows: pd.DataFrame


def section(anchor: str, title: str, text: str, body: str) -> str:
    """A part of the page under its heading; `text` says how to read it, `body` is markup."""
    return (
        f'<section id="{anchor}" aria-labelledby="{anchor}-title"><h2 id="{anchor}-title">{escape(title)}</h2>'
        f'<p class="how">{escape(text)}</p>{body}</section>'
    )


def paragraph(words: str) -> str:
    return f"<p>{escape(words)}</p>"


def fold(heading: str, body: str, *, is_open: bool = False) -> str:
    """A part that opens and closes; `heading` and `body` are markup."""
    return f"<details{' open' if is_open else ''}><summary><h3>{heading}</h3></summary>{body}</details>"


def table(
    frame: pd.DataFrame,
    columns: Sequence[Column],
    *,
    caption: str,
    row_head: str = "",
    anchor: str = "",
    data: pd.DataFrame | None = None,
) -> str:
    """A table in a box that scrolls by itself, sortable by its headings. Columns that the frame lacks are left out.

    `row_head` names the column that says what a row is about. Values are shown by the columns' functions, which give markup. `data` are the
    rows that can be downloaded, as numbers and texts (none given: those columns of the frame that are no markup).
    """
    there = [column for column in columns if column.name in frame.columns]
    if not len(frame) or not there:
        return paragraph("Nothing.")
    cells = [(column, [column.shown(value) for value in frame[column.name]]) for column in there]
    cells = [(column, values) for column, values in cells if column.shown is not note or any(values)]  # no column of no remarks
    there = [column for column, _ in cells]
    head = "".join(_heading(column) for column in there)
    rows = "".join(_row(there, row, row_head) for row in zip(*(values for _, values in cells), strict=True))
    named = f' id="{anchor}"' if anchor else ""
    shown = f'<table{named} class="sortable"><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return scrolling(shown, caption, _plain_columns(frame, there) if data is None else data)


def scrolling(shown: str, caption: str, data: pd.DataFrame) -> str:
    """A table (markup) in a box that scrolls by itself, followed by its rows for download."""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">{shown}</div>{rows_for_download(data)}'
    )


def _plain_columns(frame: pd.DataFrame, columns: Sequence[Column]) -> pd.DataFrame:
    """The columns that hold data and no markup."""
    return frame[[column.name for column in columns if column.shown not in (as_is, named)]]


def _heading(column: Column) -> str:
    meaning = f' title="{escape(column.meaning)}"' if column.meaning else ""
    return f'<th scope="col"{_kind(column)}><button type="button"{meaning}>{escape(column.title)}</button></th>'


def _row(columns: Sequence[Column], values: Sequence[str], row_head: str) -> str:
    cells = (
        f'<th scope="row"{_kind(column)}>{breakable(value) if column.shown is text else value}</th>'
        if column.name == row_head
        else f"<td{_kind(column)}>{value}</td>"
        for column, value in zip(columns, values, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def breakable(name: str) -> str:
    """A name (markup without tags) that a narrow column breaks after its parts before it breaks a word."""
    return re.sub(r"(?<=[/:_@,=])(?=\w)", "<wbr>", name)


def _kind(column: Column) -> str:
    return ' class="text"' if column.shown in (text, note, long_text, named) else ""


def only_varying(frame: pd.DataFrame, columns: Sequence[Column], names: Iterable[str]) -> list[Column]:
    """The columns, without those of `names` that say the same in all rows."""
    alike = {name for name in names if name not in frame or len(set(frame[name])) <= 1}
    return [column for column in columns if column.name not in alike]


def figure(drawing: str, caption: str) -> str:
    return f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>"


def is_unknown(value: Any) -> bool:
    return value is None or (value != value if isinstance(value, float) else value is pd.NA)


def text(value: Any) -> str:
    return DASH if is_unknown(value) else escape(str(value))


def note(value: Any) -> str:
    """A remark: nothing where there is none."""
    return "" if is_unknown(value) or value == "" else f'<span class="note">{escape(str(value))}</span>'


def long_text(value: Any, *, most: int = MOST_IN_SIGHT) -> str:
    """Text of any length, its middle cut in sight and whole when opened."""
    if is_unknown(value):
        return DASH
    words = str(value)
    if len(words) <= most:
        return escape(words)
    return f'<details class="long"><summary>{escape(shortened(words, most, end=0.4))}</summary>{escape(words)}</details>'


def named(markup: Any) -> str:
    """A name with remarks beneath it, as made by `name_with_notes`: a column of text."""
    return as_is(markup)


def name_with_notes(name: Any, notes: Sequence[Any]) -> str:
    """Markup of a name, and beneath it in small the remarks that say something."""
    return f'<span class="name">{breakable(text(name))}</span>' + "".join(note(words) for words in notes)


def _number(pattern: str) -> Shown:
    def shown(value: Any) -> str:
        if is_unknown(value):
            return DASH
        if not math.isfinite(value):
            return "∞" if value > 0 else "-∞"
        rounded = format(float(value), pattern)
        return rounded.lstrip("-+") if not rounded.strip("+-0.,%") else rounded

    return shown


four, three = _number(".4f"), _number(".3f")
whole, percent = _number(",.0f"), _number(".1%")


def dollars(value: Any) -> str:
    """An amount in US dollars: to the hundredth of a cent, as the terminal has it, and a smaller one as such."""
    if is_unknown(value):
        return DASH
    return "&lt; 0.0001" if 0 < value < 0.00005 else f"{value:,.4f}"


UNKNOWN_COST_COLUMNS = (
    Column("unknown_cost_attempts", "Attempts of unknown cost", whole, "Calls that may have been billed, such as timeouts"),
    Column(
        "unknown_cost_usd_most",
        "At most, US dollars",
        dollars,
        "What these may have cost beyond the US dollars; –: no price is known",
    ),
)


def by_interval(value: Any, low: Any = None, high: Any = None, *, sign: str = "") -> Shown:
    """How an estimate and the ends of its interval are shown: with the digits that the interval supports (see `digits.decimals`).

    `sign` + shows that of positive numbers, too.
    """
    known = [math.nan if is_unknown(number) else float(number) for number in (value, low, high)]
    places = decimals(*known) if math.isfinite(known[0]) else 0

    def shown(number: Any) -> str:
        if is_unknown(number):
            return DASH
        if not math.isfinite(number):
            return "∞" if number > 0 else "-∞"
        return written(float(number), places, sign=sign)

    return shown


def estimate(value: Any) -> str:
    """A number without an interval."""
    return by_interval(value)(value)


def signed(value: Any) -> str:
    """A difference without an interval of its own."""
    return by_interval(value, sign="+")(value)


def p_value(value: Any) -> str:
    if is_unknown(value):
        return DASH
    return "&lt; 0.001" if value < 0.001 else f"{value:.3f}"


def with_interval(
    frame: pd.DataFrame, value: str, ends: tuple[str, str], *, sign: str = "", shown: Shown | None = None
) -> pd.Series[Any]:
    """Markup for each row: the value, and its interval beneath where there is one. A frame without such columns gives dashes.

    The interval decides how many digits there are (see `by_interval`), unless `shown` does.
    """
    unknown = pd.Series([None] * len(frame), index=frame.index, dtype=object)
    values, lows, highs = (frame.get(name, unknown) for name in (value, *ends))
    cells = [_estimated(*row, shown or by_interval(*row, sign=sign)) for row in zip(values, lows, highs, strict=True)]
    return pd.Series(cells, index=frame.index, dtype=object)


def _estimated(value: Any, low: Any, high: Any, shown: Shown) -> str:
    return shown(value) + (
        "" if is_unknown(low) or is_unknown(high) else f'<span class="ci">{shown(low)} to {shown(high)}</span>'
    )


def with_intervals(frame: pd.DataFrame, pairs: Sequence[tuple[str, str, str]], *, sign: str = "") -> pd.DataFrame:
    """The frame with each value column that it has turned into markup with its interval; show such columns by `as_is`."""
    there = [(value, (low, high)) for value, low, high in pairs if value in frame.columns]
    return frame.assign(**{value: with_interval(frame, value, ends, sign=sign) for value, ends in there})


def with_name(frame: pd.DataFrame, value: str, name: str) -> list[str]:
    """Markup for each row: the value, and beneath it in small whose it is."""
    return [
        estimate(v) + ("" if is_unknown(whose) else f'<span class="ci wrapped">{text(whose)}</span>')
        for v, whose in zip(frame[value], frame[name], strict=True)
    ]


def as_is(markup: Any) -> str:
    """Markup made by this package, not data; a dash where there is none."""
    return DASH if is_unknown(markup) else str(markup)


def described(facts: Mapping[str, Any]) -> str:
    """A list of names and what they stand for; the values are markup."""
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in facts.items()) + "</dl>"
