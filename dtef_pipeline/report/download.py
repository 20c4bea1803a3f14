"""The rows of a table inside the page, with full precision: what the button beneath it makes a CSV file of."""

from __future__ import annotations

import json
import math
from typing import Any

import pandas as pd


def packed(data: Any) -> str:
    """Data as JSON that can stand in a script element: whatever its texts say, they cannot end the element or begin another."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def rows_for_download(frame: pd.DataFrame) -> str:
    """Markup of the frame's columns, each with its values: a list, or where they repeat the distinct ones and the place of each row's.

    An unknown value is null, a list is one text.
    """
    held = {str(name): _column([_plain(value) for value in frame[name]]) for name in frame.columns}
    return f'<script type="application/json" class="rows">{packed(held)}</script>'


def _column(values: list[Any]) -> Any:
    distinct = list(dict.fromkeys(values))
    if 2 * len(distinct) > len(values):
        return values
    place = {value: at for at, value in enumerate(distinct)}
    return {"distinct": distinct, "at": [place[value] for value in values]}


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return "; ".join(str(_plain(item)) for item in value)
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value if isinstance(value, str | int | float | bool) else str(value)
