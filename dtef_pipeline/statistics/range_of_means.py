"""The range of several noisy means: what chance makes of it, and what is left when chance is taken off.

General: it knows means and how they vary together, nothing of any family. The largest of several noisy means always beats the smallest, and
which of them these are is chosen by the noise. So the range is compared with ranges of drawn means, in each of which the largest and the
smallest are chosen anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dtef_pipeline.statistics.resampling import CONFIDENCE, product

Floats = npt.NDArray[np.float64]

INTERVAL_DRAWS = 2_000
"""Draws that an end of the interval is looked for with: its tail of 2.5 % is off by .35 %."""
_HALVINGS = 9
_FARTHEST = 2.0**20
"""Where the means lie as good as on their centre, and no multiple of their distances reaches far enough."""
_TIE = 1e-9
"""A drawn range that is smaller by rounding alone reaches the real one."""


class RangeOfMeans(NamedTuple):
    """What chance makes of a range: `expected`, `low` and `high` (95 %), and `p`, one-sided; the interval of the excess over `expected`."""

    expected: float
    low: float
    high: float
    p: float
    excess_low: float
    excess_high: float


class MeanNoise(NamedTuple):
    """Draws of what chance adds to means, `of_means` (means, draws), and `stretch` (draws,): by how much wider a spread could be that was
    estimated from few numbers, 1 or thereabouts."""

    of_means: Floats
    stretch: Floats

    @classmethod
    def drawn(cls, covariance: Floats, freedom: float, normal: Floats, seed: int) -> MeanNoise:
        """From `covariance` (means, means), estimated with `freedom` degrees of freedom, and standard normal draws (means or more, draws)."""
        variance, axes = np.linalg.eigh(covariance)
        of_means = product(axes * np.sqrt(np.maximum(variance, 0)), normal[: len(covariance)])
        draws = normal.shape[1]
        known = np.isinf(freedom)
        return cls(
            of_means, np.ones(draws) if known else np.sqrt(freedom / np.random.default_rng(seed).chisquare(freedom, draws))
        )


def range_of_means(means: Floats, center: Floats, noise: MeanNoise, *, interval: bool = True) -> RangeOfMeans:
    """The range of `means` (means,) beside those of means that lie at `center` (means,) but for the noise.

    `expected` is their mean, p = (b + 1) / (m + 1) with b of m at least as large as the real one. The true excess is by how much the mean range
    over repetitions is above `expected`; about 0 where the means truly lie at `center`, and never below. Its interval: the true means are taken
    to lie at center + k (means - center). For each k ranges are drawn, the largest and smallest chosen anew in each; the ends are the excesses
    at those k for which the real range would be the upper and the lower 2.5 % point (test inversion; cf. Davison & Hinkley 1997, ch. 5.5). It
    is widened to hold range - `expected`, which can be below 0. Without `interval` its ends are NaN.
    """
    value = float(np.ptp(means))
    plain = _ranges(center, noise.of_means)
    wide = _ranges(center, noise.of_means * noise.stretch)
    expected = float(plain.mean())
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(wide, [tail, 1 - tail])
    p = (np.count_nonzero(wide >= value - _TIE) + 1) / (len(wide) + 1)
    if not interval:
        return RangeOfMeans(expected, float(low), float(high), p, np.nan, np.nan)
    few = MeanNoise(noise.of_means[:, :INTERVAL_DRAWS], noise.stretch[:INTERVAL_DRAWS])
    ends = [_excess(means - center, center, few, value, tail) for tail in (tail, 1 - tail)]
    excess = value - expected
    return RangeOfMeans(expected, float(low), float(high), p, min(ends[0], excess), max(ends[1], excess))


def _excess(off: Floats, center: Floats, noise: MeanNoise, value: float, tail: float) -> float:
    """The excess at the smallest multiple of `off` under which ranges of `value` or more are as likely as `tail`."""
    wide = noise.of_means * noise.stretch

    def is_enough(multiple: float) -> bool:
        return bool(np.count_nonzero(_ranges(center + multiple * off, wide) >= value - _TIE) >= tail * wide.shape[1])

    if is_enough(0.0):
        return 0.0
    below, above = 0.0, 1.0
    while not is_enough(above) and above < _FARTHEST:
        below, above = above, 2 * above
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        below, above = (below, middle) if is_enough(middle) else (middle, above)
    ranges, without = (_ranges(center + multiple * off, noise.of_means).mean() for multiple in (above, 0.0))
    return max(float(ranges - without), 0.0)


def _ranges(center: Floats, noise: Floats) -> Floats:
    drawn = center[:, None] + noise
    return np.asarray(drawn.max(axis=0) - drawn.min(axis=0))
