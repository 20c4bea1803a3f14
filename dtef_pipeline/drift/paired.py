"""Snapshots compared by cluster with a frozen baseline: the input of the drift evidence."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.drift.rule import is_large, select_answered

Floats = npt.NDArray[np.float64]
_MOST_CHANGES = 5


@dataclass(frozen=True, slots=True)
class Paired:
    """Differences to the baseline, in units of the score; one place per comparable snapshot, in the order given.

    `means`: (snapshots,) mean difference over the items scored in the snapshot and in the baseline. `spread`: (snapshots,) its standard
    error from the differences between whole clusters, without the baseline's own share; 0 if there is one cluster or one snapshot in the
    baseline. `sampling`: (snapshots,) the same if each item were a cluster, at most `spread`: the scatter of single responses. `by_item`:
    (items, snapshots) mean differences, NaN if an item has none. `baseline`: number of first snapshots in the baseline; fewer than
    requested if there are fewer. `level`: mean score of the items in the baseline.
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
        """Whether the range of the snapshots, each at the baseline's level plus its mean difference, reaches the rule's thresholds.

        If every prompt has a score in every snapshot this is the documented rule; prompts with missing scores are included.
        """
        if not len(self.means):
            return False
        return is_large(self.level + float(self.means.min()), float(np.ptp(self.means)))

    @property
    def begin(self) -> int:
        """The first snapshot after the baseline, or after the first one if there are no more than the baseline."""
        return self.baseline if len(self.snapshots) > self.baseline else 1

    @property
    def split(self) -> int:
        """The first snapshot after the single change that fits the means best by least squares, from `begin` on. No test."""
        sums, n = np.cumsum(self.means), len(self.means)
        if n <= self.begin:
            return self.begin
        after = np.arange(self.begin, n)
        jumps = (sums[-1] - sums[after - 1]) / (n - after) - sums[after - 1] / after
        return int(after[np.argmax(after * (n - after) * jumps**2)])

    def list_top_changes(self, first: int, until: int | None = None, *, without: Collection[int] = ()) -> list[dict[str, Any]]:
        """Return the five `item`s whose mean difference changed most at snapshot `first`, the largest `shift` first, in units of the score.

        `until`: number of first snapshots to use. `without`: places of excluded snapshots.
        """
        if not 0 < first < len(self.snapshots):
            return []
        values = self.by_item.to_numpy(copy=True)
        values[:, list(without)] = np.nan
        values = values[:, :until]
        both = np.isfinite(values[:, :first]).any(axis=1) & np.isfinite(values[:, first:]).any(axis=1)
        shifts = np.nanmean(values[both, first:], axis=1) - np.nanmean(values[both, :first], axis=1)
        order = np.argsort(-np.abs(shifts), kind="stable")[:_MOST_CHANGES]
        names = self.by_item.index.to_numpy()[both]
        return [{"item": str(names[i]), "shift": float(shifts[i])} for i in order]


def pair_with_baseline(
    values: pd.DataFrame, clusters: Sequence[str], *, baseline: int, items: Sequence[str] | None = None
) -> Paired:
    """Compare each snapshot with the mean of the item's values in the first `baseline` snapshots.

    `values`: (items, snapshots), scores 0-1 in chronological order, NaN if an item has none; snapshots with too few answers
    (`select_answered`), or that share no item with the baseline, are left out. `clusters`: (items,) each item's cluster: items of one
    cluster are not independent. `items`: (items,) names for reported items, equal across partitions, by default the clusters. A snapshot's
    values depend only on it and the baseline, never on later snapshots.
    """
    values = select_answered(values)
    frozen = min(baseline, len(values.columns))
    scores = values.to_numpy(dtype=np.float64)
    reference = compute_known_means(scores[:, :frozen], axis=1)
    differences = scores - reference[:, None]
    shared = np.isfinite(differences)
    mask = np.asarray(shared.any(axis=0))
    parts = [part[:, mask] for part in (np.where(shared, differences, 0.0), shared.astype(np.float64))]
    (sums, counts), _ = _sum_by_label(parts, clusters)
    (item_sums, item_counts), names = _sum_by_label(parts, clusters if items is None else items)
    labels = tuple(str(label) for label, shares in zip(values.columns, mask.tolist(), strict=True) if shares)
    means = _compute_ratio(sums.sum(axis=0), counts.sum(axis=0))
    # Removes the noise of the baseline's mean: the variance of a later snapshot's difference is (k + 1) / k times its own, within the
    # baseline (k - 1) / k times.
    is_baseline = np.arange(len(labels)) < frozen
    factor = np.sqrt(np.where(is_baseline, frozen / max(frozen - 1, 1), frozen / (frozen + 1)))
    spread, single = (_compute_standard_error(*values, means) * factor for values in ((sums, counts), (parts[0], parts[1])))
    by_item = pd.DataFrame(_compute_ratio(item_sums, item_counts), index=names, columns=list(labels))
    level = float(reference[np.isfinite(reference)].mean()) if np.isfinite(reference).any() else math.nan
    return Paired(labels, means, spread, np.minimum(spread, single), by_item, min(frozen, len(labels)), level)


def _sum_by_label(parts: Sequence[Floats], labels: Sequence[str]) -> tuple[list[Floats], pd.Index]:
    """Return, for each (items, snapshots) part, the sums over the items of each label; and the labels."""
    codes, names = pd.factorize(np.asarray(labels, dtype=object), sort=True)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(names)))
    sums = [np.add.reduceat(part[order], starts, axis=0) if len(names) else part for part in parts]
    return sums, pd.Index(names)


def _compute_standard_error(sums: Floats, counts: Floats, means: Floats) -> Floats:
    """Return the (snapshots,) standard error of the mean over items when whole clusters are drawn: sqrt(Q / (Q - 1) sum (sum - n mean)^2) /
    N.

    With clusters of equal size this is the standard deviation of cluster means / sqrt(Q). Cochran (1977), Sampling Techniques, 6.4, for a
    ratio of sums over clusters.
    """
    n_clusters = (counts > 0).sum(axis=0)
    squares = ((sums - counts * means) ** 2).sum(axis=0)
    return np.asarray(np.nan_to_num(np.sqrt(_compute_ratio(n_clusters * squares, n_clusters - 1)) / counts.sum(axis=0)))


def compute_known_means(values: Floats, *, axis: int) -> Floats:
    """Return the means of known values along an axis, NaN where there are none."""
    is_known = np.isfinite(values)
    return _compute_ratio(np.where(is_known, values, 0.0).sum(axis=axis), is_known.sum(axis=axis))


def _compute_ratio(above: Floats, below: npt.NDArray[np.float64] | npt.NDArray[np.int64]) -> Floats:
    """Divide; NaN unless `below` is above 0."""
    return np.asarray(np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0))
