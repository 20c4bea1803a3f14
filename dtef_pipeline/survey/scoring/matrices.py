"""Columns of lists as matrices: what the formulas, one number of options at a time, are made for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.survey.scoring.metrics import Floats

EFFECTIVE = "n_effective"
"""Column of `survey_responses` that tables of earlier versions do not have."""
Places = npt.NDArray[np.int64]
"""Row numbers."""


def matrix(lists: pa.Array, k: int, rows: Places) -> Floats:
    """(rows, k) values of those rows' lists, each of k values; one column per option in memory, as the metrics work."""
    starts = lists.offsets.to_numpy()[rows]
    flat = lists.values.to_numpy(zero_copy_only=False)
    if len(rows) and (np.diff(starts) == k).all():
        return np.asfortranarray(flat[starts[0] : starts[-1] + k].reshape(-1, k))
    values = np.empty((len(rows), k), order="F")
    for option in range(k):
        values[:, option] = flat[starts + option]
    return values


def with_effective(survey: pa.Table) -> pa.Table:
    """The rows with the column EFFECTIVE, which is null where the table has none."""
    nothing = pa.nulls(len(survey), pa.float64())
    return survey if EFFECTIVE in survey.column_names else survey.append_column(EFFECTIVE, nothing)


def sample_sizes(survey: pa.Table) -> Floats:
    """Respondents (rows,) that a row's answers count for in what rests on sampling: the effective ones where stated, else n; NaN: unknown."""
    n = survey["n"].cast(pa.float64())
    known = pc.coalesce(survey[EFFECTIVE], n) if EFFECTIVE in survey.column_names else n
    return np.asarray(known.to_numpy(), dtype=np.float64)


def dont_know_flags(lists: pa.Array, k: int) -> npt.NDArray[np.bool_]:
    """(rows, k) flags; a row without them has no such option."""
    flags = np.zeros((len(lists), k), dtype=bool)
    given = pc.fill_null(pc.equal(pc.list_value_length(lists), k), False).to_numpy(zero_copy_only=False)
    values = pc.fill_null(lists.filter(pa.array(given)).flatten(), False)
    flags[given] = values.to_numpy(zero_copy_only=False).reshape(-1, k)
    return flags
