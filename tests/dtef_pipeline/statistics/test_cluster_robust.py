"""The cluster-robust estimates and the two-way fit: hand-computed values, independent definitions, coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from dtef_pipeline.statistics.cluster_robust import (
    count_effective_clusters,
    degrees_of_freedom,
    estimate_groups,
    estimate_ratios,
    fit_effects,
)
from dtef_pipeline.statistics.shared_noise import shared_variance
from tests.made.freedom import freedom_of

GD3 = (13, 7, 5, 5, 4, 2, *(1,) * 7)
"""Sizes of the batteries of a public round."""
GD7 = (14, 7, 5, 5, 2, 2, *(1,) * 19)


def test_equal_clusters_give_students_interval_of_a_mean() -> None:
    values = np.array([0.2, 0.5, 0.4, 0.9, 0.6, 0.1])[:, None]
    found = estimate_ratios(values, np.ones((6, 1)))
    low, high = found.interval()
    expected = stats.ttest_1samp(values[:, 0], 0)
    assert found.value[0] == pytest.approx(0.45)
    assert (low[0], high[0]) == pytest.approx(tuple(expected.confidence_interval()))
    assert found.p()[0] == pytest.approx(expected.pvalue)
    assert found.degrees[0] == pytest.approx(5)


@given(arrays(float, (7, 2), elements=st.floats(-3, 3)), arrays(float, (7, 2), elements=st.integers(1, 9).map(float)))
def test_the_error_of_a_mean_is_the_jackknife(sums: np.ndarray, counts: np.ndarray) -> None:
    found = estimate_ratios(sums, counts)
    for column in range(2):
        top, bottom = sums[:, column], counts[:, column]
        without = [np.delete(top, i).sum() / np.delete(bottom, i).sum() for i in range(7)]
        variance = 6 / 7 * sum((one - top.sum() / bottom.sum()) ** 2 for one in without)
        assert found.se[column] ** 2 == pytest.approx(variance, abs=1e-12)


@given(st.lists(st.integers(0, 40), min_size=2, max_size=12).filter(lambda sizes: sum(map(bool, sizes)) > 1))
def test_degrees_of_freedom_are_those_of_the_quadratic_form(sizes: list[int]) -> None:
    assert degrees_of_freedom(np.array(sizes, dtype=float)[:, None])[0] == pytest.approx(max(freedom_of(sizes), 1), rel=1e-6)


def test_columns_that_differ_alike_in_all_clusters_have_the_p_of_the_sign_test() -> None:
    """Five clusters that agree gave p = 0."""
    found = estimate_ratios(np.full((5, 1), 0.25), np.ones((5, 1)))
    assert found.p()[0] == pytest.approx(1 / 16)


def test_effective_clusters() -> None:
    assert count_effective_clusters(np.array([[2.0], [2.0], [2.0], [0.0]]))[0] == pytest.approx(3)
    assert count_effective_clusters(np.array([[3.0], [1.0]]))[0] == pytest.approx(1.6)
    assert count_effective_clusters(np.array(GD3, dtype=float)[:, None])[0] == pytest.approx(6.27, abs=0.01)


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [GD3, GD7, (6,) * 7, (1,) * 5, (1,) * 20])
@pytest.mark.parametrize("alike", [0.0, 0.5])
def test_coverage_with_batteries_of_real_sizes(sizes: tuple[int, ...], alike: float) -> None:
    """Normal scores, of which a part is shared by a battery; 4,000 surveys: a standard error of .0035."""
    rng, surveys = np.random.default_rng(3), 4_000
    counts = np.array(sizes, dtype=float)
    means = np.sqrt(alike) * rng.standard_normal((len(sizes), surveys))
    means += np.sqrt((1 - alike) / counts)[:, None] * rng.standard_normal((len(sizes), surveys))
    low, high = estimate_ratios(means * counts[:, None], np.repeat(counts[:, None], surveys, axis=1)).interval()
    assert 0.93 <= np.mean((low <= 0) & (high >= 0)) <= 0.975


def test_groups_have_the_estimates_that_each_has_alone() -> None:
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat(np.arange(5), [6, 9, 0, 6, 1]))
    top, bottom = rng.random(22), rng.integers(1, 5, 22).astype(float)
    found = estimate_groups(top, bottom, group, 5)
    assert np.isnan(found.value[2])
    for one in (0, 1, 3, 4):
        own = group == one
        alone = estimate_ratios(top[own][:, None], bottom[own][:, None])
        assert [part[one] for part in found] == pytest.approx([part[0] for part in alone], nan_ok=True)


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


def _fit(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    row, cell = np.nonzero(~np.isnan(scores))
    return fit_effects(row, cell, scores[row, cell], *scores.shape)


def test_rows_that_share_no_cell_are_of_two_components_and_a_row_without_shared_cells_has_no_effect() -> None:
    none = np.nan
    scores = [[0.8, 0.6, none, none, none], [0.4, none, none, none, none], [none, none, 0.5, 0.1, none]]
    found = _fit(np.array([*scores, [none, none, 0.3, none, none], [none, none, none, none, 0.7]]))
    assert found.component[0] == found.component[1] != found.component[2] == found.component[3]
    assert np.isnan(found.of_row[4])
    assert found.component[4] == -1


@given(st.integers(0, 10_000), st.floats(0.3, 1))
def test_it_is_the_least_squares_fit(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.random((4, 9))
    scores[rng.random(scores.shape) > share] = np.nan
    found = _fit(scores)
    row, cell = np.nonzero(~np.isnan(scores) & ((~np.isnan(scores)).sum(axis=0) > 1))
    design = np.zeros((len(row), 13))
    design[np.arange(len(row)), row] = design[np.arange(len(row)), 4 + cell] = 1
    naive = np.linalg.lstsq(design, scores[row, cell], rcond=None)[0] if len(row) else np.zeros(13)
    assert found.of_row[row] + found.of_cell[cell] == pytest.approx(design @ naive, abs=1e-9)
