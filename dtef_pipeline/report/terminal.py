"""Tables for the terminal and for other programs."""

from __future__ import annotations

import io
import json
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from dtef_pipeline.report.row_reader import count_cost_decimals, count_decimals, format_decimals, format_p_value
from dtef_pipeline.text.json_values import simplify_value

MAX_COLUMNS = 8
WIDE = 240
"""Width of a table that is not drawn for a terminal: for pipes and files."""
HINT = "--wide shows them, --csv has every column"


@dataclass(frozen=True, slots=True)
class Fit:
    """The space that a table has to fit into."""

    width: int | None = None
    """Of the terminal; None: there is none."""
    always_shown: Sequence[str] = ()
    """Columns that are always shown, because the table is about them. Without any, the first one."""
    hidden_first: Sequence[str] = ()
    """Columns that are hidden before all others, in this order; the others follow from the last one on."""
    hint: str = HINT
    """How to see the hidden columns."""
    max_columns: int | None = None
    """Number of columns shown at most, including the required ones; None: all."""


def choose_shown_columns(columns: Sequence[str], fit: Fit) -> list[str]:
    """Return the columns to show, in order."""
    if fit.max_columns is None:
        return list(columns)
    essential = fit.always_shown or columns[:1]
    order = [
        name for name in dict.fromkeys((*fit.hidden_first, *reversed(columns))) if name in columns and name not in essential
    ]
    hidden = order[: max(len(columns) - fit.max_columns, 0)]
    return [name for name in columns if name not in hidden]


_UNBREAKABLE = "\N{NO-BREAK SPACE}"
_COMMAND = re.compile(r"`[^`]+`|(?<=: )dtef [^;`]+")


def heading(name: str) -> str:
    """Return a column's heading in tables for people."""
    return name.replace("_", " ")


