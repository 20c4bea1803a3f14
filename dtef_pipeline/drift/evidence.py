"""Evidence that a series of snapshots has shifted: a mixture of Bayes factors over shifts and change points, whitened for autocorrelation.

Under "no drift" the means of the snapshots vary around one unknown mean with one unknown spread: sampling of the model, and whatever is common
to a night. For each change point c the two-sample Bayes factor of the snapshots from c on against those before it, with a normal prior on the
shift in units of that spread (Gönen et al. 2005, The American Statistician 59:252), is under the right Haar prior on mean and spread a test
martingale whatever the two are (Hendriksen, de Heide & Grünwald 2021, Bayesian Analysis 16:961), if it is known how the snapshots hang
together. A mixture of such is an e-process; by Ville's inequality the chance that it ever reaches 1 / alpha without drift is at most alpha.

How they hang together is estimated, so with autocorrelation the chance is not proven but simulated (docs/drift.md): each of the ways in which
the snapshots may hang together counts by how well it fits once a shift is allowed for, in a harmonic mean of their e-values, which goes by the
least favourable ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.drift.autocorrelation import (
    RESOLUTION,
    Dependence,
    Fits,
    effective_size,
    fits,
    log_bayes_factor,
    shift_at,
    weight,
)
from dtef_pipeline.drift.outages import NOT_OFF, Off, off_nights

Floats = npt.NDArray[np.float64]

BASELINE = 5
"""Snapshots of the frozen baseline."""
ALPHA = 0.05
_INDEPENDENT = Dependence(0.0, 1.0)
_LAGS = (0.2, 0.4, 0.6, 0.75, 0.85)
_ROUNDED = 0.0625
"""Shares are rounded to quarters, a quarter of one downwards."""
_SHARPNESS = 1.75
"""Power of the likelihood by which a way to hang together counts. Simulated: with 2 the rate of false drifts is 5 % where nights have an
autocorrelation of .8; with 1, shifts of nights that are independent are found less often."""
_SHARPNESS_OF_MANY, _ODDS_OF_ONE = 1.5, -math.log(ALPHA)
"""The power from the odds on that a series of its own needs. Several series that share alpha need more, and with autocorrelation of .8 odds of
200 to 1 are reached without a shift in .7 % of series with the power above, and in .5 % with this one."""
_SURPRISING = 1.0
"""Log likelihood that it costs that more of the variance hangs together than differs from the sampling of the items."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a series of snapshot means says; positions count from 0.

    `log10_e`: (snapshots,) the e-value after each snapshot, 0 through the baseline; snapshots that are off are left out of it until it is clear
    that they are no outage. `first`: the likeliest first snapshot of a shift, or the first after the baseline. `shift`: mean from `first` on
    less the mean before it, without outages, and a 95 % confidence sequence of it (`low`, `high`; None: too few snapshots to bound it).
    `until`: how many snapshots the shift is of: all, but of a shift that was found those up to the highest e-value, since what came after may
    be another change. `autocorrelation`: of the means of two snapshots that follow each other, as it was allowed for. `off`: what was off
    for a while up to the latest snapshot. All None or 0 when there is no snapshot after the baseline.
    """

    log10_e: Floats
    first: int | None = None
    shift: float | None = None
    low: float | None = None
    high: float | None = None
    until: int | None = None
    autocorrelation: float | None = None
    off: Off = NOT_OFF

    @property
    def highest(self) -> float | None:
        """log10 of the highest e-value so far: what Ville's inequality is about. None without a snapshot after the baseline."""
        return float(self.log10_e.max()) if self.first is not None else None


