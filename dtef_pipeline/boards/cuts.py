"""Boards that differ in nothing but what their rows are cut by, kept as one table with the column `cut`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import pyarrow as pa

from dtef_pipeline.tables import in_schema_or_null

Cuts = Mapping[str, Sequence[str]]
"""By the name of each cut, the columns that tell its boards apart."""


def stack_cuts(frames: Mapping[str, pd.DataFrame], schema: pa.Schema) -> pa.Table:
    """The rows of every cut, by its name. Columns that a cut lacks are null."""
    return pa.concat_tables(in_schema_or_null(rows.assign(cut=cut), schema) for cut, rows in frames.items())


def of_cut(stacked: pd.DataFrame, cut: str, cuts: Cuts) -> pd.DataFrame:
    """The rows of one cut, without the columns that only other cuts have."""
    others = {name for columns in cuts.values() for name in columns} - {*cuts[cut]}
    own: pd.DataFrame = stacked[stacked["cut"] == cut].reset_index(drop=True)
    return own.drop(columns=["cut", *(name for name in others if name in own)])
