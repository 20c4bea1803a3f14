"""Errors that do not depend on how many people were asked.

An observed distribution is a sample: even the truth is some way from it, the further the smaller n. These errors subtract what a sample of n
adds on average, so that their mean over pairs is the same whatever n; a single one can be below 0. Lower is better.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dtef_pipeline.scoring.metrics import Floats, distributions


def corrected_l2(predicted: npt.ArrayLike, observed: npt.ArrayLike, n: npt.ArrayLike) -> Floats:
    """Squared Euclidean distance to the segment's true distribution, unbiased: sum (q - p)^2 - (1 - sum p^2) / (n - 1).

    `predicted` q and `observed` p are (rows, k) or (k,), `n` respondents (rows,) or a number. Range about -1/(n-1)..2, 0 = the truth on
    average; NaN where n < 2. The second term is the unbiased estimate of the sampling variance of p under multinomial answers.
    """
    q, p = distributions(predicted, "predicted"), distributions(observed, "observed")
    return np.asarray(((q - p) ** 2).sum(axis=-1) - _excess((1 - (p * p).sum(axis=-1)), n))


def corrected_rps(predicted: npt.ArrayLike, observed: npt.ArrayLike, n: npt.ArrayLike) -> Floats:
    """Ranked probability score against the true distribution, unbiased: sum (Q - F)^2 - sum F (1 - F) / (n - 1), Q and F cumulative.

    Shapes as of `corrected_l2`; for ordered options alone. Range about -(k-1)/(4(n-1))..k-1, not divided by k - 1; NaN where n < 2.
    """
    q, p = distributions(predicted, "predicted"), distributions(observed, "observed")
    reached, real = (np.cumsum(rows, axis=-1)[..., :-1] for rows in (q, p))
    return np.asarray(((reached - real) ** 2).sum(axis=-1) - _excess((real * (1 - real)).sum(axis=-1), n))


def gini(observed: npt.ArrayLike, n: npt.ArrayLike) -> Floats:
    """Unbiased 1 - sum p^2 of the true distribution: chance that two respondents differ. Range 0..1; NaN where n < 2."""
    p = distributions(observed, "observed")
    size = np.asarray(n, dtype=np.float64)
    return np.asarray(_excess(1 - (p * p).sum(axis=-1), size) * size)


def _excess(spread: Floats, n: npt.ArrayLike) -> Floats:
    size = np.asarray(n, dtype=np.float64)
    return np.asarray(np.divide(spread, size - 1, out=np.full(np.broadcast(spread, size).shape, np.nan), where=size > 1))