class _Kept:
    """The snapshots of a series without those that are off: what they say, after each."""

    def __init__(
        self, means: Floats, spread: Floats, sampling: Floats, baseline: int, off: frozenset[int], seen: Sequence[int]
    ) -> None:
        """`off`: places of the snapshots that are left out. `seen`: after how many of all snapshots one looks.

        A baseline keeps two snapshots, so that the rest has something to differ from.
        """
        self.places = np.array([place for place in range(len(means)) if place not in off])
        self.baseline = max(sum(place < baseline for place in self.places.tolist()), 2)
        self.means = means[self.places]
        # What the items of a cluster have in common in a night may hang together from night to night: only single responses are taken not to.
        single = np.minimum(_usual(spread), _usual(sampling))
        self._floors, self._shares = _floors(spread)[self.places], _shares(self.means, single[self.places])
        self._rows = np.unique(np.searchsorted(self.places, seen).clip(min=1))
        self._fits: dict[Dependence, Fits] = {}

    def fit(self, noise: Dependence) -> Fits:
        if noise not in self._fits:
            self._fits[noise] = fits(self.means, self.baseline, self._floors, noise, self._rows)
        return self._fits[noise]

    def noise(self, n: int) -> Dependence:
        """How the first `n` hang together: of the ways that fit, the one that speaks most against a shift."""
        doubts = self._doubts(n, _SHARPNESS)
        return max(doubts, key=lambda noise: doubts[noise])

    def _doubts(self, n: int, sharpness: float) -> dict[Dependence, float]:
        """By the ways in which the first `n` may hang together: log of how well the way fits, with a shift allowed for, over its e-value."""
        row, ways = self._row(n), dict(self._ways(n))
        fitting = sharpness * np.array([float(self.fit(noise).shifted[row]) - cost for noise, cost in ways.items()])
        factors = np.array([float(self.fit(noise).factor[row]) for noise in ways])
        return dict(zip(ways, (fitting - np.logaddexp.reduce(fitting) - factors).tolist(), strict=True))

    def _row(self, n: int) -> int:
        return int(np.searchsorted(self._rows, n))

    def _ways(self, n: int) -> Iterator[tuple[Dependence, float]]:
        """Each with what it costs in log likelihood."""
        yield _INDEPENDENT, 0.0
        share = float(self._shares[n - 1])
        for lag in _LAGS:
            if share < 1:
                yield Dependence(lag, 1.0), _SURPRISING
            if share > 0:
                yield Dependence(lag, share), 0.0

    def log_e(self, n: int) -> float:
        """The harmonic mean of the e-values of all ways, by how well they fit: near the lowest of those that do.

        Beyond the odds that one series needs, ways that fit less well count for more.
        """
        one = self._harmonic(n, _SHARPNESS)
        return one if one <= _ODDS_OF_ONE else min(one, max(self._harmonic(n, _SHARPNESS_OF_MANY), _ODDS_OF_ONE))

    def _harmonic(self, n: int, sharpness: float) -> float:
        return -float(np.logaddexp.reduce(list(self._doubts(n, sharpness).values())))

    def likeliest(self, n: int) -> int:
        """The change point that explains the first `n` best, as a place among them."""
        return int(self.fit(self.noise(n)).terms[self._row(n), :n].argmax())

    def shift(self, change: int, n: int) -> tuple[float, float | None, float | None]:
        """The shift of the first `n` at a change point, and the shifts that its Bayes factor does not rule out."""
        from scipy.optimize import brentq

        noise, means = self.noise(n), self.means[:n]
        shift = float(means[change:].mean() - means[:change].mean())
        estimate, left = shift_at(means, change, noise)
        size, within = effective_size(n, change, noise), max(left, n * float(self._floors[n - 1]) ** 2)
        wanted = -math.log(ALPHA) - float(weight(change, self.baseline))

        def lacking(ratio: float) -> float:
            return float(log_bayes_factor(ratio, size, n)) - wanted

        most = 1e12
        if lacking(most) < 0:
            return shift, None, None
        half = math.sqrt(brentq(lacking, 0.0, most) * within / size)
        return shift, min(estimate - half, shift), max(estimate + half, shift)


