"""Means over episodes with their intervals, by whole seeds: both seatings and all draws of one deal hang together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from dtef_pipeline.statistics.cluster_robust import CONFIDENCE, MIN_CLUSTERS, Floats, estimate_groups, why_none
from dtef_pipeline.statistics.proportions import unit_interval, wilson_interval

WILSON_MEAN, T_MEAN, JACKKNIFED = "wilson", "t", "jackknifed"
ALIKE_SEEDS = "no interval: each seed has the same value, which says nothing of how far others scatter"


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
    """wilson, t, jackknifed, or None: there is no interval."""
    reason: npt.NDArray[np.object_]
    """Why there is no interval; None: there is one, or there is no mean either."""
    n_seeds: npt.NDArray[np.int64]


def group_means_of(sums: SeedSums, spread: npt.NDArray[np.bool_], shares: npt.NDArray[np.bool_]) -> GroupMeans:
    """The mean of each group, sum(total) / sum(of), with its 95 % interval by whole seeds (`estimate_ratios`).

    `spread` (groups,): the group's number is the standard deviation of the totals (population) instead, whose interval is that of
    `_variance_interval`. `shares` (groups,): the metric lies on 0-1, and its interval is `unit_interval`; where moreover each seed has one
    episode, which counts 0 or 1 of 1, it is Wilson's. There is none of fewer than 5 seeds, nor, but of shares, where all seeds have the same
    value.
    """
    groups = len(spread)
    n_seeds = np.bincount(sums.group, minlength=groups)
    found = estimate_groups(_tops(sums, spread), sums.of, sums.group, groups)
    mean, bounded = found.value, shares & ~spread
    wilson = _are_wilson(sums, bounded & (n_seeds > 0))
    won = np.where(wilson, np.bincount(sums.group, sums.total, groups), 0)
    enough, alike = n_seeds >= MIN_CLUSTERS, ~bounded & (found.se == 0)
    ends = []
    for exact, unit, plain, variance in zip(
        wilson_interval(won, np.where(wilson, n_seeds, 0)),
        unit_interval(found),
        found.interval(),
        _variance_interval(sums, groups),
        strict=True,
    ):
        end = np.select([wilson, ~enough, spread, bounded], [exact, np.nan, variance, unit], np.where(alike, np.nan, plain))
        ends.append(np.where(spread, np.sqrt(np.maximum(end, 0)), end))
    kind = np.where(wilson, WILSON_MEAN, np.where(spread, JACKKNIFED, T_MEAN)).astype(object)
    kind[np.isnan(ends[0])] = None
    reason = np.array([why_none(int(n), "seed") or ALIKE_SEEDS for n in n_seeds], dtype=object)
    reason[(n_seeds == 0) | ~np.isnan(ends[0])] = None
    mean = np.where(spread, np.sqrt(np.maximum(mean, 0)), np.where(bounded, np.clip(mean, 0, 1), mean))
    return GroupMeans(mean, ends[0], ends[1], kind, reason, n_seeds)


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


def _variance_interval(sums: SeedSums, groups: int) -> tuple[Floats, Floats]:
    """Low and high of the variance of each group, (groups,): the jackknife of whole seeds, of the logarithm of the variance. NaN where all
    seeds have the same value, or would without one of them.

    With C seeds and l the logarithm, that of all and l(i) that without seed i, the C pseudo-values C l - (C - 1) l(i) are taken for independent:
    their mean -+ t of C - 1 degrees of freedom times its standard error. Source: Miller (1968), Jackknifing variances.
    """
    group = sums.group
    n_seeds = np.bincount(group, minlength=groups)
    squares, totals, of = (np.bincount(group, one, groups) for one in (sums.squares, sums.total, sums.of))
    with np.errstate(divide="ignore", invalid="ignore"):
        every = np.log(squares / of - (totals / of) ** 2)
        left = of[group] - sums.of
        out = np.log((squares[group] - sums.squares) / left - ((totals[group] - sums.total) / left) ** 2)
        pseudo = n_seeds[group] * every[group] - (n_seeds[group] - 1) * out
        mean = np.bincount(group, pseudo, groups) / n_seeds
        variance = np.bincount(group, (pseudo - mean[group]) ** 2, groups) / (n_seeds - 1)
        reach = stdtrit(np.maximum(n_seeds - 1, 1), (1 + CONFIDENCE) / 2) * np.sqrt(variance / n_seeds)
        low, high = np.exp(mean - reach), np.exp(mean + reach)
    known = np.isfinite(low) & np.isfinite(high)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)
