"""Noise of the same people in every cluster: by hand, by a naive double loop, and in surveys in which the same people answer everything."""

from __future__ import annotations

import numpy as np
import pytest

from dtef_pipeline.statistics.differences import paired_statistics
from dtef_pipeline.statistics.resampling import Resampling, interval
from dtef_pipeline.statistics.shared_noise import ClusterNoise, shared_variance
from dtef_pipeline.statistics.studentised import studentised_interval

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
    over = ClusterNoise(noise.T[:, :, None], np.array([2.2])).over(np.array([2.0]))
    assert (over.apart[0], over.shared[0]) == pytest.approx((3.5, 0.55))


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


def test_what_clusters_share_comes_on_top_of_what_they_differ_by() -> None:
    rng = np.random.default_rng(2)
    sums, counts = rng.normal(5, 2, size=(30, 2)), np.full((30, 2), 10.0)
    noise = rng.normal(size=(20, 30, 2))
    resampling = Resampling(30)
    shared = 0.02
    known = ClusterNoise(noise, np.array([0.0, shared * 300**2]))
    alone, together = (resampling.ratios(sums, counts, given) for given in (ClusterNoise(noise), known))
    assert together.replicates[:, 0] == pytest.approx(alone.replicates[:, 0], abs=1e-12)
    assert together.spread.shared == pytest.approx([0.0, np.sqrt(shared)])
    assert (together.replicates - alone.replicates)[:, 1] == pytest.approx(np.sqrt(shared) * resampling.people)
    assert resampling.people.var() == pytest.approx(1, abs=0.01)
    by_clusters, uncrossed = resampling.ratios(sums, counts), resampling.ratios(sums, counts, known, crossed=False)
    assert uncrossed.replicates == pytest.approx(by_clusters.replicates + np.outer(resampling.people, uncrossed.spread.shared))


def test_two_that_answer_alike_differ_by_exactly_nothing() -> None:
    nothing, noise = np.zeros((12, 1)), ClusterNoise(np.zeros((20, 12, 1)))
    found = paired_statistics(nothing, np.full((12, 1), 4.0), Resampling(12), permutations=99, seed=1, noise=noise)
    assert found[["difference", "low", "high"]].to_numpy().tolist() == [[0.0, 0.0, 0.0]]


def test_intervals_hold_the_truth_where_the_same_people_answer_everything() -> None:
    """A tenth of the variance of each cluster's noise is the people's: without it, 40 clusters hold the truth far less often."""
    rng = np.random.default_rng(3)
    clusters, sets, shared = 40, 2000, 0.1
    of_people = rng.normal(size=(1, sets)) * np.sqrt(shared)
    sums = 10 + rng.normal(0, 0.5, size=(clusters, sets)) + of_people + rng.normal(size=(clusters, sets)) * np.sqrt(1 - shared)
    noise, counts = rng.normal(size=(20, clusters, sets)), np.ones((clusters, sets))
    held = {}
    for correlation in (0.0, shared):
        known = ClusterNoise(noise, np.full(sets, correlation * clusters * (clusters - 1)))
        low, high = interval(Resampling(clusters).ratios(sums, counts, known))
        skewed = studentised_interval(sums, counts, known)
        held[correlation] = [np.mean((a <= 10) & (b >= 10)) for a, b in ((low, high), skewed)]
    assert max(held[0.0]) < 0.75
    assert 0.93 <= min(held[shared]) <= max(held[shared]) <= 0.97