def evidence(
    means: Floats, spread: Floats, sampling: Floats | None = None, *, baseline: int = BASELINE, threshold: float | None = None
) -> Evidence:
    """Evidence of a shift in `means`: (snapshots,) mean paired differences to the baseline, in the order they were taken.

    `spread`: (snapshots,) standard error of each mean as the clusters' own differences show it (0: unknown); the spread between snapshots is
    never taken for smaller than the median of those so far or than RESOLUTION, which can only lower the e-values. `sampling`: (snapshots,) the
    part of it that single responses explain and that does not hang together from night to night; None: all of it. `threshold`: log10 of the
    e-value that counts as found; below it the shift is that since the baseline. Means and spreads are in units of the score. The e-value
    after a snapshot does not depend on later snapshots.
    """
    sampling = spread if sampling is None else sampling
    path = np.zeros(len(means))
    if len(means) <= baseline:
        return Evidence(path)
    floors = _floors(spread)
    offs = {n: off_nights(means[:n], float(floors[n - 1])) for n in range(baseline + 1, len(means) + 1)}
    looks: dict[frozenset[int], list[int]] = {}
    for n, off in offs.items():
        looks.setdefault(off.all, []).append(n)
    without = {off: _Kept(means, spread, sampling, baseline, off, seen) for off, seen in looks.items()}
    seen = []
    for n, off in offs.items():
        kept = without[off.all]
        seen.append((kept, int(np.searchsorted(kept.places, n))))
        path[n - 1] = kept.log_e(seen[-1][1]) / math.log(10) if seen[-1][1] > kept.baseline else 0.0
    after = np.where([n > kept.baseline for kept, n in seen], path[baseline:], -np.inf)
    is_found = threshold is not None and after.max() >= threshold
    off = offs[len(means)]
    if is_found:
        until = baseline + int(after.argmax()) + 1
        kept, n = seen[int(after.argmax())]
        first = kept.likeliest(n)
    else:
        until = n = len(means)
        kept, first = _Kept(means, spread, sampling, baseline, frozenset(), [n]), baseline
    noise = kept.noise(n)
    return Evidence(path, int(kept.places[first]), *kept.shift(first, n), until, noise.lag * noise.share, off)


def shift_between(
    means: Floats, spread: Floats, sampling: Floats, baseline: int, first: int, off: frozenset[int]
) -> tuple[float, float | None, float | None]:
    """The shift at place `first` and its interval, as in `Evidence`; `off`: places that are left out; else as for `evidence`."""
    off = off - {first}
    kept = _Kept(means, spread, sampling, baseline, off, [len(means)])
    return kept.shift(int(np.searchsorted(kept.places, first)), len(kept.places))


def _usual(spread: Floats) -> Floats:
    """(snapshots,) the median standard error of the snapshots so far."""
    return np.asarray(pd.Series(spread).expanding().median().to_numpy(dtype=np.float64))


def _floors(spread: Floats) -> Floats:
    """(snapshots,) the smallest spread between snapshots that is believed after each of them."""
    return np.asarray(np.maximum(RESOLUTION, _usual(spread)))


def _shares(means: Floats, sampling: Floats) -> Floats:
    """(snapshots,) share of the variance between the snapshots so far that the sampling of items does not explain: in quarters.

    The variance is that within the two sides of the change that explains the means best, so that a shift is not taken for a wandering level.
    """
    centred = means - means[0]
    sums, squares = np.cumsum(centred), np.cumsum(centred**2)
    shares = np.ones(len(means))
    for n in range(4, len(means) + 1):
        change = np.arange(2, n - 1)
        jumps = (sums[n - 1] - sums[change - 1]) / (n - change) - sums[change - 1] / change
        within = squares[n - 1] - sums[n - 1] ** 2 / n - float((change * (n - change) / n * jumps**2).max())
        shares[n - 1] = 1 - min(sampling[n - 1] ** 2 * (n - 2) / within, 1.0) if within > 0 else 1.0
    return np.asarray(np.minimum(np.ceil((shares - _ROUNDED) / 0.25) * 0.25, 1.0).clip(min=0.0))
