"""Ranks of numbers; numbers that are equal up to rounding share a rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dtef_pipeline.statistics.cluster_robust import Floats

SAME = 1e-9
"""Numbers that differ by no more than this part of their size are one number: sums added in another order."""
_SAME_AS_ZERO = 1e-12


def rank_numbers(values: npt.ArrayLike, group: npt.ArrayLike | None = None, *, highest_first: bool = True) -> Floats:
    """Return the rank of each number from 1 (best) within its group, NaN for NaN; equal numbers share the best of their ranks.

    `values`: (n,), with `group` (n,) codes of what is ranked together (default: all); or (m, n) without groups, each row ranked by itself.
    All displayed and stored ranks come from here, as do orders that use a name to break ties.
    """
    numbers = np.asarray(values, dtype=np.float64)
    numbers = -numbers if highest_first else numbers
    order: npt.NDArray[Any]
    begins: npt.NDArray[np.bool_]
    if group is None:
        order = np.argsort(numbers, axis=-1, kind="stable")
        begins = np.zeros(numbers.shape, dtype=bool)
    else:
        codes = np.asarray(group)
        order = np.asarray(np.lexsort((numbers, codes)))
        begins = np.append(False, np.diff(codes[order]) != 0)
    ranks = np.empty(numbers.shape)
    np.put_along_axis(ranks, order, _rank_sorted(np.take_along_axis(numbers, order, axis=-1), begins), axis=-1)
    return np.where(np.isnan(numbers), np.nan, ranks)


def _rank_sorted(sorted_numbers: Floats, begins: npt.NDArray[np.bool_]) -> Floats:
    """Return the ranks of numbers that rise within each group; `begins`: start of each group but the first."""
    at = np.broadcast_to(np.arange(sorted_numbers.shape[-1]), sorted_numbers.shape)
    is_new = np.ones(sorted_numbers.shape, dtype=bool)
    is_new[..., 1:] = begins[..., 1:] | ~_is_same(sorted_numbers[..., :-1], sorted_numbers[..., 1:])
    first = np.maximum.accumulate(np.where(is_new, at, 0), axis=-1)
    start = np.maximum.accumulate(np.where(begins, at, 0), axis=-1)
    return np.asarray(first - start + 1, dtype=np.float64)


def _is_same(below: Floats, above: Floats) -> npt.NDArray[Any]:
    with np.errstate(invalid="ignore"):  # infinity less infinity
        near = above - below <= SAME * np.maximum(np.abs(below), np.abs(above)) + _SAME_AS_ZERO
    return np.asarray((near & np.isfinite(below) & np.isfinite(above)) | (below == above))
