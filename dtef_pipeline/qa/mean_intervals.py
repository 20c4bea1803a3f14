"""95 % intervals of means of items: Wilson's of right and wrong items, of all else by t over items or whole clusters of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS, Codes, Floats, estimate_groups, why_none
from dtef_pipeline.statistics.proportions import unit_interval, wilson_interval

WILSON_KIND, T_KIND, CLUSTERED_KIND = "wilson", "t", "clustered"


class MeanIntervals(NamedTuple):
    """Of the mean of each group, (groups,) each: low, high (95 %, 0-1; NaN: none), the kind (None: no interval), and why there is none."""

    low: Floats
    high: Floats
    kind: npt.NDArray[np.object_]
    """`wilson`, `t` or `clustered`."""
    why_none: list[str]
    """Empty where there is an interval, or nothing to make one of."""


def group_means(values: Floats, group: Codes, groups: int) -> Floats:
    """(groups,) the mean of the values of each group, NaN where it has none. `values`, `group` (n,), without NaN."""
    counts = np.bincount(group, minlength=groups)
    sums = np.bincount(group, values, groups)
    return np.asarray(np.divide(sums, counts, out=np.full(groups, np.nan), where=counts > 0))


def mean_intervals(
    values: Floats,
    group: Codes,
    groups: int,
    of_items: npt.NDArray[np.bool_],
    noun: str,
    what: str = "interval",
    *,
    sizes: Floats | None = None,
) -> MeanIntervals:
    """95 % intervals of the means of `values` by `group`, (n,) each, without NaN: one value per independent cluster, 0-1.

    `of_items` (groups,): whether each value is that of one item, which is right or wrong. Where it is and all values are 0 or 1, whatever the
    number of draws, the interval is Wilson's. Else it is `unit_interval` of the jackknife over clusters, from 5 clusters on. `sizes` (n,): how
    many items each value is the mean of, which are what is averaged then; None: each value counts 1. `noun`: what a cluster is called in the
    reason why there is no interval, `what`: what the interval is called.
    """
    counts = np.bincount(group, minlength=groups)
    binary = of_items & (np.bincount(group, (values != 0) & (values != 1), groups) == 0) & (counts > 0)
    weights = np.ones(len(values)) if sizes is None else sizes
    low, high = unit_interval(estimate_groups(values * weights, weights, group, groups))
    exact = wilson_interval(np.where(binary, np.bincount(group, values, groups), 0), np.where(binary, counts, 0))
    kind = np.full(groups, None, dtype=object)
    kind[counts >= MIN_CLUSTERS] = T_KIND if sizes is None else CLUSTERED_KIND
    kind[binary] = WILSON_KIND
    whys = [why_none(int(count), noun, what) if count and of is None else "" for count, of in zip(counts, kind, strict=True)]
    return MeanIntervals(np.where(binary, exact[0], low), np.where(binary, exact[1], high), kind, whys)
