"""Boards that differ only in the grouping of their rows, stored as one table with the column `cut`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import pyarrow as pa

from dtef_pipeline.tables import convert_to_schema_or_null

Cuts = Mapping[str, Sequence[str]]
"""By the name of each cut, the columns that it has and not every cut."""


def stack_cuts(frames: Mapping[str, pd.DataFrame], schema: pa.Schema, cuts: Cuts) -> pa.Table:
    """Stack the rows of all cuts, by name. Columns that a cut lacks are null."""
    return pa.concat_tables(
        convert_to_schema_or_null(rows.drop(columns=_list_other_columns(cut, cuts), errors="ignore").assign(cut=cut), schema)
        for cut, rows in frames.items()
    )


def select_cut(table: pd.DataFrame, cut: str, cuts: Cuts) -> pd.DataFrame:
    """Return the rows of one cut, without the columns that only other cuts have."""
    rows: pd.DataFrame = table[table["cut"] == cut].reset_index(drop=True)
    return rows.drop(columns=["cut", *_list_other_columns(cut, cuts)], errors="ignore")


def _list_other_columns(cut: str, cuts: Cuts) -> list[str]:
    return sorted({name for columns in cuts.values() for name in columns} - {*cuts[cut]})
