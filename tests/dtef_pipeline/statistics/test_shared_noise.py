"""Noise of the same people in every cluster: by hand, by a naive double loop, and in surveys in which the same people answer everything."""

from __future__ import annotations

import numpy as np
import pytest

from dtef_pipeline.statistics.cluster_robust import estimate_ratios
from dtef_pipeline.statistics.shared_noise import shared_variance

NOTHING = np.zeros(3, dtype=np.int64)


def test_shared_variance_by_hand() -> None:
    """Two replicates; items of standard deviation 1, 2 and 3: 2 (1 x 2 + 1 x 3 + 2 x 3) = 22, and 10 where the first two are one cluster."""
    noise = np.array([[1.0, -1.0], [2.0, 2.0], [-3.0, 3.0]])
    clusters, two = np.array([0, 1, 2]), np.array([0, 0, 1])
    assert shared_variance(noise, NOTHING, clusters, NOTHING, 1, 0.1) == pytest.approx([2.2])
    assert shared_variance(noise, NOTHING, two, NOTHING, 1, 0.1) == pytest.approx([0.1 * 2 * (1 * 3 + 2 * 3)])
    # The third is of other people, or of another column.
    assert shared_variance(noise, NOTHING, clusters, two, 1, 0.1) == pytest.approx([0.1 * 2 * 1 * 2])
    assert shared_variance(noise, two, clusters, NOTHING, 2, np.array([0.1, 0.5])) == pytest.approx([0.4, 0])


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


def test_intervals_hold_the_truth_where_the_same_people_answer_everything() -> None:
    """A tenth of the variance of each cluster's noise is the people's: without it, 40 clusters hold the truth far less often."""
    rng = np.random.default_rng(3)
    clusters, sets, shared = 40, 2000, 0.1
    of_people = rng.normal(size=(1, sets)) * np.sqrt(shared)
    sums = 10 + rng.normal(0, 0.5, size=(clusters, sets)) + of_people + rng.normal(size=(clusters, sets)) * np.sqrt(1 - shared)
    held = {}
    for correlation in (0.0, shared):
        low, high = estimate_ratios(sums, np.ones((clusters, sets)), shared=correlation * (clusters - 1) / clusters).interval()
        held[correlation] = np.mean((low <= 10) & (high >= 10))
    assert held[0.0] < 0.75
    assert 0.93 <= held[shared] <= 0.97
