"""The ratio of a variance component to the residual variance, estimated and bounded by the F distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from scipy.special import fdtrc, fdtri

from dtef_pipeline.statistics.cluster_robust import CONFIDENCE


class VarianceRatio(NamedTuple):
    """Component / residual, 0 or more, its 95 % interval, and the p of a zero ratio."""

    value: float
    low: float
    high: float
    p: float


def estimate_variance_ratio(statistic: Callable[[float], float], groups: int, freedom: int) -> VarianceRatio:
    """Estimate the ratio and its interval from `statistic`, which follows F with degrees of freedom `groups` and `freedom` at the true
    ratio.

    `statistic` falls as the ratio grows. The estimate is where it is 1 (0 if it starts below 1): in balanced data the classic (F - 1) / k
    with k values per group. The interval contains the ratios at which it is between the 2.5 % and 97.5 % points of F, which is exact for
    normal effects also in unbalanced data (Wald 1947; Searle, Casella & McCulloch 1992, ch. 3; Seely & El-Bassiouni 1983).
    """
    tails = [fdtri(groups, freedom, place) for place in ((1 + CONFIDENCE) / 2, (1 - CONFIDENCE) / 2)]
    value, low, high = (_find_ratio(statistic, float(quantile)) for quantile in (1.0, *tails))
    return VarianceRatio(value, low, high, float(fdtrc(groups, freedom, statistic(0.0))))


def _find_ratio(statistic: Callable[[float], float], quantile: float) -> float:
    """Return the ratio at which the statistic is `quantile`; 0 if it is never above it."""
    from scipy.optimize import brentq

    if statistic(0.0) <= quantile:
        return 0.0
    top = 1.0
    while statistic(top) > quantile:
        top *= 4
    return float(brentq(lambda ratio: statistic(ratio) - quantile, 0.0, top, xtol=1e-15))
