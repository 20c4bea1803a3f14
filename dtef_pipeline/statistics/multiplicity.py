"""Adjusted p of tests made together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dtef_pipeline.errors import ConfigError

Floats = npt.NDArray[np.float64]

SIGNIFICANCE = 0.05
"""Adjusted p below which a difference is more than chance."""


def holm(p: npt.ArrayLike) -> Floats:
    """Return adjusted p of tests made together (Holm 1979), (tests,): a threshold on them bounds the rate of any false finding.

    The i-th smallest of k is multiplied by k - i + 1, is at least the smaller adjusted ones, and at most 1. NaN stays NaN and is not
    counted. Raises ConfigError for values outside [0, 1].
    """
    # statsmodels' multipletests collects garbage at every call, which takes longer than a whole board.
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or (values < 0).any() or (values > 1).any():
        raise ConfigError(f"p: got {values.tolist()}; allowed: one dimension, values from 0 to 1, or NaN")
    adjusted = np.full(len(values), np.nan)
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    steps = np.maximum.accumulate(values[order] * np.arange(len(order), 0, -1))
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted
