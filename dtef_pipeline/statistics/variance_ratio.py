"""The ratio of a variance component to the residual variance, estimated and bounded through the F distribution.

General: it knows mean squares, nothing of any family.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from scipy.special import fdtrc, fdtri

from dtef_pipeline.statistics.cluster_robust import CONFIDENCE


class VarianceRatio(NamedTuple):
    """Component / residual, 0 or more, its 95 % interval, and the p of its being 0."""

    value: float
    low: float
    high: float
    p: float


def estimate_variance_ratio(statistic: Callable[[float], float], groups: int, freedom: int) -> VarianceRatio:
    """Estimate and interval from `statistic`: at the true ratio it follows F with `groups` and `freedom` degrees of freedom.

    `statistic` falls as the ratio grows. The estimate is where it is 1, its expectation (0 where it is below 1 at once): in balanced data the
    classic (F - 1) / k with k values per group. The interval are the ratios at which it lies between the 2.5 % and 97.5 % points of F, which is
    exact for normal effects also in unbalanced data (Wald 1947; Searle, Casella & McCulloch 1992, ch. 3; Seely & El-Bassiouni 1983).
    """
    tails = [fdtri(groups, freedom, place) for place in ((1 + CONFIDENCE) / 2, (1 - CONFIDENCE) / 2)]
    value, low, high = (_find_ratio(statistic, float(quantile)) for quantile in (1.0, *tails))
    return VarianceRatio(value, low, high, float(fdtrc(groups, freedom, statistic(0.0))))


def _find_ratio(statistic: Callable[[float], float], quantile: float) -> float:
    """The ratio at which the statistic is `quantile`; 0 where it is not above it anywhere."""
    from scipy.optimize import brentq

    if statistic(0.0) <= quantile:
        return 0.0
    top = 1.0
    while statistic(top) > quantile:
        top *= 4
    return float(brentq(lambda ratio: statistic(ratio) - quantile, 0.0, top, xtol=1e-15))
