"""Printing of tables and sentences on the terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence

import click
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.named_boards import TableLayout
from dtef_pipeline.cli.options import WIDE_META
from dtef_pipeline.report.terminal import (
    MAX_COLUMNS,
    Ends,
    Fit,
    format_column_intervals,
    render,
    wrap_line,
)
from dtef_pipeline.text.number_words import list_first_names

COLUMNS_LINE = "Columns: dtef explain"
"""The last line of a board, followed by the board's name."""
_ROWS_NAMED = 5
"""How many rows are listed before a note."""
_FLAG_COLUMNS = ("flagged", "champion", "is_largest_gap", "is_suspect")


def compute_terminal_fit(kept: Sequence[str] = (), first_out: Sequence[str] = ()) -> Fit:
    """Return a table's limits: the width of a terminal, and eight columns unless `--wide` is given. For the rest see `Fit`."""
    context = click.get_current_context(silent=True)
    is_wide = context is not None and context.meta.get(WIDE_META, False)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() and not is_wide else None
    return Fit(width, kept, first_out, max_columns=None if is_wide else MAX_COLUMNS)


def say(text: str, *, err: bool = False) -> None:
    """Print sentences, to standard error with `err`. On a terminal, long lines are wrapped with their indentation."""
    is_terminal = (sys.stderr if err else sys.stdout).isatty()
    width = shutil.get_terminal_size().columns if is_terminal else None
    click.echo("\n".join(wrap_line(line, width, len(line) - len(line.lstrip(" "))) for line in text.split("\n")), err=err)


def print_rows(
    layout: TableLayout,
    frame: pd.DataFrame,
    output: str,
    lines: Iterable[str] = (),
    explained_as: str = "",
    number_ends: Ends | None = None,
) -> None:
    """Print the table, then notes on rows, `lines`, and a reference to the columns' meaning; for other programs only the rows.

    A layout without columns shows all. `explained_as`: the name for `dtef explain`, if any; `number_ends`: see `render`.
    """
    if output != "table":
        click.echo(render(frame, output))
        return
    table = frame.copy()
    for name, ends in {"interval": layout.ends, **layout.further_intervals}.items():
        if {layout.estimate, *ends} <= set(frame):
            table[name] = format_column_intervals(frame, layout.estimate, ends)
    for name in {*_FLAG_COLUMNS} & {*frame}:
        table[name] = frame[name].map({True: "yes", False: ""})
    columns = [name for name in layout.columns if name in table and (table[name].notna() & (table[name] != "")).any()]
    fit = compute_terminal_fit(layout.always_shown, layout.hidden_first)
    click.echo(render(table, "table", columns=columns, ends=number_ends, fit=fit))
    for line in [*_format_notes(layout, frame), *lines]:
        say(line)
    if explained_as:
        say(f"{COLUMNS_LINE} {explained_as}")


def whole_frame(rows: pa.Table) -> pd.DataFrame:
    """Return a data frame in which integer columns with nulls stay integers."""
    frame: pd.DataFrame = rows.to_pandas(types_mapper={pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype()}.get)
    return frame


def _format_notes(layout: TableLayout, frame: pd.DataFrame) -> Iterator[str]:
    """Yield each sentence of notes once, after the rows it applies to."""
    notes = frame.get(layout.notes, pd.Series(dtype=str)).fillna("").str.split("; ")
    for note in dict.fromkeys(sentence for sentences in notes for sentence in sentences if sentence):
        rows = frame[[note in sentences for sentences in notes]]
        labels = rows[list(layout.name_columns)].agg(", ".join, axis=1).drop_duplicates().tolist()
        separator = ", " if len(layout.name_columns) == 1 else "; "
        yield f"{'all rows' if len(rows) == len(frame) > 1 else list_first_names(labels, _ROWS_NAMED, separator)}: {note}"
