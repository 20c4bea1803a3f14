"""Strengths and weaknesses of a model: parts of a board by its lead over the mean of the other models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dtef_pipeline.site.content import Column, Section, Table, is_unknown

_ROWS_AT_EACH_END = 5
"""Number of best and of worst parts that the table shows until the reader expands it."""
_COLUMNS_OF_LEAD = (
    Column("score", "Score", "score", always=True),
    Column("others", "Others", "score", "Mean of the other models"),
    Column("lead", "Lead", "signed", "Score minus the mean of the other models"),
    Column("rank", "Rank", "count", always=True),
    Column("of", "Of", "count", more=True),
    Column("n_items", "Items", "count", more=True),
)


def compare_with_others(scores: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return scored rows with `others` (mean of the other models; NaN without any), `lead` and `of`. `keys`: the compared parts."""
    rows = scores[scores["score"].notna()].copy()
    total, n = (rows.groupby(list(keys), dropna=False)["score"].transform(method) for method in ("sum", "count"))
    rows["others"] = (total - rows["score"]) / (n - 1).where(n > 1)
    return rows.assign(lead=rows["score"] - rows["others"], of=n)


def first_and_last(rows: Sequence[Any]) -> list[Any]:
    """Return the first five rows and the last five, or all if there are no more."""
    return [*rows[:_ROWS_AT_EACH_END], *rows[max(_ROWS_AT_EACH_END, len(rows) - _ROWS_AT_EACH_END) :]]


def leads_section(id: str, title: str, heading: str, rows: Sequence[Mapping[str, Any]]) -> Section:
    """Build a section from rows of `compare_with_others`, largest lead first, with `part`, a link. Best and worst are at the top."""
    if not rows:
        return Section(id, title, [])
    best, lowest = rows[0], rows[-1]
    answer = ""
    if len(rows) > 1 and not is_unknown(best["lead"]):
        smallest = f"smallest: {lowest['part'].text} ({lowest['lead']:+.3f})"
        answer = f"Largest lead over other models: {best['part'].text} ({best['lead']:+.3f}); {smallest}."
    listing = [*first_and_last(rows), *rows[_ROWS_AT_EACH_END : max(_ROWS_AT_EACH_END, len(rows) - _ROWS_AT_EACH_END)]]
    table = Table("Largest lead first", (Column("part", heading), *_COLUMNS_OF_LEAD), listing, first=2 * _ROWS_AT_EACH_END)
    return Section(id, title, [table], answer)
