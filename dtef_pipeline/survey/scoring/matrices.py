"""Columns of lists as matrices, for formulas over one number of options at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.survey.scoring.metrics import Floats

Places = npt.NDArray[np.int64]
"""Row numbers."""


def build_matrix(lists: pa.Array, k: int, rows: Places) -> Floats:
    """Return (rows, k) values of those rows' lists, each of k values, stored with one column per option, as the metrics need."""
    starts = lists.offsets.to_numpy()[rows]
    flat = lists.values.to_numpy(zero_copy_only=False)
    if len(rows) and (np.diff(starts) == k).all():
        return np.asfortranarray(flat[starts[0] : starts[-1] + k].reshape(-1, k))
    values = np.empty((len(rows), k), order="F")
    for option in range(k):
        values[:, option] = flat[starts + option]
    return values


def compute_scale_ranks(dont_know: pa.Array, positions: pa.Array, k: int) -> npt.NDArray[np.int64]:
    """Return (rows, k) the place of each option on its scale, from 0, and -1 off the scale: ranks of the `positions` (null: off the scale).

    In a row without positions, the options that are not `dont_know` are ranked in their order.
    """
    off_scale = _read_dont_know_flags(dont_know, k)
    ranks = np.where(off_scale, -1, np.cumsum(~off_scale, axis=1) - 1)
    has_positions = pc.fill_null(pc.equal(pc.list_value_length(positions), k), False).to_numpy(zero_copy_only=False)
    if has_positions.any():
        values = pc.fill_null(positions.filter(pa.array(has_positions)).flatten(), np.inf).to_numpy(zero_copy_only=False)
        lists, code = np.unique(values.reshape(-1, k), axis=0, return_inverse=True)
        # `np.unique` sorts infinity, which stands for no position, last.
        dense = np.array([np.unique(row, return_inverse=True)[1] for row in lists])
        ranks[has_positions] = np.where(np.isfinite(lists), dense, -1)[code.reshape(-1)]
    return ranks


def has_listed_order(ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return (rows,) whether all options are on the scale, in the order in which they are listed, as plain metrics assume."""
    return np.asarray((ranks == np.arange(ranks.shape[-1])).all(axis=-1))


def sample_sizes(survey: pa.Table) -> Floats:
    """Return (rows,) the sample size of a row's answers: effective respondents if stated, else n; NaN: unknown."""
    sizes = pc.coalesce(survey["n_effective"], survey["n"].cast(pa.float64()))
    return np.asarray(sizes.to_numpy(), dtype=np.float64)


def _read_dont_know_flags(lists: pa.Array, k: int) -> npt.NDArray[np.bool_]:
    """Return (rows, k) flags, False in a row without flags."""
    flags = np.zeros((len(lists), k), dtype=bool)
    has_flags = pc.fill_null(pc.equal(pc.list_value_length(lists), k), False).to_numpy(zero_copy_only=False)
    values = pc.fill_null(lists.filter(pa.array(has_flags)).flatten(), False)
    flags[has_flags] = values.to_numpy(zero_copy_only=False).reshape(-1, k)
    return flags
