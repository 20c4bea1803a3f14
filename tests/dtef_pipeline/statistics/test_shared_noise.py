"""Noise of the same people in every cluster: by hand, by a naive double loop, and in surveys in which the same people answer everything."""

from __future__ import annotations

import numpy as np
import pytest

from dtef_pipeline.statistics.differences import paired_statistics
from dtef_pipeline.statistics.resampling import Resampling, interval
from dtef_pipeline.statistics.shared_noise import noise_variances
from dtef_pipeline.statistics.studentised import studentised_interval


def test_shared_variance_by_hand() -> None:
    """Two replicates; clusters of standard deviation 1, 2 and 3: (1 + 2 + 3)^2 - (1 + 4 + 9) = 22."""
    noise = np.array([[[1.0], [2.0], [3.0]], [[-1.0], [2.0], [-3.0]]])
    found = noise_variances(noise, 0.1)
    assert found.apart == pytest.approx([14.0])
    assert found.shared == pytest.approx([2.2])
    over = found.over(np.array([2.0]))
    assert (over.apart[0], over.shared[0]) == pytest.approx((3.5, 0.55))


def test_shared_variance_is_the_sum_over_every_two_clusters() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(20, 9, 3)) * rng.gamma(0.5, size=(9, 3))
    correlation = np.array([0.0, 0.02, 0.3])
    found = noise_variances(noise, correlation).shared
    for column in range(3):
        spread = [float(np.sqrt(np.mean(noise[:, cluster, column] ** 2))) for cluster in range(9)]
        every_two = sum(spread[a] * spread[b] for a in range(9) for b in range(9) if a != b)
        assert found[column] == pytest.approx(correlation[column] * every_two)


def test_what_clusters_share_comes_on_top_of_what_they_differ_by() -> None:
    rng = np.random.default_rng(2)
    sums, counts = rng.normal(5, 2, size=(30, 2)), np.full((30, 2), 10.0)
    noise = rng.normal(size=(20, 30, 2))
    resampling = Resampling(30)
    alone, together = (resampling.ratios(sums, counts, noise, correlation=r) for r in (0.0, np.array([0.0, 0.5])))
    shared = noise_variances(noise, 0.5).shared[1] / 300**2
    assert together.replicates[:, 0] == pytest.approx(alone.replicates[:, 0], abs=1e-12)
    assert together.shared == pytest.approx([0.0, np.sqrt(shared)])
    assert (together.replicates - alone.replicates)[:, 1] == pytest.approx(np.sqrt(shared) * resampling.people)
    assert resampling.people.var() == pytest.approx(1, abs=0.01)
    by_clusters, with_people = (resampling.ratios(sums, counts, *given) for given in ((), (noise,)))
    uncrossed = resampling.ratios(sums, counts, noise, crossed=False, correlation=0.5)
    assert uncrossed.replicates == pytest.approx(by_clusters.replicates + np.outer(resampling.people, uncrossed.shared))
    assert with_people.replicates == pytest.approx(alone.replicates, abs=1e-12)


def test_two_that_answer_alike_differ_by_exactly_nothing() -> None:
    nothing, noise = np.zeros((12, 1)), np.zeros((20, 12, 1))
    found = paired_statistics(
        nothing, np.full((12, 1), 4.0), Resampling(12), permutations=99, seed=1, noise=noise, correlation=0.06
    )
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
        found = Resampling(clusters).ratios(sums, counts, noise, correlation=correlation)
        low, high = interval(found.replicates, found.n_clusters, found.between)
        skewed = studentised_interval(sums, counts, noise, correlation=correlation)
        held[correlation] = [np.mean((a <= 10) & (b >= 10)) for a, b in ((low, high), skewed)]
    assert max(held[0.0]) < 0.75
    assert 0.93 <= min(held[shared]) <= max(held[shared]) <= 0.97
