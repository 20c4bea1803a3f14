"""Snapshots that take after the one before: how the means of a series may hang together, and Bayes factors of a shift under each of these ways.

With autocorrelation a mean that wanders looks like a shift. The means are therefore whitened: multiplied by the inverse of the Cholesky factor
of their correlations, as is the step that a shift would be. What is left is an ordinary regression of independent values on a mean and a step
(generalised least squares; Greene, Econometric Analysis, ch. 9), so that the Bayes factor of the step is the same as without autocorrelation.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

RESOLUTION = 0.005
"""Spread of snapshot means below which they are not told apart: a tenth of the smallest gap the documented rule looks at."""
LASTING = 3
"""Snapshots since a change before it counts for more than no change."""
PATIENCE = 3
"""Snapshots after the baseline within which a later change is to one half, by its prior weights."""
EARLY = 0.2
"""Prior weight of a change within the baseline, in equal parts. It counts for more than no change once twice the baseline's snapshots are known
since: the few before it may have been off, and nobody can tell."""
PRIOR_VARIANCES = np.array([1.0, 4.0, 16.0, 64.0])
"""Of the shift, in units of the spread: a mixture finds small shifts and large ones nearly as fast as either prior alone would."""
_DESIGN_ROWS = 32
"""Designs are made for so many snapshots, or a multiple, and cut: the first rows do not depend on how many follow."""


class Dependence(NamedTuple):
    """How the means vary: `share` of their variance hangs together as `lag` to the power of the distance, the rest is independent."""

    lag: float
    share: float


class _Design(NamedTuple):
    """Of a whitened regression on a mean and a step; rows are snapshots, columns the change points. Sums are up to and with the row's."""

    whiten: Floats
    steps: Floats
    """(snapshots, changes) a step of 1 from the change on, whitened; the first column is the mean's."""
    ones: Floats
    """(snapshots,) sum of squares of the mean's column."""
    crossed: Floats
    """(snapshots, changes) sum of products of the two."""
    effective: Floats
    """(snapshots, changes) sum of squares of the step without what the mean explains: n1 n2 / n where nothing hangs together."""
    volume: Floats
    """(snapshots,) half the log determinant of the correlations."""


@lru_cache(maxsize=128)
def _whole_design(snapshots: int, noise: Dependence) -> _Design:
    place = np.arange(snapshots)
    apart = np.abs(place[:, None] - place)
    factor = np.linalg.cholesky(noise.share * noise.lag**apart + (1 - noise.share) * np.eye(snapshots))
    whiten = np.linalg.inv(factor)
    steps = np.asarray(whiten @ np.tril(np.ones((snapshots, snapshots))))
    ones = np.cumsum(steps[:, 0] ** 2)
    crossed = np.cumsum(steps * steps[:, :1], axis=0)
    effective = np.cumsum(steps**2, axis=0) - crossed**2 / ones[:, None]
    return _Design(whiten, steps, ones, crossed, effective, np.cumsum(np.log(np.diag(factor))))


