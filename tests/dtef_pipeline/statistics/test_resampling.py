"""Resampled ratios and their variances agree with naive loops over drawn clusters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, t
from threadpoolctl import threadpool_info

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.resampling import (
    MIN_CLUSTERS,
    Floats,
    Resampling,
    effective_clusters,
    interval,
    product,
    tempered,
    why_none,
    within_limits,
)


def lopsided(rng: np.random.Generator, clusters: int = 12, columns: int = 3) -> tuple[Floats, Floats]:
    counts = rng.integers(1, 30, size=(clusters, columns)).astype(np.float64)
    return counts * rng.uniform(0.3, 0.9, size=counts.shape), counts


def centred(rng: np.random.Generator, *shape: int, sd: float) -> Floats:
    noise = rng.normal(0, sd, size=shape)
    return (noise - noise.mean(axis=0)) * np.sqrt(shape[0] / (shape[0] - 1))


def test_totals_are_counts_times_sums() -> None:
    resampling = Resampling(2, resamples=50)
    # Whole numbers: their sums are exact in any order.
    assert set(resampling.weights.sum(axis=1)) == {2.0}
    totals = resampling.totals(np.array([[1.0], [10.0]]))
    assert set(totals[:, 0]) <= {2.0, 11.0, 20.0}
    assert totals[:, 0].tolist() == [first + 10 * second for first, second in resampling.weights.tolist()]


def test_a_product_starts_no_threads_of_the_blas_so_that_its_digits_do_not_depend_on_the_machine() -> None:
    rng = np.random.default_rng(5)
    left, right = rng.normal(size=(3, 4)), rng.normal(size=(4, 5))
    np.testing.assert_allclose(product(left, right), (left[:, :, None] * right).sum(axis=1), rtol=1e-12)
    pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert set(pools) <= {1}


def test_drawn_weights_are_shared_and_cannot_be_written_to() -> None:
    first, again = Resampling(7, resamples=50), Resampling(7, resamples=50)
    assert first.weights is again.weights
    with pytest.raises(ValueError, match="read-only"):
        first.weights[0] = 1


def test_denominators_that_change_are_not_mixed_up() -> None:
    rng = np.random.default_rng(2)
    top, bottom = lopsided(rng)
    shared = Resampling(len(top))
    for below in (bottom, 2 * bottom, bottom):
        np.testing.assert_allclose(
            shared.ratios(top, below).replicates, Resampling(len(top)).ratios(top, below).replicates, rtol=1e-12
        )


def test_ratios_agree_with_a_naive_loop_over_drawn_clusters() -> None:
    sums, counts = lopsided(np.random.default_rng(1))
    resampling = Resampling(len(sums), resamples=40)
    found = resampling.ratios(sums, counts)
    for resample, weights in enumerate(resampling.weights.astype(int)):
        drawn = [cluster for cluster, times in enumerate(weights) for _ in range(times)]
        for column in range(sums.shape[1]):
            expected = sum(sums[c, column] for c in drawn) / sum(counts[c, column] for c in drawn)
            assert found.replicates[resample, column] == pytest.approx(expected, abs=1e-12)
    assert found.value == pytest.approx(sums.sum(axis=0) / counts.sum(axis=0))


def test_variance_is_that_between_clusters_and_noise_is_not_counted_twice() -> None:
    rng = np.random.default_rng(2)
    sums, counts = lopsided(rng, clusters=60, columns=2)
    noise = centred(rng, 20, 60, 2, sd=1.5)
    found = Resampling(60, resamples=20_000).ratios(sums, counts, noise)
    for column in range(2):
        total = counts[:, column].sum()
        ratio = sums[:, column].sum() / total
        between = sum(((a - ratio * b) / total) ** 2 for a, b in zip(sums[:, column], counts[:, column], strict=True))
        drawn = sum(float(np.mean(noise[:, cluster, column] ** 2)) for cluster in range(60)) / total**2
        assert drawn < between
        assert found.replicates[:, column].var() == pytest.approx(between + drawn / 60, rel=0.08)
        assert found.between[column] == pytest.approx(1 - drawn / (between + drawn / 60), abs=0.02)


def test_where_clusters_differ_by_less_than_the_noise_the_noise_alone_is_left_and_counts_as_five_clusters() -> None:
    noise = centred(np.random.default_rng(3), 20, 30, 1, sd=2.0)
    found = Resampling(30, resamples=20_000).ratios(np.full((30, 1), 5.0), np.full((30, 1), 10.0), noise)
    assert found.between == pytest.approx([0.0], abs=1e-12)
    known = (noise**2).mean(axis=0).sum() / 300**2
    assert found.replicates.var() == pytest.approx(known * 5 / (29 + 5), rel=0.05)


def test_variance_that_the_noise_finds_too_small_is_a_mean_of_both() -> None:
    """6 clusters, 5 degrees of freedom: as much weight as the noise has; 46 clusters: nine times as much."""
    assert tempered(np.array([1.0, 1.0, 4.0]), np.array([3.0, 3.0, 3.0]), [6, 46, 6]) == pytest.approx([2.0, 1.2, 4.0])


def test_a_single_cluster_keeps_its_noise_and_its_place_among_others() -> None:
    noise = centred(np.random.default_rng(3), 20, 6, 2, sd=0.5)
    sums, counts = np.full((6, 2), 5.0), np.full((6, 2), 10.0)
    sums[1:, 0] = counts[1:, 0] = noise[:, 1:, 0] = 0
    drawn = Resampling(6).ratios(sums, counts, noise).replicates[:, 0]
    drawn = drawn[np.isfinite(drawn)]
    assert drawn.var() == pytest.approx((noise[:, 0, 0] ** 2).mean() / 100, rel=0.1)


def test_ends_of_a_score_stay_between_0_and_1_and_reach_further_from_the_nearer_limit() -> None:
    value, away = np.array([0.9, 0.5, 0.1, 1.0, 0.0]), 0.15
    low, high = within_limits(value, value - away, value + away)
    assert low[:3] == pytest.approx([9 / (9 + np.exp(away / 0.09)), 1 / (1 + np.exp(0.6)), 1 / (1 + 9 * np.exp(away / 0.09))])
    assert high[:3] == pytest.approx(1 - low[2::-1])
    assert low[3:] == pytest.approx([0.85, -0.15])
    assert high[3:] == pytest.approx([1.15, 0.15])
    assert value[0] - low[0] > away > high[0] - value[0]


def test_equal_noise_moves_two_columns_together() -> None:
    rng = np.random.default_rng(4)
    noise = np.repeat(centred(rng, 20, 30, 1, sd=2.0), 2, axis=2)
    replicates = Resampling(30).ratios(np.full((30, 2), 5.0), np.full((30, 2), 10.0), noise).replicates
    assert replicates[:, 0] == pytest.approx(replicates[:, 1], rel=1e-12)


def test_a_column_in_few_clusters_has_the_interval_it_would_have_alone() -> None:
    rng = np.random.default_rng(5)
    sums, counts = lopsided(rng, clusters=200, columns=2)
    sums[8:, 1] = counts[8:, 1] = 0
    together = Resampling(200, resamples=20_000).ratios(sums, counts)
    alone = Resampling(8, resamples=20_000).ratios(sums[:8, 1:], counts[:8, 1:])
    assert together.n_clusters.tolist() == [200, 8]
    spread = np.nanstd(together.replicates[:, 1])
    assert spread == pytest.approx(alone.replicates.std(), rel=0.1)


def test_interval_moves_and_stretches_with_the_scores() -> None:
    sums, counts = lopsided(np.random.default_rng(6))
    noise = centred(np.random.default_rng(7), 20, *sums.shape, sd=0.5)

    def ends(sums: Floats, noise: Floats) -> Floats:
        found = Resampling(len(sums)).ratios(sums, counts, noise)
        return np.array(interval(found.replicates, found.n_clusters, found.between))

    assert ends(3 * sums + 0.5 * counts, 3 * noise) == pytest.approx(3 * ends(sums, noise) + 0.5, abs=1e-6)
    assert ends(-sums, -noise)[::-1] == pytest.approx(-ends(sums, noise), abs=0.01)


def test_interval_takes_the_expanded_percentiles() -> None:
    replicates = np.linspace(0, 1, 100_001)[:, None]
    for clusters in (5, 10, 100):
        low, high = interval(replicates, clusters)
        tail = norm.cdf(-np.sqrt(clusters / (clusters - 1)) * t.ppf(0.975, clusters - 1))
        assert low[0] == pytest.approx(tail, abs=1e-6)
        assert high[0] == pytest.approx(1 - tail, abs=1e-6)
    assert interval(replicates, 10, 0.0)[0][0] == pytest.approx(0.025, abs=1e-6)
    assert interval(replicates, 10**9, confidence=0.9)[0][0] == pytest.approx(0.05, abs=1e-6)


def test_a_few_large_clusters_are_worth_fewer_than_there_are_and_reach_further() -> None:
    sizes = np.array([[13.0, 5.0, 0.0], [7.0, 5.0, 0.0], [5.0, 5.0, 0.0], [5.0, 5.0, 0.0], [4.0, 5.0, 0.0], [2.0, 5.0, 0.0]])
    effective = effective_clusters(sizes)
    assert effective[:2] == pytest.approx([36**2 / (169 + 49 + 25 + 25 + 16 + 4), 6])
    assert np.isnan(effective[2])
    assert effective_clusters(1e-200 * sizes)[0] == pytest.approx(effective[0])
    replicates = np.linspace(0, 1, 100_001)[:, None]
    low, _ = interval(replicates, 6, effective=effective[0])
    assert low[0] == pytest.approx(norm.cdf(-np.sqrt(4.5 / 3.5) * t.ppf(0.975, 3.5)), abs=1e-6)
    assert low[0] < interval(replicates, 6)[0][0] == interval(replicates, 6, effective=6.0)[0][0]
    assert np.isnan(interval(replicates, MIN_CLUSTERS - 1, effective=4.0)[0][0])


def test_no_interval_of_few_clusters_or_of_replicates_that_are_not_finite() -> None:
    replicates = np.random.default_rng(8).normal(size=(1000, 4))
    replicates[:, 1] = np.nan
    replicates[:100, 2] = np.inf
    replicates[:10, 3] = np.nan
    low, high = interval(replicates, [MIN_CLUSTERS - 1, 50, 50, 50])
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [True, True, True, False]
    kept = replicates[10:, 3]
    assert low[0:4][3] == pytest.approx(np.quantile(kept, norm.cdf(-np.sqrt(50 / 49) * t.ppf(0.975, 49))))
    assert why_none(1, "question") == "1 question: at least 5 are needed"
    assert why_none(3) == "3 clusters: at least 5 are needed"
    assert why_none(5) == ""


def test_nothing_to_divide_by_is_no_ratio() -> None:
    sums, counts = np.zeros((6, 2)), np.zeros((6, 2))
    sums[:, 1], counts[:, 1] = 2.0, 4.0
    found = Resampling(6).ratios(sums, counts, np.zeros((20, 6, 2)))
    low, high = interval(found.replicates, found.n_clusters, found.between)
    assert np.isnan([found.value[0], low[0], high[0]]).all()
    assert (found.value[1], low[1], high[1]) == pytest.approx((0.5, 0.5, 0.5))


def test_equal_seeds_draw_alike_and_nothing_to_draw_is_refused() -> None:
    assert Resampling(9, seed=1).weights.tolist() == Resampling(9, seed=1).weights.tolist()
    assert Resampling(9, seed=1).weights.tolist() != Resampling(9, seed=2).weights.tolist()
    with pytest.raises(ConfigError, match="got 0 clusters, 2,000 resamples"):
        Resampling(0)
    with pytest.raises(ConfigError, match="got 5 clusters, 0 resamples"):
        Resampling(5, resamples=0)
