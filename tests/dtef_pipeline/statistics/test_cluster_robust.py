"""Cluster-robust estimates, paired differences, adjusted p-values, the two-way fit: by hand, by independent definitions, coverage."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from benchmarks.false_positive_rate import equivalence_rate
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.cluster_robust import (
    count_effective_clusters,
    degrees_of_freedom,
    estimate_groups,
    estimate_ratios,
    estimate_shared_variance,
    fit_effects,
)
from dtef_pipeline.statistics.differences import compute_paired_statistics, places, sum_by_cluster, verdicts
from dtef_pipeline.statistics.multiplicity import holm
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
    found, spread = estimate_shared_variance(noise, column, cluster, sample, 3, correlation), np.sqrt((noise**2).mean(axis=1))
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


WORDS = ("higher", "lower", "equivalent", "undecided")


def test_the_difference_is_over_pairs_and_the_effect_in_deviations_of_clusters() -> None:
    sums = np.array([[0.2], [0.1], [0.6], [0.0], [0.1], [0.0]])
    counts = np.array([[2.0], [1.0], [3.0], [1.0], [1.0], [0.0]])
    row = compute_paired_statistics(sums, counts).iloc[0]
    assert (row["n_pairs"], row["n_clusters"]) == (8, 5)
    assert row["difference"] == pytest.approx(1.0 / 8)
    assert row["effect_size"] == pytest.approx(0.125 / np.std([0.1, 0.1, 0.2, 0.0, 0.1], ddof=1))
    found = estimate_ratios(sums, counts)
    assert row["p"] == pytest.approx(found.p()[0])
    assert (row["low"], row["high"]) == pytest.approx([float(end[0]) for end in found.interval()])
    assert row["low"] < row["narrow_low"] < row["difference"] < row["narrow_high"] < row["high"]
    assert row["note"] == ""


def test_four_clusters_get_neither_interval_nor_test_and_are_reported_with_the_reason() -> None:
    row = compute_paired_statistics(np.full((4, 1), 0.3), np.ones((4, 1))).iloc[0]
    assert row[["low", "high", "narrow_low", "p"]].isna().all()
    assert row["note"] == "no interval and no test: 4 clusters, at least 5 are needed"


def test_sums_by_cluster_and_column_are_those_of_plain_loops() -> None:
    clusters, columns, values = np.array([0, 2, 2, 0, 2]), np.array([1, 0, 0, 1, 1]), [0.1, 0.2, 0.4, 0.8, 1.6]
    expected = np.zeros((3, 2))
    for cluster, column, value in zip(clusters, columns, values, strict=True):
        expected[cluster, column] += value
    assert sum_by_cluster(clusters, columns, values, (3, 2)) == pytest.approx(expected)


def test_places_follow_the_text_and_not_the_order_of_rows_or_categories() -> None:
    frame = pd.DataFrame({"a": pd.Categorical(["z", "b", "z"], categories=["z", "x", "b"]), "b": ["1", "2", "1"]})
    code, labels = places(frame, ["a", "b"])
    assert code.tolist() == [1, 0, 1]
    assert labels.to_numpy().tolist() == [["b", "2"], ["z", "1"]]


class TestVerdicts:
    def of(self, **given: float) -> str:
        plain = {"difference": 0.005, "p": 0.2, "p_adjusted": 0.4, "narrow_low": -0.02, "narrow_high": 0.03, "effect_size": 0.1}
        return str(verdicts(pd.DataFrame([{**plain, **given}]), WORDS, 0.01)[0])

    def test_a_difference_that_is_found_comes_before_its_size(self) -> None:
        assert self.of(p_adjusted=0.049) == "higher"
        assert self.of(p_adjusted=0.049, difference=-0.005, narrow_low=-0.009, narrow_high=-0.001) == "lower"

    def test_equivalent_is_an_interval_within_the_margin_on_both_sides(self) -> None:
        assert self.of(narrow_low=-0.004, narrow_high=0.009) == "equivalent"
        assert self.of(narrow_low=-0.004, narrow_high=0.011) == "undecided"
        assert self.of(narrow_low=-0.011, narrow_high=0.001) == "undecided"

    def test_without_interval_and_test_nothing_is_decided(self) -> None:
        unknown = dict.fromkeys(("p", "p_adjusted", "narrow_low", "narrow_high", "effect_size"), np.nan)
        assert self.of(**unknown) == "undecided"
        assert self.of(**{**unknown, "difference": 0.0}) == "undecided"

    def test_no_difference_anywhere_is_equivalent(self) -> None:
        assert self.of(difference=0.0, p=1.0, p_adjusted=1.0, narrow_low=0.0, narrow_high=0.0) == "equivalent"


def test_a_difference_at_the_margin_is_called_equivalent_in_5_percent_of_sets() -> None:
    """Of 1,000 sets the standard error is 0.69 points; three of them are allowed on top."""
    assert equivalence_rate(0.01, sets=1_000, seed=1) < 0.05 + 0.0207
    assert equivalence_rate(0.0, sets=300, seed=2) > 0.8


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_adjustment_agrees_with_plain_loops(p: list[float]) -> None:
    least, found = 0.0, dict[int, float]()
    for place, at in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        least = max(least, p[at] * (len(p) - place))
        found[at] = min(least, 1.0)
    assert holm(p) == pytest.approx([found[at] for at in range(len(p))])


def test_unknown_ones_are_not_counted() -> None:
    adjusted = holm([0.02, np.nan, 0.03])
    assert adjusted[[0, 2]] == pytest.approx([0.04, 0.04])
    assert np.isnan(adjusted[1])
    assert len(holm([])) == 0


@pytest.mark.parametrize("p", [[-0.1], [1.1], [[0.5]]])
def test_other_values_are_refused(p: npt.ArrayLike) -> None:
    with pytest.raises(ConfigError, match="allowed: one dimension, values from 0 to 1"):
        holm(p)