def _design(snapshots: int, noise: Dependence) -> _Design:
    whole = _whole_design(-(-snapshots // _DESIGN_ROWS) * _DESIGN_ROWS, noise)
    return _Design(*(part[:snapshots, :snapshots] if part.ndim > 1 else part[:snapshots] for part in whole))


class Fits(NamedTuple):
    """What the first n means say under one kind of noise, a row for each n; logs.

    `terms`: (rows, changes) Bayes factor of a shift at a place, times its prior weight; minus infinity where there is none. `factor`:
    (rows,) e-value of a shift somewhere, against none. `shifted`: (rows,) likelihood with a shift somewhere, up to a constant.
    """

    terms: Floats
    factor: Floats
    shifted: Floats


def fits(means: Floats, baseline: int, floors: Floats, noise: Dependence, n: Places) -> Fits:
    """What the first n `means` say, (snapshots,) in units of the score, for some `n`.

    `floors`: the smallest spread that is believed after each.
    """
    design, at = _design(len(means), noise), n - 1
    white = design.whiten @ (means - means[0])
    sums = np.cumsum(white * design.steps[:, 0])
    total = (np.cumsum(white**2) - sums**2 / design.ones)[at]
    least = n * floors[at] ** 2
    change = np.arange(len(means))
    known = (change >= 1) & (change < n[:, None])
    gained = np.cumsum(design.steps * white[:, None], axis=0)[at] - design.crossed[at] * (sums / design.ones)[at, None]
    effective = np.where(known, design.effective[at], 1.0)
    within = np.maximum(total[:, None] - np.where(known, gained**2 / effective, 0.0), least[:, None])
    all_in = np.maximum(total, least)
    factor = np.zeros(known.shape)
    factor[known] = log_bayes_factor(
        (all_in[:, None] / within - 1)[known], effective[known], np.broadcast_to(n[:, None], known.shape)[known]
    )
    lasting = np.where(change < baseline, 2 * baseline, LASTING)
    factor = np.where(n[:, None] - change < lasting, np.minimum(factor, 0.0), factor)
    still = -design.volume[at] - 0.5 * np.log(design.ones[at]) - (n - 1) / 2 * np.log(all_in)
    # The change points that are still to come have the rest of the prior's weight, and a Bayes factor of 1.
    late, early = _prior(baseline)
    rest = np.log(late * PATIENCE / (np.maximum(n - baseline, 0) + PATIENCE) + early * np.maximum(baseline - n, 0))
    terms = np.where(known, factor + weight(change, baseline), -np.inf)
    whole = np.asarray(np.logaddexp(np.logaddexp.reduce(terms, axis=1), rest))
    return Fits(terms, whole, np.asarray(still + whole))


def effective_size(snapshots: int, change: int, noise: Dependence) -> float:
    """What a shift at a place is worth: n1 n2 / n of the two sides where nothing hangs together, else fewer."""
    return float(_design(snapshots, noise).effective[-1, change])


def shift_at(means: Floats, change: int, noise: Dependence) -> tuple[float, float]:
    """The shift at a place by generalised least squares, and the sum of squares of the whitened means that mean and shift leave."""
    design = _design(len(means), noise)
    white = design.whiten @ (means - means[0])
    mean, step = design.steps[:, 0], design.steps[:, change]
    total = float((white**2).sum() - (white * mean).sum() ** 2 / design.ones[-1])
    gained = float((white * step).sum() - design.crossed[-1, change] * (white * mean).sum() / design.ones[-1])
    size = float(design.effective[-1, change])
    return gained / size, total - gained**2 / size


def weight(change: Places | int, baseline: int) -> Floats:
    """log prior weight of a change at a position from 1 on; the weights sum to 1.

    EARLY is shared evenly by the positions within the baseline. The rest is 1/4, 3/20, 1/10, ... from the baseline on.
    """
    late, early = _prior(baseline)
    place = np.maximum(np.asarray(change, dtype=float) - baseline, 0) + PATIENCE
    return np.asarray(np.log(np.where(np.asarray(change) < baseline, early, late * PATIENCE / (place * (place + 1)))))


def _prior(baseline: int) -> tuple[float, float]:
    """Prior weight of all changes after the baseline, and of each one within it."""
    return (1 - EARLY, EARLY / (baseline - 1)) if baseline > 1 else (1.0, 0.0)


def log_bayes_factor(ratio: Floats | float, effective: Floats | float, n: Places | int) -> Floats:
    """Log Bayes factor of a shift, averaged over PRIOR_VARIANCES; `ratio`: t squared over its degrees of freedom, n - 2.

    `effective`: n1 n2 / n of the two sides. Rises with `ratio`. Shapes are those of the arguments broadcast.
    """
    ratio, half = np.asarray(ratio, dtype=float)[..., None], (np.asarray(n)[..., None] - 1) / 2
    gain = 1 + np.asarray(effective, dtype=float)[..., None] * PRIOR_VARIANCES
    each = half * (np.log1p(ratio) - np.log1p(ratio / gain)) - 0.5 * np.log(gain)
    return np.asarray(np.logaddexp.reduce(each, axis=-1) - math.log(len(PRIOR_VARIANCES)), dtype=float)
