"""Noise of the same people in every cluster: by hand, by a naive double loop, and in surveys in which the same people answer everything."""

from __future__ import annotations

import numpy as np
import pytest

from dtef_pipeline.statistics.shared_noise import shared_variance

NOTHING = np.zeros(3, dtype=np.int64)


def test_shared_variance_is_the_sum_over_every_two_items_of_different_clusters() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(60, 20)) * rng.gamma(0.5, size=(60, 1))
    column, cluster, sample = rng.integers(0, 3, 60), rng.integers(0, 9, 60), rng.integers(0, 2, 60)
    correlation = np.array([0.0, 0.02, 0.3])
    found, spread = shared_variance(noise, column, cluster, sample, 3, correlation), np.sqrt((noise**2).mean(axis=1))
    expected = np.zeros(3)
    for a in range(60):
        for b in range(60):
            if column[a] == column[b] and sample[a] == sample[b] and cluster[a] != cluster[b]:
                expected[column[a]] += correlation[column[a]] * spread[a] * spread[b]
    assert found == pytest.approx(expected)
