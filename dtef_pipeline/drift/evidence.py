"""Evidence that a series of snapshot means has shifted: an e-process for a step at an unknown time, valid also if snapshots are correlated.

Without a shift the means are Gaussian with unknown mean, unknown spread and one of several correlations (`build_dependences`).

The e-value is a ratio of marginal likelihoods that are invariant to mean and spread. The numerator averages over a step's time (any so
far), its size in spreads (Gönen et al. 2005, The American Statistician 59:252) and the correlation; the denominator is the largest
likelihood without a step. For every correlation the ratio stays below a test martingale (Hendriksen, de Heide & Grünwald 2021, Bayesian
Analysis 16:961), so it is an e-process: universal inference (Wasserman, Ramdas & Balakrishnan 2020, PNAS 117:16880). By Ville's inequality
the chance that it ever reaches 1 / alpha without a shift is at most alpha. The scatter of single responses is independent between snapshots:
its share of the variance is estimated, and the rest may be correlated. Correlation is removed by generalised least squares (Greene,
Econometric Analysis, ch. 9).

Outages are snapshots that were off and came back, such as partial failures of a provider. They are no drift, regardless of their distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view

from dtef_pipeline.drift.rule import MIN_GAP

LONGEST_OUTAGE = 5
"""Longest outage in consecutive snapshots; longer ones are shifts."""
_SPREADS, _SPREADS_OF_ONE = 3.0, 4.0
"""Usual spreads from the level from which a run is off, and one of a single snapshot: of many snapshots that did not change, some are 3 spreads
away. Never less than the smallest gap that the documented rule looks at."""
_LEVEL_OF = 10
"""Number of snapshots before a run whose median is its reference level."""
_FIRST = 5
"""Number of first snapshots whose median is the initial level."""
_AFTER = 3
"""Number of snapshots after a run that must be back."""
_FEW, _RARE = 2, 0.1
"""Most runs, and largest share of snapshots, that count as outages; with more, such deviations are usual."""
_CONSISTENT = 1.4826
"""Factor from the median absolute deviation to the standard deviation of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Outages:
    """Places of snapshots. `ended`: off, and the next were back. `pending`: off up to the latest, for at most LONGEST_OUTAGE."""

    ended: tuple[int, ...] = ()
    pending: tuple[int, ...] = ()

    @property
    def places(self) -> frozenset[int]:
        return frozenset((*self.ended, *self.pending))


NO_OUTAGES = Outages()


def find_outages(means: Floats, floor: float) -> Outages:
    """Return the snapshots of a series that were off for a while. `means`: (snapshots,); `floor`: the smallest assumed spread.

    A run consists of snapshots further from the level before them than 3 usual spreads (a single one: 4) and 0.05. It is over when the mean
    of the next three is back: nearer to that level than half of the run's own distance. A run of more than LONGEST_OUTAGE snapshots, or
    after which the level did not come back, is a shift and is not returned. If many runs are off, none is an outage: such snapshots are the
    usual spread. Nor is a run at the level at which the series began or is now, nor one that begins with the series. A run is pending for
    LONGEST_OUTAGE snapshots, however it continues, unless it is at the level at which the series began.
    """
    if np.ptp(means) <= MIN_GAP:
        return Outages()
    # From distances to the median, or between neighbours if smaller, since a run inflates the former.
    spread = _CONSISTENT * _compute_median(np.abs(means - _compute_median(means)))
    steps = _CONSISTENT * _compute_median(np.abs(np.diff(means))) * math.sqrt(2)
    spread = max(floor, min(spread, steps))
    limit, limit_of_one = (max(spreads * spread, MIN_GAP) for spreads in (_SPREADS, _SPREADS_OF_ONE))
    values, over = means.tolist(), list[tuple[range, float]]()
    at = _find_first_off(values, limit)
    usual = list(range(at))
    while at < len(values):
        level = _compute_level(values, usual)
        end = at
        while end < len(values) and abs(values[end] - level) > limit:
            end += 1
        run = range(at, end)
        if not run or (len(run) == 1 and abs(values[at] - level) <= limit_of_one):
            usual.append(at)
            end = at + 1
        elif len(run) <= LONGEST_OUTAGE and end < len(values) and _is_back(values, run, level):
            over.append((run, level))
        elif len(values) - at <= LONGEST_OUTAGE and _is_elsewhere(values, run, level, level):
            return _classify_runs(values, over, usual, range(at, len(values)))
        else:
            usual.extend(run)
        at = end
    return _classify_runs(values, over, usual, range(0))


