"""Means over episodes with their intervals. What is drawn anew is the seed: both seatings and all draws of one deal hang together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dtef_pipeline.statistics.proportions import wilson_interval
from dtef_pipeline.statistics.resampling import MIN_CLUSTERS, RESAMPLES, SEED, Floats, Resampling, interval, why_none

WILSON_MEAN, RESAMPLED_MEAN = "wilson", "resampled"
ALIKE_SEEDS = "no interval: each seed has the same value, which says nothing of how far others scatter"
NOT_DRAWN = "no interval: none was asked for"
_MOST_LOTS = 1_000
"""Seeds above which they are dealt into so many lots, which are drawn in their place: memory stays bounded."""
_COLUMNS_AT_ONCE = 256
_ALIKE_WITHIN = 1e-12


class SeedSums(NamedTuple):
    """One row per group and seed, (n,) each: sums over its episodes that say something of the metric."""

    group: npt.NDArray[np.int64]
    total: Floats
    squares: Floats
    """Sum of squared totals."""
    of: Floats
    episodes: Floats


class GroupMeans(NamedTuple):
    """One row per group, (groups,) each."""

    mean: Floats
    """NaN: nothing says anything of the metric."""
    low: Floats
    high: Floats
    kind: npt.NDArray[np.object_]
    """wilson, resampled, or None: there is no interval."""
    reason: npt.NDArray[np.object_]
    """Why there is no interval; None: there is one, or there is no mean either."""
    n_seeds: npt.NDArray[np.int64]


def group_means_of(
    sums: SeedSums,
    spread: npt.NDArray[np.bool_],
    shares: npt.NDArray[np.bool_],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> GroupMeans:
    """The mean of each group, sum(total) / sum(of), with its 95 % interval by drawing whole seeds anew.

    `spread` (groups,): the group's number is the standard deviation of the totals (population) instead: the root of the mean squared distance
    from their mean, whose interval is that of the mean of the squares, its ends as roots. `shares` (groups,): the metric lies on 0-1, and so do
    the ends of its interval; where moreover each seed has one episode, which counts 0 or 1 of 1, the interval is Wilson's. There is none of
    fewer than 5 seeds, or where all seeds have the same value. `resamples` 0: nothing is drawn.
    """
    groups = len(spread)
    n_seeds = np.bincount(sums.group, minlength=groups)
    tops = _tops(sums, spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(sums.group, tops, groups) / np.bincount(sums.group, sums.of, groups)
    wilson = _are_wilson(sums, shares & ~spread & (n_seeds > 0))
    won = np.where(wilson, np.bincount(sums.group, sums.total, groups), 0)
    low, high = wilson_interval(won, np.where(wilson, n_seeds, 0))
    kind, reason = np.full(groups, None, dtype=object), np.full(groups, None, dtype=object)
    kind[wilson] = WILSON_MEAN
    few, enough = ~wilson & (n_seeds < MIN_CLUSTERS) & (n_seeds > 0), ~wilson & (n_seeds >= MIN_CLUSTERS)
    reason[few] = [why_none(int(n), "seed") for n in n_seeds[few]]
    reason[enough] = None if resamples else NOT_DRAWN
    for drawn in _drawn_ends(sums.group, tops, sums.of, enough & (resamples > 0), n_seeds, resamples, seed):
        places, alike = drawn.places, drawn.alike
        low[places], high[places] = np.where(alike, np.nan, drawn.low), np.where(alike, np.nan, drawn.high)
        kind[places[~alike]], reason[places[alike]] = RESAMPLED_MEAN, ALIKE_SEEDS
    for ends in (mean, low, high):
        ends[shares] = np.clip(ends[shares], 0, 1)
        ends[spread] = np.sqrt(np.maximum(ends[spread], 0))
    return GroupMeans(mean, low, high, kind, reason, n_seeds)


def _tops(sums: SeedSums, spread: npt.NDArray[np.bool_]) -> Floats:
    """What is averaged over seeds: the totals, or, of a spread, the sums of squared distances from the mean of the group."""
    groups = len(spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (np.bincount(sums.group, sums.total, groups) / np.bincount(sums.group, sums.of, groups))[sums.group]
    squared = sums.squares - 2 * mean * sums.total + mean**2 * sums.of
    return np.where(spread[sums.group], np.maximum(squared, 0), sums.total)


def _are_wilson(sums: SeedSums, shares: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """The groups, of those whose metric is a share, where each seed has one episode that counts 0 or 1 of 1."""
    once = (sums.episodes == 1) & (sums.of == 1) & ((sums.total == 0) | (sums.total == 1))
    return np.asarray(shares & (np.bincount(sums.group, ~once, len(shares)) == 0), dtype=bool)


class _Drawn(NamedTuple):
    """Intervals of some groups, whose places are given."""

    places: npt.NDArray[np.int64]
    low: Floats
    high: Floats
    alike: npt.NDArray[np.bool_]
    """Whether all seeds have the same value."""


def _drawn_ends(
    group: npt.NDArray[np.int64],
    tops: Floats,
    of: Floats,
    wanted: npt.NDArray[np.bool_],
    n_seeds: npt.NDArray[np.int64],
    resamples: int,
    seed: int,
) -> Iterator[_Drawn]:
    """The intervals of the wanted groups, those with as many seeds together, some at a time."""
    order = np.argsort(group, kind="stable")
    starts = np.cumsum(n_seeds) - n_seeds
    for count in np.unique(n_seeds[wanted]).tolist() if resamples else []:
        every = np.flatnonzero(wanted & (n_seeds == count))
        for begin in range(0, len(every), _COLUMNS_AT_ONCE):
            places = every[begin : begin + _COLUMNS_AT_ONCE]
            at = order[starts[places] + np.arange(count)[:, None]]
            top, bottom = _in_lots(tops[at]), _in_lots(of[at])
            alike = np.ptp(tops[at] / of[at], axis=0) <= _ALIKE_WITHIN * np.maximum(1, np.abs(tops[at]).max(axis=0))
            ratios = Resampling(len(top), resamples=resamples, seed=seed).ratios(top, bottom)
            yield _Drawn(places, *interval(ratios), alike)


def _in_lots(sums: Floats) -> Floats:
    """Sums of seeds (seeds, columns), each a lot by itself up to 1,000 of them; more are dealt in turn."""
    if len(sums) <= _MOST_LOTS:
        return sums
    lots = np.zeros((_MOST_LOTS, sums.shape[1]))
    np.add.at(lots, np.arange(len(sums)) % _MOST_LOTS, sums)
    return lots
