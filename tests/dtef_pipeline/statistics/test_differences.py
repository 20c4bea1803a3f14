"""Differences of paired columns: interval and test by clusters, none where clusters are too few; and adjusted p-values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.false_positive_rate import equivalence_rate
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.cluster_robust import estimate_ratios
from dtef_pipeline.statistics.differences import compute_paired_statistics, places, sum_by_cluster, verdicts
from dtef_pipeline.statistics.multiplicity import holm

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