def _classify_runs(
    values: Sequence[float], past: Sequence[tuple[range, float]], usual: Sequence[int], pending: range
) -> Outages:
    """Return the outages among the runs that are over, each given with the level before it."""
    outages = [run for run, level in past if _is_elsewhere(values, run, level, _compute_level(values, usual))]
    places = [place for run in outages for place in run]
    is_usual = len(outages) + bool(pending) > _FEW and len(places) + len(pending) > _RARE * len(values)
    return Outages(() if is_usual else tuple(places), tuple(pending))


def _is_elsewhere(values: Sequence[float], run: range, level: float, now: float) -> bool:
    """Return whether a run is further than the level before it from the first snapshot, the first few beside the run, and the level now."""
    begin = median(value for place, value in enumerate(values[:_FIRST]) if place not in run)
    return all(abs(_compute_mean(values, run) - end) > abs(level - end) for end in (values[0], begin, now))


def _find_first_off(values: Sequence[float], limit: float) -> int:
    """Return the first place further than `limit` from the level before it, or the number of snapshots if there is none."""
    levels = [values[0], *(_compute_level(values, range(place)) for place in range(1, min(_LEVEL_OF, len(values))))]
    if len(values) > _LEVEL_OF:
        before = np.sort(sliding_window_view(values, _LEVEL_OF)[:-1], axis=1)
        levels += before[:, (_LEVEL_OF - 1) // 2 : _LEVEL_OF // 2 + 1].mean(axis=1).tolist()
    return next((place for place, level in enumerate(levels) if abs(values[place] - level) > limit), len(values))


def _compute_median(values: Floats) -> float:
    """Return the median. numpy's takes eight times as long for a hundred values."""
    sorted_values = np.sort(values)
    return float(sorted_values[(len(values) - 1) // 2] + sorted_values[len(values) // 2]) / 2


def _compute_level(values: Sequence[float], usual: Sequence[int]) -> float:
    """Return the level of the last snapshots that were not off. At least one is needed, so no run begins with the series."""
    return median(values[place] for place in usual[-_LEVEL_OF:])


def _is_back(values: Sequence[float], run: range, level: float) -> bool:
    after = range(run.stop, min(run.stop + _AFTER, len(values)))
    return abs(_compute_mean(values, after) - level) < abs(_compute_mean(values, run) - level) / 2


def _compute_mean(values: Sequence[float], places: range) -> float:
    return sum(values[place] for place in places) / len(places)


Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

BASELINE = 5
"""Number of reference snapshots: the frozen baseline."""
ALPHA = 0.05
RESOLUTION = 0.005
"""Spread of snapshot means below which they count as equal: a tenth of the smallest gap in the documented rule."""
HALF_BY = 5
"""Snapshots after which half of a step's prior weight is used."""
PRIOR_VARIANCE = 25.0
"""Prior variance of the shift, in squared spreads: a typical shift is five spreads."""
_NO_FLOOR = 1e-6
"""A spread below that of any scores."""
_DESIGN_ROWS = 32
"""Designs are built for multiples of this many snapshots, and cut; rows do not depend on later ones."""
_ROUNDED = 0.0625
"""Shares are rounded up to quarters, after subtracting this."""


class Dependence(NamedTuple):
    """Correlation of the means: `share` of their variance is correlated as `lag` to the power of the distance, the rest is independent."""

    lag: float
    share: float


def build_dependences(share: float) -> tuple[Dependence, ...]:
    """Return the possible correlations if at most this share of the variance is correlated."""
    full, half = ((0.5, 0.8, 0.95), (0.8, 0.95)) if share > 0 else ((), ())
    return (
        Dependence(0.0, 1.0),
        *(Dependence(lag, share) for lag in full),
        *(Dependence(lag, share / 2) for lag in half),
    )


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of a series of snapshot means; positions count from 0.

    `log10_e`: (snapshots,) the e-value after each snapshot, 0 through the baseline; snapshots that are off are excluded until they are
    clearly no outage. `first`: the likeliest first snapshot of a shift, or the first after the baseline. `shift`: mean from `first` on less
    the mean before it, without outages, with a 95 % confidence sequence (`low`, `high`; None if there are too few snapshots). `until`:
    number of snapshots that the shift covers: all, or those up to the highest e-value if a shift was found, since later ones may be another
    change. `outages`: snapshots that were off for a while. All None or 0 without a snapshot after the baseline.
    """

    log10_e: Floats
    first: int | None = None
    shift: float | None = None
    low: float | None = None
    high: float | None = None
    until: int | None = None
    outages: Outages = NO_OUTAGES

    @property
    def highest(self) -> float | None:
        """log10 of the highest e-value so far, which Ville's inequality bounds, or None without a snapshot after the baseline."""
        return float(self.log10_e.max()) if self.first is not None else None


def evidence(
    means: Floats, spread: Floats, sampling: Floats | None = None, *, baseline: int = BASELINE, threshold: float | None = None
) -> Evidence:
    """Return the evidence of a shift in `means`: (snapshots,) mean paired differences to the baseline, in chronological order.

    `spread`: (snapshots,) standard error of each mean from the clusters' differences (0: unknown); the spread between snapshots is taken as
    at least their median so far and RESOLUTION. `sampling`: (snapshots,) its part due to single responses, which is independent between
    snapshots; by default none. `threshold`: log10 of the e-value that counts as found; below it the shift is that since the baseline. Means
    and spreads are in units of the score. The e-value after a snapshot does not depend on later snapshots.
    """
    path = np.zeros(len(means))
    if len(means) <= baseline:
        return Evidence(path)
    sampling = np.zeros(len(means)) if sampling is None else sampling
    floors = _compute_floors(spread)
    offs = {n: find_outages(means[:n], float(floors[n - 1])) for n in range(baseline + 1, len(means) + 1)}
    looks: dict[frozenset[int], list[int]] = {}
    for n, outages in offs.items():
        looks.setdefault(outages.places, []).append(n)
    for off_places, ends in looks.items():
        index = _list_places_without(len(means), off_places)
        rows = np.searchsorted(index, ends)
        # Two snapshots of the baseline must remain for comparison.
        counts = rows > max(int((index < baseline).sum()), 2)
        if counts.any():
            path[np.array(ends)[counts] - 1] = _log_e(means[index], floors[index], sampling[index], rows[counts]) / math.log(10)
    has_change = threshold is not None and path.max() >= threshold
    end = int(path.argmax()) + 1 if has_change else len(means)
    off_places = offs[end].places if has_change else frozenset[int]()
    index = _list_places_without(end, off_places)
    first = int(index[_find_likeliest(means[index], sampling[index])]) if has_change else baseline
    shift = estimate_shift(means[:end], spread[:end], sampling[:end], first, off_places)
    return Evidence(path, first, *shift, end, offs[len(means)])


def estimate_shift(
    means: Floats, spread: Floats, sampling: Floats, first: int, off_places: frozenset[int]
) -> tuple[float, float | None, float | None]:
    """Return the shift at place `first` and its interval (see `Evidence`). `off_places`: excluded places; for the rest see `evidence`."""
    places = _list_places_without(len(means), off_places - {first})
    floor, split = float(_compute_floors(spread)[-1]), int(np.searchsorted(places, first))
    after, before = means[places[split:]], means[places[:split]]
    shift = float(after.mean() - before.mean())
    low, high = _compute_interval(
        means[places], split, floor, build_dependences(float(_estimate_shares(means[places], sampling[places])[-1]))
    )
    return shift, None if low is None else min(low, shift), None if high is None else max(high, shift)


def _log_e(means: Floats, floors: Floats, sampling: Floats, n: Places) -> Floats:
    """Return `log_e` with the correlations that the sampling leaves possible."""
    shares, values = _estimate_shares(means, sampling)[n - 1], np.empty(len(n))
    for share in np.unique(shares):
        values[shares == share] = log_e(means, floors, n[shares == share], build_dependences(float(share)))
    return values


def log_e(means: Floats, floors: Floats, n: Places, noise: Sequence[Dependence]) -> Floats:
    """Return the (rows,) log e-values of the first n means, for each of `n`. `noise`: the possible correlations.

    e(n) = [mean over ways of (sum over c of w(c) s(way, c) + w(later) m(way))] / max over ways of m(way), where m is the marginal
    likelihood without a step, s that with a step at c, and w the weights of `log_weight`. `floors`: (snapshots,) the smallest assumed
    spread after each.
    """
    no_step, terms = _compute_densities(means, floors, n, noise)
    later = _log_mean(no_step) + np.log(HALF_BY / (n - 1 + HALF_BY))
    return np.asarray(np.logaddexp(np.logaddexp.reduce(terms, axis=1), later) - no_step.max(axis=0))


def _find_likeliest(means: Floats, sampling: Floats) -> int:
    """Return the place of the best-fitting step, almost without a floor: one above the spread would fit all nearby places equally."""
    share, floors = float(_estimate_shares(means, sampling)[-1]), np.full(len(means), _NO_FLOOR)
    return int(_compute_densities(means, floors, np.array([len(means)]), build_dependences(share))[1][0].argmax())


def log_weight(change: Places | int) -> Floats:
    """Return the log prior weight of a step at place 1, 2, ...: 5 / ((c + 4)(c + 5)), which sum to 1."""
    place = np.asarray(change, dtype=float) + HALF_BY
    return np.asarray(np.log(HALF_BY / ((place - 1) * place)))


def log_bayes_factor(ratio: Floats | float, effective: Floats | float, n: Places | int) -> Floats:
    """Return the log Bayes factor of a shift that is Normal(0, PRIOR_VARIANCE) in units of the spread.

    `ratio`: t squared over its degrees of freedom, n - 2. `effective`: n1 n2 / n of the two sides. Rises with `ratio`. The arguments are
    broadcast.
    """
    gain = 1 + np.asarray(effective, dtype=float) * PRIOR_VARIANCE
    half = (np.asarray(n) - 1) / 2
    return np.asarray(half * (np.log1p(ratio) - np.log1p(ratio / gain)) - 0.5 * np.log(gain))


class _Design(NamedTuple):
    """A whitened regression on a mean and a step; rows are snapshots, columns change points. Sums include the row's own snapshot."""

    whiten: Floats
    steps: Floats
    """(snapshots, changes) a step of 1 from the change on, whitened; the first column is the mean's."""
    ones: Floats
    """(snapshots,) sum of squares of the mean's column."""
    crossed: Floats
    """(snapshots, changes) sum of products of the two."""
    effective: Floats
    """(snapshots, changes) sum of squares of the step not explained by the mean: n1 n2 / n without correlation."""
    constant: Floats
    """(snapshots,) log marginal likelihood without a step, except for the sum of squares."""


@lru_cache(maxsize=64)
def _build_whole_design(snapshots: int, kind: Dependence) -> _Design:
    place = np.arange(snapshots)
    factor = np.linalg.cholesky(kind.share * kind.lag ** np.abs(place[:, None] - place) + (1 - kind.share) * np.eye(snapshots))
    whiten = np.linalg.inv(factor)
    steps = np.asarray(whiten @ np.tril(np.ones((snapshots, snapshots))))
    norms = np.cumsum(steps[:, 0] ** 2)
    products = np.cumsum(steps * steps[:, :1], axis=0)
    effective = np.cumsum(steps**2, axis=0) - products**2 / norms[:, None]
    return _Design(whiten, steps, norms, products, effective, -np.cumsum(np.log(np.diag(factor))) - 0.5 * np.log(norms))


class _Regression(NamedTuple):
    """Regressions on the first n means, a row each.

    `total`: (rows,) sum of squares left by the mean; `gained`: (rows, changes) the step's coefficient times its size; `effective`: that
    size.
    """

    total: Floats
    gained: Floats
    effective: Floats
    constant: Floats


def _compute_regression(means: Floats, kind: Dependence, n: Places) -> _Regression:
    rows, index = len(means), n - 1
    whole = _build_whole_design(-(-rows // _DESIGN_ROWS) * _DESIGN_ROWS, kind)
    design = _Design(*(part[:rows, :rows] if part.ndim > 1 else part[:rows] for part in whole))
    white = design.whiten @ (means - means[0])
    sums = np.cumsum(white * design.steps[:, 0])
    total = (np.cumsum(white**2) - sums**2 / design.ones)[index]
    gains = np.cumsum(design.steps * white[:, None], axis=0)[index] - design.crossed[index] * (sums / design.ones)[index, None]
    return _Regression(total, gains, design.effective[index], design.constant[index])


def _compute_densities(means: Floats, floors: Floats, n: Places, noise: Sequence[Dependence]) -> tuple[Floats, Floats]:
    """Return log marginal likelihoods: (ways, rows) without a step, and (rows, changes) with one.

    With a step they are averaged over ways and include its prior weight.
    """
    change, minimum = np.arange(len(means)), n * floors[n - 1] ** 2
    is_valid = (change >= 1) & (change < n[:, None])
    no_step, steps = [], []
    for kind in noise:
        fit = _compute_regression(means, kind, n)
        effective = np.where(is_valid, fit.effective, 1.0)
        total = np.maximum(fit.total, minimum)
        residual = np.maximum(fit.total[:, None] - np.where(is_valid, fit.gained**2 / effective, 0.0), minimum[:, None])
        factor = log_bayes_factor(total[:, None] / residual - 1, effective, n[:, None])
        no_step.append(fit.constant - (n - 1) / 2 * np.log(total))
        steps.append(np.where(is_valid, no_step[-1][:, None] + factor, -np.inf))
    return np.array(no_step), _log_mean(np.array(steps)) + log_weight(np.maximum(change, 1))


def _compute_interval(
    means: Floats, change: int, floor: float, noise: Sequence[Dependence]
) -> tuple[float | None, float | None]:
    """Return the range of shifts at a place whose e-value, with the place's weight, is below 1 / ALPHA."""
    n = len(means)
    fits = [_compute_regression(means, kind, np.array([n])) for kind in noise]
    totals, gains, effective, constant = (
        np.array([float(part) for part in parts])
        for parts in zip(
            *((fit.total[0], fit.gained[0, change], fit.effective[0, change], fit.constant[0]) for fit in fits), strict=True
        )
    )
    estimates, minimum = gains / effective, n * floor**2
    remainders = totals - gains**2 / effective

    def excess(shift: float) -> float:
        total = np.maximum(remainders + effective * (shift - estimates) ** 2, minimum)
        no_step = constant - (n - 1) / 2 * np.log(total)
        densities = no_step + log_bayes_factor(total / np.maximum(remainders, minimum) - 1, effective, n)
        return float(_log_mean(densities) + log_weight(change) - no_step.max()) + math.log(ALPHA)

    centre = min(estimates.tolist(), key=excess)
    return _find_root(excess, centre, -1.0), _find_root(excess, centre, 1.0)


def _find_root(excess: Callable[[float], float], centre: float, direction: float) -> float | None:
    """Return where `excess` rises above 0 on one side of the centre, or None if nowhere."""
    from scipy.optimize import brentq

    end = centre + direction * 1e6
    return float(brentq(excess, centre, end)) if excess(centre) < 0 < excess(end) else None


def _log_mean(logs: Floats) -> Floats:
    return np.asarray(np.logaddexp.reduce(logs, axis=0) - math.log(len(logs)), dtype=float)


def _list_places_without(snapshots: int, off_places: frozenset[int]) -> Places:
    return np.array([place for place in range(snapshots) if place not in off_places], dtype=np.int64)


def _compute_usual_spread(spread: Floats) -> Floats:
    """Return the (snapshots,) median standard error so far."""
    return np.asarray(pd.Series(spread).expanding().median().to_numpy(dtype=np.float64))


def _compute_floors(spread: Floats) -> Floats:
    """Return the (snapshots,) smallest assumed spread between snapshots after each of them."""
    return np.asarray(np.maximum(RESOLUTION, _compute_usual_spread(spread)))


def _estimate_shares(means: Floats, sampling: Floats) -> Floats:
    """Return the (snapshots,) share of variance between the snapshots so far that sampling does not explain, in quarters.

    The variance is that within the two sides of the best-fitting change, so that a shift is not mistaken for correlation.
    """
    sampling, deviations = _compute_usual_spread(sampling), means - means[0]
    sums, squares = np.cumsum(deviations), np.cumsum(deviations**2)
    shares = np.ones(len(means))
    for n in range(4, len(means) + 1):
        change = np.arange(2, n - 1)
        jumps = (sums[n - 1] - sums[change - 1]) / (n - change) - sums[change - 1] / change
        residual = squares[n - 1] - sums[n - 1] ** 2 / n - float((change * (n - change) / n * jumps**2).max())
        shares[n - 1] = 1 - min(sampling[n - 1] ** 2 * (n - 2) / residual, 1.0) if residual > 0 else 1.0
    return np.asarray(np.minimum(np.ceil((shares - _ROUNDED) / 0.25) * 0.25, 1.0).clip(min=0.0))
