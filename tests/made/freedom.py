"""Degrees of freedom by their definition, for tests that recompute an interval or a p-value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def freedom_of(sizes: Sequence[float]) -> float:
    """Bell and McCaffrey's, of the jackknife variance m' Q m of cluster means m with variances S = 1 / size: tr(Q S)^2 / tr(Q S Q S)."""
    n = np.array([size for size in sizes if size], dtype=float)
    w = n / n.sum()
    residual = np.eye(len(n)) - np.outer(np.ones(len(n)), w)
    form = residual.T @ np.diag((w / (1 - w)) ** 2) @ residual @ np.diag(1 / n)
    return float(np.trace(form) ** 2 / np.trace(form @ form))
