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
    Ratios,
    Resampling,
    Spread,
    between,
    effective_clusters,
    interval,
    product,
    tempered,
    why_none,
)
from dtef_pipeline.statistics.shared_noise import ClusterNoise


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
    assert found.value == pytest.approx(sums.sum(axis=0) / counts.sum(axis=0))
    influence = (sums - found.value * counts) / counts.sum(axis=0)
    variance = between(influence, counts)
    stretched = np.sqrt(variance.variance * (1 - 1 / variance.effective) / (influence**2).sum(axis=0))
    for resample, weights in enumerate(resampling.weights.astype(int)):
        drawn = [cluster for cluster, times in enumerate(weights) for _ in range(times)]
        for column, value in enumerate(found.value):
            ratio = sum(sums[c, column] for c in drawn) / sum(counts[c, column] for c in drawn)
            expected = value + (ratio - value) * stretched[column]
            assert found.replicates[resample, column] == pytest.approx(expected, abs=1e-12)
    equal = resampling.ratios(sums, np.ones(sums.shape)).replicates
    assert equal == pytest.approx(resampling.weights @ sums / len(sums))


def test_variance_is_that_between_clusters_and_noise_is_not_counted_twice() -> None:
    rng = np.random.default_rng(2)
    sums, counts = lopsided(rng, clusters=60, columns=2)
    noise = centred(rng, 20, 60, 2, sd=1.5)
    found = Resampling(60, resamples=20_000).ratios(sums, counts, ClusterNoise(noise))
    for column in range(2):
        total = counts[:, column].sum()
        ratio = sums[:, column].sum() / total
        sizes = zip(sums[:, column], counts[:, column], strict=True)
        left_out = [((a - ratio * b) / (total - b)) ** 2 for a, b in sizes]
        apart = 59 / 60 * sum(left_out)
        drawn = sum(float(np.mean(noise[:, cluster, column] ** 2)) for cluster in range(60)) / total**2
        assert drawn < apart
        kept = 1 - 1 / found.spread.effective[column]
        assert found.replicates[:, column].var() == pytest.approx((apart - drawn) * kept + drawn, rel=0.08)
        assert found.spread.between[column] == pytest.approx((apart - drawn) / (apart - drawn + drawn / kept), abs=0.02)


def test_where_clusters_differ_by_less_than_the_noise_the_noise_alone_is_left_and_counts_as_five_clusters() -> None:
    noise = centred(np.random.default_rng(3), 20, 30, 1, sd=2.0)
    found = Resampling(30, resamples=20_000).ratios(np.full((30, 1), 5.0), np.full((30, 1), 10.0), ClusterNoise(noise))
    assert found.spread.between == pytest.approx([0.0], abs=1e-12)
    known = (noise**2).mean(axis=0).sum() / 300**2
    assert found.replicates.var() == pytest.approx(known * 5 / (29 + 5), rel=0.05)


def test_variance_that_the_noise_finds_too_small_is_a_mean_of_both() -> None:
    """6 clusters, 5 degrees of freedom: as much weight as the noise has; 46 clusters: nine times as much."""
    assert tempered(np.array([1.0, 1.0, 4.0]), np.array([3.0, 3.0, 3.0]), [6, 46, 6]) == pytest.approx([2.0, 1.2, 4.0])


def test_a_single_cluster_keeps_its_noise_and_its_place_among_others() -> None:
    noise = centred(np.random.default_rng(3), 20, 6, 2, sd=0.5)
    sums, counts = np.full((6, 2), 5.0), np.full((6, 2), 10.0)
    sums[1:, 0] = counts[1:, 0] = noise[:, 1:, 0] = 0
    drawn = Resampling(6).ratios(sums, counts, ClusterNoise(noise)).replicates[:, 0]
    drawn = drawn[np.isfinite(drawn)]
    assert drawn.var() == pytest.approx((noise[:, 0, 0] ** 2).mean() / 100, rel=0.1)


