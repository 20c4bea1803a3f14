"""Evidence that a series of snapshots has shifted, valid however often one looks: a mixture e-process over shifts and change points.

Under "no drift" the means of the snapshots vary around one unknown mean with one unknown spread: sampling of the model, and whatever is common
to a night. For each change point c the two-sample Bayes factor of the snapshots from c on against those before it, with a normal prior on the
shift in units of that spread (Gönen et al. 2005, The American Statistician 59:252), is under the right Haar prior on mean and spread a test
martingale whatever the two are (Hendriksen, de Heide & Grünwald 2021, Bayesian Analysis 16:961). A mixture of such is an e-process, and so is
all that never exceeds one; by Ville's inequality the chance that it ever reaches 1 / alpha without drift is at most alpha.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import brentq

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

BASELINE = 5
"""Snapshots of the frozen baseline."""
ALPHA = 0.05
RESOLUTION = 0.005
"""Spread of snapshot means below which they are not told apart: a tenth of the smallest gap the documented rule looks at."""
LASTING = 3
"""Snapshots since a change before it counts for more than no change: one snapshot off and back is no drift, however far off."""
PRIOR_VARIANCES = np.array([1.0, 4.0, 16.0, 64.0])
"""Of the shift, in units of the spread: a mixture finds small shifts and large ones nearly as fast as either prior alone would."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a series of snapshot means says; positions count from 0.

    `log10_e`: (snapshots,) the e-value after each snapshot, 0 through the baseline. `first`: the likeliest first snapshot of a shift, or
    the first after the baseline. `shift`: mean from `first` on less the mean before it, with a 95 % confidence sequence (`low`, `high`; None:
    too few snapshots to bound it). `until`: how many snapshots the shift is of: all, but of a shift that was found those up to the highest
    e-value, since what came after may be another change. All None or 0 when there is no snapshot after the baseline.
    """

    log10_e: Floats
    first: int | None = None
    shift: float | None = None
    low: float | None = None
    high: float | None = None
    until: int | None = None

    @property
    def highest(self) -> float | None:
        """log10 of the highest e-value so far: what Ville's inequality is about. None without a snapshot after the baseline."""
        return float(self.log10_e.max()) if self.first is not None else None


def evidence(means: Floats, spread: Floats, *, baseline: int = BASELINE, threshold: float | None = None) -> Evidence:
    """Evidence of a shift in `means`: (snapshots,) mean paired differences to the baseline, in the order they were taken.

    `spread`: (snapshots,) standard error of each mean as the clusters' own differences show it (0: unknown); the spread between snapshots is
    never taken for smaller than the median of those so far or than RESOLUTION, which can only lower the e-values. `threshold`: log10 of the
    e-value that counts as found; below it the shift is that since the baseline. Means and spreads are in units of the score. The e-value
    after a snapshot does not depend on later snapshots.
    """
    path = np.zeros(len(means))
    if len(means) <= baseline:
        return Evidence(path)
    floors = _floors(spread)
    path[baseline:] = after = _path(means, baseline, floors) / math.log(10)
    found = threshold is not None and after.max() >= threshold
    until = baseline + int(after.argmax()) + 1 if found else len(means)
    first = _likeliest(means, baseline, floors, until) if found else baseline
    return Evidence(path, first, *_shift(means[:until], first, baseline, float(floors[until - 1])), until)


def _floors(spread: Floats) -> Floats:
    """(snapshots,) the smallest spread between snapshots that is believed after each of them."""
    return np.asarray(np.maximum(RESOLUTION, pd.Series(spread).expanding().median().to_numpy(dtype=np.float64)))


def _path(means: Floats, baseline: int, floors: Floats) -> Floats:
    """(snapshots after the baseline,) log e-value after each: all pairs of a snapshot and a change point before it at once."""
    seen = np.arange(baseline + 1, len(means) + 1)
    n = np.repeat(seen, seen - baseline)
    starts = np.cumsum(seen - baseline) - (seen - baseline)
    change = baseline + np.arange(len(n)) - np.repeat(starts, seen - baseline)
    changed = np.logaddexp.reduceat(_terms(means, change, n, baseline, floors), starts)
    # The change points that are still to come have the rest of the prior's weight, and a Bayes factor of 1.
    return np.asarray(np.logaddexp(changed, -np.log(seen - baseline + 1)), dtype=np.float64)


def _weight(change: Places | int, baseline: int) -> Floats:
    """log prior weight of a change at a position: 1/2, 1/6, 1/12, ... from the baseline on; they sum to 1."""
    place = np.asarray(change, dtype=float) - baseline + 1
    return np.asarray(-np.log(place * (place + 1)))


def _terms(means: Floats, change: Places, n: Places, baseline: int, floors: Floats) -> Floats:
    """log of weight times Bayes factor of a change at `change` in the first `n` means, one value per pair of the two."""
    centred = means - means[0]  # keeps the digits that subtracting large sums would lose
    sums, squares = np.cumsum(centred), np.cumsum(centred**2)
    before = sums[change - 1] / change
    after = (sums[n - 1] - sums[change - 1]) / (n - change)
    effective = change * (n - change) / n
    least = n * floors[n - 1] ** 2
    total = squares[n - 1] - sums[n - 1] ** 2 / n
    within = np.maximum(total - effective * (after - before) ** 2, least)
    ratio = np.maximum(total, least) / within - 1
    factor = log_bayes_factor(ratio, effective, n)
    return np.asarray(_weight(change, baseline) + np.where(n - change < LASTING, np.minimum(factor, 0.0), factor))


def log_bayes_factor(ratio: Floats | float, effective: Floats | float, n: Places | int) -> Floats:
    """Log Bayes factor of a shift, averaged over PRIOR_VARIANCES; `ratio`: t squared over its degrees of freedom, n - 2.

    `effective`: n1 n2 / n of the two sides. Rises with `ratio`. Shapes are those of the arguments broadcast.
    """
    ratio, half = np.asarray(ratio, dtype=float)[..., None], (np.asarray(n)[..., None] - 1) / 2
    gain = 1 + np.asarray(effective, dtype=float)[..., None] * PRIOR_VARIANCES
    each = half * (np.log1p(ratio) - np.log1p(ratio / gain)) - 0.5 * np.log(gain)
    return np.asarray(np.logaddexp.reduce(each, axis=-1) - math.log(len(PRIOR_VARIANCES)), dtype=float)


def _likeliest(means: Floats, baseline: int, floors: Floats, upto: int) -> int:
    """The change point that explains the first `upto` means best."""
    change = np.arange(baseline, upto)
    return baseline + int(_terms(means, change, np.full(len(change), upto), baseline, floors).argmax())


def _shift(means: Floats, first: int, baseline: int, floor: float) -> tuple[float, float | None, float | None]:
    """The shift at a change point and the shifts that its Bayes factor does not rule out."""
    n, before, after = len(means), means[:first], means[first:]
    shift = float(after.mean() - before.mean())
    effective = first * (n - first) / n
    within = float(((before - before.mean()) ** 2).sum() + ((after - after.mean()) ** 2).sum())
    within = max(within, n * floor**2)
    wanted = -math.log(ALPHA) - float(_weight(first, baseline))

    def lacking(ratio: float) -> float:
        return float(log_bayes_factor(ratio, effective, n)) - wanted

    most = 1e12
    if lacking(most) < 0:
        return shift, None, None
    half = math.sqrt(brentq(lacking, 0.0, most) * within / effective)
    return shift, shift - half, shift + half
