"""A matrix: rows against columns, each cell on a scale with a bad and a good end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dtef_pipeline.site.content import Kind, Link, TemplateBlock, is_unknown
from dtef_pipeline.site.number_text import UNKNOWN

_SHADES = 10
"""Colours of the scale, from the bad to the good end."""
_EDGE = 1e-9
"""Halves go up, as they do in scripts."""


class Cell(NamedTuple):
    """One cell; a value of None or NaN is not known."""

    value: float | None
    mark: str = ""
    """A sign behind the number, which the caption explains."""
    note: str = ""
    """Shown when the cell is pointed at."""


class MatrixRow(NamedTuple):
    """A row of cells; without cells it is a heading of the rows beneath it."""

    head: str | Link
    cells: Sequence[Cell | None] = ()
    notes: Sequence[str] = ()
    """Remarks beneath its head."""


def matrix(
    caption: str,
    corner: str,
    columns: Sequence[str | Link],
    rows: Sequence[MatrixRow],
    ends: tuple[str, str],
    scale: tuple[float, float] = (0.0, 1.0),
    head_kind: Kind = "text",
) -> TemplateBlock:
    """The block. `ends`: what the least and the greatest value of the `scale` say, such as `0: not met` and `1: met in full`.

    `head_kind`: how the heads of the columns are written.
    """
    body = [{"head": row.head, "notes": row.notes, "cells": [_format_cell(cell, *scale) for cell in row.cells]} for row in rows]
    values = {"caption": caption, "corner": corner, "columns": columns, "rows": body, "ends": ends, "head_kind": head_kind}
    return TemplateBlock("matrix.html.j2", values)


def _format_cell(cell: Cell | None, low: float, high: float) -> dict[str, Any] | None:
    if cell is None:
        return None
    if is_unknown(cell.value):
        return {"text": UNKNOWN + cell.mark, "step": None, "note": cell.note}
    value = float(cell.value or 0.0)
    step = min(max(int((value - low) / (high - low) * _SHADES + _EDGE), 0), _SHADES - 1)
    return {"text": f"{value + _EDGE:.2f}{cell.mark}", "step": step, "note": cell.note}