def test_equal_noise_moves_two_columns_together() -> None:
    rng = np.random.default_rng(4)
    noise = np.repeat(centred(rng, 20, 30, 1, sd=2.0), 2, axis=2)
    replicates = Resampling(30).ratios(np.full((30, 2), 5.0), np.full((30, 2), 10.0), ClusterNoise(noise)).replicates
    assert replicates[:, 0] == pytest.approx(replicates[:, 1], rel=1e-12)


def test_a_column_in_few_clusters_has_the_interval_it_would_have_alone() -> None:
    rng = np.random.default_rng(5)
    sums, counts = lopsided(rng, clusters=200, columns=2)
    sums[8:, 1] = counts[8:, 1] = 0
    together = Resampling(200, resamples=20_000).ratios(sums, counts)
    alone = Resampling(8, resamples=20_000).ratios(sums[:8, 1:], counts[:8, 1:])
    assert together.spread.n_clusters.tolist() == [200, 8]
    spread = np.nanstd(together.replicates[:, 1])
    assert spread == pytest.approx(alone.replicates.std(), rel=0.1)


def test_interval_moves_and_stretches_with_the_scores() -> None:
    sums, counts = lopsided(np.random.default_rng(6))
    noise = centred(np.random.default_rng(7), 20, *sums.shape, sd=0.5)

    def ends(sums: Floats, noise: Floats) -> Floats:
        return np.array(interval(Resampling(len(sums)).ratios(sums, counts, ClusterNoise(noise))))

    assert ends(3 * sums + 0.5 * counts, 3 * noise) == pytest.approx(3 * ends(sums, noise) + 0.5, abs=1e-6)
    assert ends(-sums, -noise)[::-1] == pytest.approx(-ends(sums, noise), abs=0.01)


def numbers(
    replicates: Floats, clusters: float, *, value: float = 0.0, share: float = 1.0, acceleration: float = 0.0
) -> Ratios:
    """Numbers whose `replicates` (resamples, columns) are known, of clusters of one size."""
    columns = replicates.shape[1]
    known = (np.full(columns, part, dtype=np.float64) for part in (share, clusters, acceleration, 0))
    return Ratios(np.full(columns, value), replicates, Spread(np.full(columns, int(clusters)), *known))


NORMAL = norm.ppf((np.arange(20_000) + 0.5) / 20_000)[:, None]


def test_interval_is_that_of_student_where_replicates_are_normal() -> None:
    for clusters in (5, 10, 100):
        spread = np.sqrt(clusters / (clusters - 1)) * t.ppf(0.975, clusters - 2)
        low, high = interval(numbers(NORMAL + 3, clusters, value=3))
        assert (low[0], high[0]) == pytest.approx((3 - spread, 3 + spread), abs=2e-3)
    assert interval(numbers(NORMAL, 10, share=0.0))[0][0] == pytest.approx(-1.96, abs=2e-3)
    assert interval(numbers(NORMAL, 10**9), confidence=0.9)[0][0] == pytest.approx(-1.645, abs=2e-3)


def test_interval_of_a_skewed_number_reaches_further_where_clusters_lie_far_off() -> None:
    a = 0.1
    low, high = interval(numbers(NORMAL, 10**9, acceleration=2 * a))
    assert low[0] == pytest.approx(a + (a - 1.96) / (1 - a * (a - 1.96)), abs=2e-3)
    assert high[0] == pytest.approx(a + (a + 1.96) / (1 - a * (a + 1.96)), abs=1e-2)
    sums = np.ones((12, 2))
    sums[0] = 9, -7
    found = Resampling(12).ratios(sums, np.ones((12, 2)))
    away = sums - sums.mean(axis=0)
    assert found.spread.acceleration == pytest.approx((away**3).sum(axis=0) / (6 * (away**2).sum(axis=0) ** 1.5))
    low, high = interval(found)
    assert high[0] - found.value[0] > found.value[0] - low[0]
    assert high[1] - found.value[1] < found.value[1] - low[1]


