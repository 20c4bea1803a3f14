"""Intervals of means of items: of right and wrong items by their number, of all else by drawing whole items, or clusters of them, anew."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dtef_pipeline.statistics.proportions import wilson_interval
from dtef_pipeline.statistics.resampling import MIN_CLUSTERS, RESAMPLES, SEED, Floats, Resampling, interval, why_none

Codes = npt.NDArray[np.int64]
WILSON_KIND, RESAMPLED_KIND, CLUSTERED_KIND = "wilson", "resampled", "clustered"
MEAN_INTERVAL_KINDS = (WILSON_KIND, RESAMPLED_KIND, CLUSTERED_KIND)
_MOST_DRAWN = 1_000
"""Clusters above which they are dealt into so many lots, which are drawn in their place: memory stays bounded."""
_NO_SPREAD = 1e-12


class MeanIntervals(NamedTuple):
    """Of the mean of each group, (groups,) each: low, high (95 %, 0-1; NaN: none), one of MEAN_INTERVAL_KINDS (None: none), and why."""

    low: Floats
    high: Floats
    kind: npt.NDArray[np.object_]
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
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> MeanIntervals:
    """95 % intervals of the means of `values` by `group`, (n,) each, without NaN: one value per independent thing, 0-1.

    `of_items` (groups,): whether each value is that of one item, which is right or wrong. Where it is and all values are 0 or 1, whatever the
    number of draws, the interval is Wilson's, which stays in 0-1 and has a width also where all are equal. Else things are drawn anew, and
    their percentiles are those of `resampling.interval`: skewed as the values are, and stretched by Student's t for few things. There is none
    of fewer than 5 things, or of equal ones, whose spread says nothing of others. Of more than 1,000 things, lots are drawn that they are
    dealt into in turn (random groups: Wolter 2007, ch. 2). `sizes` (n,): how many items each value is the mean of, which are what is averaged
    then; None: each value counts 1. `resamples` 0: nothing is drawn. `noun`: what a thing is called in the reason why there is no interval,
    `what`: what the interval is called.
    """
    counts = np.bincount(group, minlength=groups)
    binary = of_items & (np.bincount(group, (values != 0) & (values != 1), groups) == 0) & (counts > 0)
    low, high = wilson_interval(np.where(binary, np.bincount(group, values, groups), 0), np.where(binary, counts, 0))
    kind = np.full(groups, None, dtype=object)
    kind[binary] = WILSON_KIND
    order = np.argsort(group, kind="stable")
    starts = np.cumsum(counts) - counts
    wanted = ~binary & (counts >= MIN_CLUSTERS) & (resamples > 0)
    for count in np.unique(counts[wanted]).tolist():
        places = np.flatnonzero(wanted & (counts == count))
        at = order[starts[places] + np.arange(count)[:, None]]
        spread = np.ptp(values[at], axis=0) > _NO_SPREAD
        top, bottom = dealt(values[at], np.ones(at.shape) if sizes is None else sizes[at])
        ratios = Resampling(len(top), resamples=resamples, seed=seed).ratios(top, bottom)
        ends = interval(ratios)
        low[places], high[places] = (np.where(spread, np.clip(end, 0, 1), np.nan) for end in ends)
        kind[places[spread]] = RESAMPLED_KIND if sizes is None else CLUSTERED_KIND
    return MeanIntervals(low, high, kind, _whys(counts, kind, noun, what) if resamples else [""] * groups)


def dealt(means: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Sums and sizes of the rows that each lot has, both (lots, columns), of `means` and `sizes` (rows, columns).

    Up to 1,000 rows are a lot each, more are dealt in turn.
    """
    sums = means * sizes
    if len(sums) <= _MOST_DRAWN:
        return sums, sizes
    lot = np.arange(len(sums)) % _MOST_DRAWN
    found = [np.zeros((_MOST_DRAWN, sums.shape[1])) for _ in range(2)]
    for lots, rows in zip(found, (sums, sizes), strict=True):
        np.add.at(lots, lot, rows)
    return found[0], found[1]


def _whys(counts: Codes, kinds: npt.NDArray[np.object_], noun: str, what: str) -> list[str]:
    alike = f"no {what}: each {noun} has the same score, which says nothing of how far others scatter"
    return [
        "" if kind is not None or not count else why_none(int(count), noun, what) or alike
        for count, kind in zip(counts, kinds, strict=True)
    ]
