"""Studentised intervals agree with a naive loop, and reach further on the side of large errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from dtef_pipeline.statistics.resampling import Floats, Resampling, tempered
from dtef_pipeline.statistics.shared_noise import ClusterNoise
from dtef_pipeline.statistics.studentised import studentised_interval


def skewed(rng: np.random.Generator, clusters: int = 9, columns: int = 3) -> tuple[Floats, Floats]:
    bottom = rng.integers(1, 8, size=(clusters, columns)) * rng.uniform(0.4, 0.7, size=(clusters, columns))
    return bottom * rng.gamma(1.0, 0.1, size=(clusters, columns)), bottom


def naive(top: list[float], bottom: list[float], known: float, resamples: int) -> tuple[float, float]:
    """The interval of one column by writing the drawn clusters out: the same formulas, one resample after the other."""
    clusters = len(top)
    alike = sum(bottom) ** 2 / sum(each**2 for each in bottom)  # clusters of one size that would be worth as much

    def ratio_and_error(drawn: list[int]) -> tuple[float, float]:
        total = sum(bottom[c] for c in drawn)
        ratio = sum(top[c] for c in drawn) / total
        squares = sum((top[c] - ratio * bottom[c]) ** 2 for c in drawn)
        return ratio, float(np.sqrt(squares * alike / (alike - 1))) / total

    value, total = sum(top) / sum(bottom), sum(bottom)
    noise = known / total**2
    left_out = [(a - value * b) / (total - b) for a, b in zip(top, bottom, strict=True)]
    variance = (clusters - 1) / clusters * sum(u * u for u in left_out)
    error = float(np.sqrt(tempered(np.array(variance), np.array(noise), clusters)))
    scale = max(error / 2, noise**0.5)
    off = []
    for weights in Resampling(clusters, resamples=resamples).weights.astype(int):
        ratio, own = ratio_and_error([c for c in range(clusters) for _ in range(weights[c])])
        slope = 1 / np.sqrt(ratio**2 + scale**2)
        off.append((np.arcsinh(ratio / scale) - np.arcsinh(value / scale)) / (slope * own))
    tail = norm.cdf(-1.959963984540054 * np.sqrt(alike / (alike - 1)))
    step = error / np.sqrt(value**2 + scale**2)
    ends = [scale * np.sinh(np.arcsinh(value / scale) - np.quantile(off, p) * step) for p in (1 - tail, tail)]
    return float(ends[0]), float(ends[1])


def test_it_agrees_with_a_naive_loop_over_drawn_clusters() -> None:
    rng = np.random.default_rng(1)
    top, bottom = skewed(rng)
    for sd in (0.01, 0.2):  # less and more than the clusters differ by
        noise = rng.normal(0, sd, size=(20, *top.shape))
        low, high = studentised_interval(top, bottom, ClusterNoise(noise), resamples=60)
        for column in range(3):
            known = sum(float(np.mean(noise[:, cluster, column] ** 2)) for cluster in range(9))
            wanted = naive(top[:, column].tolist(), bottom[:, column].tolist(), known, 60)
            assert (low[column], high[column]) == pytest.approx(wanted, rel=1e-7)


def test_it_stretches_with_the_numerators_and_shrinks_with_the_denominators() -> None:
    rng = np.random.default_rng(2)
    top, bottom = skewed(rng)
    noise = rng.normal(0, 0.05, size=(20, *top.shape))
    ends = np.array(studentised_interval(top, bottom, ClusterNoise(noise)))
    assert np.array(studentised_interval(3 * top, bottom, ClusterNoise(3 * noise))) == pytest.approx(3 * ends)
    assert np.array(studentised_interval(top, 4 * bottom, ClusterNoise(noise))) == pytest.approx(ends / 4)


def test_a_column_in_few_clusters_has_the_interval_it_has_alone() -> None:
    top, bottom = skewed(np.random.default_rng(3), clusters=40, columns=2)
    there = np.sort(np.random.default_rng(4).choice(40, 7, replace=False))
    absent = np.setdiff1d(np.arange(40), there)
    top[absent, 1] = bottom[absent, 1] = 0
    together, alone = studentised_interval(top, bottom), studentised_interval(top[there, 1:], bottom[there, 1:])
    assert (together[0][1], together[1][1]) == pytest.approx((alone[0][0], alone[1][0]))


def test_the_end_on_the_side_of_large_errors_reaches_further() -> None:
    top, bottom = skewed(np.random.default_rng(5), clusters=12, columns=20)
    value = top.sum(axis=0) / bottom.sum(axis=0)
    low, high = studentised_interval(top, bottom)
    assert (high - value > value - low).all()
    assert (low > 0).all()


def test_an_error_of_noise_alone_has_an_interval_that_reaches_below_0() -> None:
    rng = np.random.default_rng(6)
    top = rng.normal(0, 0.1, size=(30, 1))
    low, high = studentised_interval(top, np.ones((30, 1)), ClusterNoise(rng.normal(0, 0.1, size=(20, 30, 1))))
    assert -0.2 < low[0] < min(0, top.mean()) < max(0, top.mean()) < high[0] < 0.2


def test_equal_clusters_leave_no_width_and_few_none_at_all() -> None:
    low, high = studentised_interval(np.full((6, 2), 0.3) * [1, 0], np.full((6, 2), 7.0))
    for end in (low, high):
        assert end == pytest.approx([0.3 / 7, 0])
    for top, bottom in (skewed(np.random.default_rng(7), clusters=4), (np.zeros((6, 3)), np.zeros((6, 3)))):
        assert np.isnan(studentised_interval(top, bottom)).all()
    assert studentised_interval(np.zeros((6, 0)), np.zeros((6, 0)))[0].shape == (0,)


def test_equal_seeds_give_equal_ends() -> None:
    top, bottom = skewed(np.random.default_rng(8))
    first, again, other = (studentised_interval(top, bottom, seed=seed)[1].tolist() for seed in (1, 1, 2))
    assert first == again != other