def test_few_clusters_reach_beyond_the_farthest_of_them_where_student_does() -> None:
    sums = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    low, high = interval(Resampling(5, resamples=20_000).ratios(sums, np.ones((5, 1))))
    assert high[0] - low[0] == pytest.approx(2 * t.ppf(0.975, 3) * np.sqrt(2.5 / 5), rel=0.05)
    assert low[0] < 1 < 5 < high[0]


def test_a_few_large_clusters_are_worth_fewer_than_there_are() -> None:
    sizes = np.array([[13.0, 5.0, 0.0], [7.0, 5.0, 0.0], [5.0, 5.0, 0.0], [5.0, 5.0, 0.0], [4.0, 5.0, 0.0], [2.0, 5.0, 0.0]])
    effective = effective_clusters(sizes)
    assert effective[:2] == pytest.approx([36**2 / (169 + 49 + 25 + 25 + 16 + 4), 6])
    assert np.isnan(effective[2])
    assert effective_clusters(1e-200 * sizes)[0] == pytest.approx(effective[0])
    influence = np.array([0.4, -0.1, -0.1, -0.1, 0.0, -0.1])[:, None]
    left_out = [u * 36 / (36 - size) for u, size in zip(influence[:, 0], sizes[:, 0], strict=True)]
    found = between(influence, sizes[:, :1])
    assert found.variance == pytest.approx([5 / 6 * sum(u * u for u in left_out)])
    assert found.effective == pytest.approx(effective[:1])
    assert between(influence, sizes[:, 1:2]).variance == pytest.approx(6 / 5 * (influence**2).sum(axis=0))


def test_leaving_each_cluster_out_is_what_the_variance_between_them_says() -> None:
    """The jackknife of a ratio, cluster by cluster."""
    sums, counts = lopsided(np.random.default_rng(11), clusters=9, columns=1)
    value, total = sums.sum() / counts.sum(), counts.sum()
    without = [(sums.sum() - a) / (total - b) for a, b in zip(sums[:, 0], counts[:, 0], strict=True)]
    found = between((sums - value * counts) / total, counts)
    assert found.variance[0] == pytest.approx(8 / 9 * sum((one - value) ** 2 for one in without))


def test_no_interval_of_few_clusters_or_of_replicates_that_are_not_finite() -> None:
    replicates = np.random.default_rng(8).normal(size=(1000, 3))
    replicates[:, 0] = np.nan
    replicates[:100, 1] = np.inf
    replicates[:10, 2] = np.nan
    low, high = interval(numbers(replicates, 50))
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [True, True, False]
    reach = np.sqrt(50 / 49) * t.ppf(0.975, 48) / norm.ppf(0.975)
    assert low[2] == pytest.approx(reach * np.quantile(replicates[10:, 2], 0.025))
    assert np.isnan(interval(numbers(replicates, MIN_CLUSTERS - 1))).all()
    assert why_none(1, "question") == "no interval: 1 question, at least 5 are needed"
    assert why_none(3) == "no interval: 3 clusters, at least 5 are needed"
    assert why_none(5) == ""


def test_nothing_to_divide_by_is_no_ratio() -> None:
    sums, counts = np.zeros((6, 2)), np.zeros((6, 2))
    sums[:, 1], counts[:, 1] = 2.0, 4.0
    found = Resampling(6).ratios(sums, counts, ClusterNoise(np.zeros((20, 6, 2))))
    low, high = interval(found)
    assert np.isnan([found.value[0], low[0], high[0]]).all()
    assert (found.value[1], low[1], high[1]) == pytest.approx((0.5, 0.5, 0.5))


def test_equal_seeds_draw_alike_and_nothing_to_draw_is_refused() -> None:
    assert Resampling(9, seed=1).weights.tolist() == Resampling(9, seed=1).weights.tolist()
    assert Resampling(9, seed=1).weights.tolist() != Resampling(9, seed=2).weights.tolist()
    with pytest.raises(ConfigError, match="got 0 clusters, 2,000 resamples"):
        Resampling(0)
    with pytest.raises(ConfigError, match="got 5 clusters, 0 resamples"):
        Resampling(5, resamples=0)
