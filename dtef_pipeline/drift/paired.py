"""Snapshots compared cluster by cluster with a frozen baseline: what the evidence of drift is made of."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.drift.rule import is_large, select_answered

Floats = npt.NDArray[np.float64]


class ItemShift(NamedTuple):
    """How far the mean difference of an item moved, in units of the score: since a snapshot, less before it."""

    item: str
    shift: float


@dataclass(frozen=True, slots=True)
class Paired:
    """Differences to the baseline, in units of the score; one place per snapshot that could be compared, in the order given.

    `means`: (snapshots,) mean difference over the items scored in the snapshot and in the baseline. `spread`: (snapshots,) standard error of
    that mean from how much whole clusters differ, without the baseline's own share of it; 0 where there is one cluster or one snapshot in
    the baseline. `sampling`: (snapshots,) the same if each item were a cluster, but no more: what the scatter of single responses explains.
    `by_item`: (items, snapshots) mean differences, NaN where an item has none. `baseline`: how many of the snapshots, from the first, are the
    baseline; fewer than asked for when there are fewer. `level`: mean score of the items in the baseline.
    """

    snapshots: tuple[str, ...]
    means: Floats
    spread: Floats
    sampling: Floats
    by_item: pd.DataFrame
    baseline: int
    level: float

    @property
    def is_large(self) -> bool:
        """The rule's thresholds on the range of the snapshots, each at the baseline's level plus its mean difference.

        Where every prompt has a score in every snapshot this is the documented rule; a prompt that lacks one now and then stays in.
        """
        if not len(self.means):
            return False
        return is_large(self.level + float(self.means.min()), float(np.ptp(self.means)))

    @property
    def begin(self) -> int:
        """The first snapshot after the baseline, or after the first one where there are no more than the baseline."""
        return self.baseline if len(self.snapshots) > self.baseline else 1

    @property
    def split(self) -> int:
        """Where one change explains the means best, by least squares: the first snapshot after it, from `begin` on. No test of anything."""
        sums, n = np.cumsum(self.means), len(self.means)
        if n <= self.begin:
            return self.begin
        after = np.arange(self.begin, n)
        jumps = (sums[-1] - sums[after - 1]) / (n - after) - sums[after - 1] / after
        return int(after[np.argmax(after * (n - after) * jumps**2)])

    def moved(self, first: int, until: int | None = None, *, without: Collection[int] = (), most: int = 5) -> list[ItemShift]:
        """The items whose mean difference changed most at snapshot `first`, the largest change first.

        `until`: only the first so many snapshots. `without`: places of snapshots that do not count.
        """
        if not 0 < first < len(self.snapshots):
            return []
        values = self.by_item.to_numpy(copy=True)
        values[:, list(without)] = np.nan
        values = values[:, :until]
        both = np.isfinite(values[:, :first]).any(axis=1) & np.isfinite(values[:, first:]).any(axis=1)
        shifts = np.nanmean(values[both, first:], axis=1) - np.nanmean(values[both, :first], axis=1)
        order = np.argsort(-np.abs(shifts), kind="stable")[:most]
        names = self.by_item.index.to_numpy()[both]
        return [ItemShift(str(names[i]), float(shifts[i])) for i in order]


def paired(values: pd.DataFrame, clusters: Sequence[str], *, baseline: int, items: Sequence[str] | None = None) -> Paired:
    """Each snapshot against the mean of the item's values in the first `baseline` snapshots.

    `values`: (items, snapshots), scores 0-1 in the order of time, NaN where an item has none; snapshots that answered too little (`answered`)
    are left out, and so are those that share no item with the baseline. `clusters`: (items,) the cluster each item is of: items of one
    cluster are not independent. `items`: (items,) what each is called where it moved, equal for equal ones in several partitions; None: as its
    cluster. What a snapshot says depends on it and the baseline alone, never on later snapshots.
    """
    values = select_answered(values)
    frozen = min(baseline, len(values.columns))
    scores = values.to_numpy(dtype=np.float64)
    is_known = np.isfinite(scores[:, :frozen])
    reference = _compute_ratio(np.where(is_known, scores[:, :frozen], 0.0).sum(axis=1), is_known.sum(axis=1))
    differences = scores - reference[:, None]
    shared = np.isfinite(differences)
    mask = np.asarray(shared.any(axis=0))
    parts = [part[:, mask] for part in (np.where(shared, differences, 0.0), shared.astype(np.float64))]
    (sums, counts), _ = _sum_by_label(parts, clusters)
    (item_sums, item_counts), names = _sum_by_label(parts, clusters if items is None else items)
    labels = tuple(str(label) for label, shares in zip(values.columns, mask.tolist(), strict=True) if shares)
    means = _compute_ratio(sums.sum(axis=0), counts.sum(axis=0))
    factor = _compute_noise_factor(len(labels), frozen)
    spread, single = (_compute_standard_error(*values, means) * factor for values in ((sums, counts), (parts[0], parts[1])))
    by_item = pd.DataFrame(_compute_ratio(item_sums, item_counts), index=names, columns=list(labels))
    level = float(reference[np.isfinite(reference)].mean()) if np.isfinite(reference).any() else math.nan
    return Paired(labels, means, spread, np.minimum(spread, single), by_item, min(frozen, len(labels)), level)


def _sum_by_label(parts: Sequence[Floats], labels: Sequence[str]) -> tuple[list[Floats], pd.Index]:
    """Of each part, (items, snapshots), the sums over the items of one label; and the labels."""
    codes, names = pd.factorize(np.asarray(labels, dtype=object), sort=True)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(names)))
    sums = [np.add.reduceat(part[order], starts, axis=0) if len(names) else part for part in parts]
    return sums, pd.Index(names)


def _compute_standard_error(sums: Floats, counts: Floats, means: Floats) -> Floats:
    """(snapshots,) of the mean over items when whole clusters are drawn: sqrt(Q / (Q - 1) sum (sum - n mean)^2) / N.

    Where all clusters have equally many items this is the standard deviation of cluster means / sqrt(Q). Cochran (1977), Sampling
    Techniques, 6.4, for a ratio of sums over clusters.
    """
    n_clusters = (counts > 0).sum(axis=0)
    squares = ((sums - counts * means) ** 2).sum(axis=0)
    return np.asarray(np.nan_to_num(np.sqrt(_compute_ratio(n_clusters * squares, n_clusters - 1)) / counts.sum(axis=0)))


def _compute_noise_factor(snapshots: int, baseline: int) -> Floats:
    """(snapshots,) factor that takes the noise of the baseline's mean out of a difference to it.

    The variance of a later snapshot's difference is (k + 1) / k times its own, of one within the baseline (k - 1) / k times.
    """
    within = np.arange(snapshots) < baseline
    return np.asarray(np.sqrt(np.where(within, baseline / max(baseline - 1, 1), baseline / (baseline + 1))))


def _compute_ratio(above: Floats, below: npt.NDArray[np.float64] | npt.NDArray[np.int64]) -> Floats:
    """NaN where `below` is not above 0."""
    return np.asarray(np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0))
