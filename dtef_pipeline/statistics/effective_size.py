"""How many independent items a mean over dependent ones is worth.

General: it knows items, clusters and columns, nothing of any family. A **column** is one mean, over all cells of its items.

Source: design effect of clusters (Kish 1965, 5.4 and 8.2; Cameron, Gelbach & Miller 2011) with unequal weights.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

_SAME_MEANS = 1e-18
"""Mean square of scores below which they differ by rounding alone."""


def effective_items(counts: Floats, sums: Floats, clusters: Codes) -> Floats:
    """The effective number of items, (columns,), from 1 to the number of items that have a score; NaN with fewer than 2 clusters.

    `counts`, `sums` (items, columns): scored cells of each item, and the sum of their scores. `clusters` (items,): numbers from 0, equal for
    items of one cluster. With w an item's count, C a cluster and ICC as of `intraclass`, it is
    (sum w)^2 / sum over C of [(1 - ICC) sum w^2 + ICC (sum w)^2]: so many independent items of one cell each would give a mean as sure as this.
    It is the number of items where they count alike and are independent (ICC 0), and that of clusters where these are equally large and the
    items of each are all alike (ICC 1).
    """
    order = np.argsort(clusters, kind="stable")
    starts = np.flatnonzero(np.diff(clusters[order], prepend=-1))
    weights, total = counts[order], counts.sum(axis=0)
    means = np.divide(sums[order], weights, out=np.zeros_like(weights), where=weights > 0)
    icc, n_clusters = _intraclass(means, weights > 0, starts)
    alone = (weights**2).sum(axis=0)
    together = (np.add.reduceat(weights, starts, axis=0) ** 2).sum(axis=0) if len(starts) else alone
    spread = (1 - icc) * alone + icc * together
    return np.asarray(np.divide(total**2, spread, out=np.full(len(total), np.nan), where=n_clusters > 1))


def _intraclass(means: Floats, here: npt.NDArray[np.bool_], starts: Codes) -> tuple[Floats, Codes]:
    """Intraclass correlation of the items' means within clusters, 0-1, and the number of clusters, both (columns,).

    `means`, `here` (items, columns): items of a cluster together, clusters beginning at `starts`. Moment estimate of the one-way analysis of
    variance with unequal sizes (Searle, Casella & McCulloch 1992, 3.6), 0 where every cluster has one item or all means are equal.
    """
    if not len(starts):
        return np.zeros(means.shape[1]), np.zeros(means.shape[1], dtype=np.int64)
    sizes = np.add.reduceat(here, starts, axis=0, dtype=np.float64)
    items, clusters = sizes.sum(axis=0), (sizes > 0).sum(axis=0)
    off = np.where(here, means - np.where(here, means, 0).sum(axis=0) / np.maximum(items, 1), 0)
    squares = np.add.reduceat(off, starts, axis=0) ** 2 / np.maximum(sizes, 1)
    freedom = np.maximum(clusters - 1, 1)
    between = squares.sum(axis=0)
    within = np.maximum((off**2).sum(axis=0) - between, 0) / np.maximum(items - clusters, 1)
    size = (items - (sizes**2).sum(axis=0) / np.maximum(items, 1)) / freedom
    component = np.divide(between / freedom - within, size, out=np.zeros_like(size), where=(size > 0) & (items > clusters))
    component = np.maximum(component, 0)
    return np.divide(component, component + within, out=np.zeros_like(size), where=component > _SAME_MEANS), clusters