def wrap_line(line: str, width: int | None, indent: int = 0) -> str:
    """Wrap a line at the width, with later lines indented; unchanged if no width is given.

    A command to copy, in backticks or after a colon, is never broken; the terminal wraps it.
    """
    if width is None or len(line) <= width:
        return line
    room = max(width, indent + 20)
    text = _COMMAND.sub(lambda match: match[0].replace(" ", _UNBREAKABLE), line)
    lines = textwrap.wrap(text, room, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace(_UNBREAKABLE, " ")


_DECIMALS_WITHOUT_ENDS = 4
PERCENT_COLUMNS = ("coverage", "parse_rate")
SIGNED_COLUMNS = ("vs_marginal", "difference", "deviation", "slope", "shift")
DOLLAR_COLUMNS = ("cost_usd", "cost_low", "cost_high")
"""Columns in dollars. Four decimals would be too few for one item of a cheap model."""
P_COLUMNS = ("p", "p_adjusted")
_UNLIMITED = Fit()
_WHOLE_INTERVAL = re.compile(r"\S+ to \S+")
Ends = Mapping[str, tuple[str, str]]
"""By column of estimates, the columns with the ends of its interval."""


def render(
    frame: pd.DataFrame,
    output: str,
    *,
    columns: Sequence[str] = (),
    as_named: bool = False,
    ends: Ends | None = None,
    fit: Fit = _UNLIMITED,
) -> str:
    """Render `frame` as `table` (named columns, rounded), or as `json` or `csv` (all columns, full precision; unknown is null or empty).

    With `ends`, numbers have the digits that their intervals support (see `digits`), else four decimals. If `fit` hides columns, a last
    line names them.
    """
    if output == "json":
        return json.dumps([simplify_value(row) for row in frame.to_dict("records")], ensure_ascii=False, indent=1)
    if output == "csv":
        nested = {str(name): frame[name].map(_format_list) for name in frame if pd.api.types.is_object_dtype(frame[name])}
        return frame.assign(**nested).to_csv(index=False).rstrip("\n")
    names = list(columns or map(str, frame.columns))
    visible = choose_shown_columns(names, fit)
    text = _render_table(frame, visible, as_named, ends, fit.width or WIDE)
    hidden = ", ".join(heading(name) for name in names if name not in visible)
    return f"{text}\n{wrap_line(f'not shown: {hidden}; {fit.hint}', fit.width)}" if hidden else text


def rename_variants(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a board in which a model with several variants is named by its variant."""
    variants = frame.groupby("model")["model_variant"].transform("nunique")
    return frame.assign(model=frame["model"].where(variants <= 1, frame["model_variant"]))


def rename_variant_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Do the same for rows of `model` and `model_variant` among other columns."""
    columns = {name: [row[name] for row in rows] for name in ("model", "model_variant")}
    return [{**row, "model": name} for row, name in zip(rows, rename_variants(pd.DataFrame(columns))["model"], strict=True)]


def format_column_intervals(frame: pd.DataFrame, name: str, ends: tuple[str, str]) -> list[str]:
    """Return the interval of the estimate in column `name` per row as one cell, with the digits of the estimate; empty if there is none."""
    sign = "+" if name in SIGNED_COLUMNS else ""
    cells = []
    for value, low, high in zip(frame[name], frame[ends[0]], frame[ends[1]], strict=True):
        places = count_decimals(value, low, high) if pd.notna(low) else 0
        texts = ("∞" if end == math.inf else format_decimals(end, places, sign=sign) for end in (low, high))
        cells.append(" to ".join(texts) if pd.notna(low) else "")
    return cells


def add_ranks(frame: pd.DataFrame, metrics: Iterable[str]) -> pd.DataFrame:
    """Return a board of several metrics with score and rank in one cell: `0.871 (1)`. Ranks are in the columns `{metric}_rank`."""
    table = frame.copy()
    for metric in metrics:
        scores, ranks = frame[metric], frame[f"{metric}_rank"]
        table[metric] = [
            "-"
            if pd.isna(score)
            else f"{format_decimals(score, count_decimals(score))} ({'-' if pd.isna(rank) else int(rank)})"
            for score, rank in zip(scores, ranks, strict=True)
        ]
    return table


def _format_list(value: Any) -> Any:
    """Return lists and mappings as JSON, everything else unchanged."""
    return json.dumps(simplify_value(value), ensure_ascii=False) if pd.api.types.is_list_like(value) else value


def _render_table(frame: pd.DataFrame, names: Sequence[str], as_named: bool, ends: Ends | None, width: int) -> str:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    columns, widths, minimums = [], [], []
    for name in names:
        title, is_number = name if as_named else heading(name), pd.api.types.is_numeric_dtype(frame[name])
        places = _count_places(frame, name, ends)
        cells = [_format_cell(name, value, decimals) for value, decimals in zip(frame[name], places, strict=True)]
        whole = cells if is_number else [cell for cell in cells if _WHOLE_INTERVAL.fullmatch(cell)]
        table.add_column(title, justify="right" if is_number else "left", overflow="fold")
        columns.append(cells)
        widths.append(min(max(map(cell_len, [title, *cells])), width))
        minimums.append(min(max(map(cell_len, [*whole, *(title.split() if whole else ()), " "])), width))
    # The widest text columns are wrapped first, numbers and intervals never.
    while sum(widths) + 2 * len(widths) > width and widths != minimums:
        widest = max((index for index in range(len(widths)) if widths[index] > minimums[index]), key=widths.__getitem__)
        widths[widest] -= 1
    for column, size in zip(table.columns, widths, strict=True):
        column.width = size
    for row in zip(*columns, strict=True):
        table.add_row(*row)
    buffer = io.StringIO()
    Console(file=buffer, width=width, no_color=True, highlight=False, markup=False).print(table)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).strip("\n")


def _count_places(frame: pd.DataFrame, name: str, ends: Ends | None) -> list[int]:
    """Return the decimals of each value of a column."""
    if ends is None or not pd.api.types.is_float_dtype(frame[name]):
        return [_DECIMALS_WITHOUT_ENDS] * len(frame)
    unknown = [math.nan] * len(frame)
    low, high = (frame.get(end, unknown) for end in ends.get(name, ("", "")))
    return [
        _DECIMALS_WITHOUT_ENDS if pd.isna(value) or math.isinf(value) else count_decimals(value, bottom, top)
        for value, bottom, top in zip(frame[name], low, high, strict=True)
    ]


def _format_cell(name: str, value: Any, places: int) -> str:
    value = simplify_value(value)
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, float | int):
        return str(value)
    if name in PERCENT_COLUMNS:
        return f"{value:.1%}"
    if isinstance(value, int):
        return f"{value:,}"
    if name in P_COLUMNS or name.endswith("_p"):
        return format_p_value(value)
    if name in ("rank", "tier") or name.startswith("n_"):
        return f"{value:,.0f}"
    if name in DOLLAR_COLUMNS:
        return format_decimals(value, count_cost_decimals(value))
    return format_decimals(value, places, sign="+" if name in SIGNED_COLUMNS else "")
