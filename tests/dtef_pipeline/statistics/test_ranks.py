"""Places among numbers, in which rounding tells nobody apart; Kendall's tau of two orders, and its interval over players."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.ranks import order_agreement, rank_bounds, rank_bounds_of_means, rank_numbers
from tests.architecture import sources
from tests.conftest import ROOT

NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.5, 0.7, 0.6], [3, 1, 2]),
        ([0.5, 0.7, 0.5, 0.7], [3, 1, 3, 1]),
        ([0.1 + 0.2, 0.4, 0.3, NAN], [2, 1, 2, NAN]),  # 0.1 + 0.2 is not 0.3
        ([1e-17, 0.0, 0.2], [2, 2, 1]),
        ([-np.inf, 0.2, -np.inf], [2, 1, 2]),
        ([5e8 + 0.1, 5e8, 7e8], [2, 2, 1]),
        ([0.3, 0.3 + 1e-6], [2, 1]),
        ([NAN, NAN], [NAN, NAN]),
        ([], []),
    ],
)
def test_what_rounding_tells_apart_shares_a_place(values: list[float], expected: list[float]) -> None:
    np.testing.assert_array_equal(rank_numbers(values), expected)


def test_the_smallest_can_be_first_and_groups_are_ranked_by_themselves() -> None:
    np.testing.assert_array_equal(rank_numbers([0.5, 0.7, 0.6], highest_first=False), [1, 3, 2])
    np.testing.assert_array_equal(rank_numbers([0.5, 0.7, 0.5, NAN, 0.6], [1, 0, 0, 1, 1]), [2, 1, 2, NAN, 1])
    np.testing.assert_array_equal(rank_numbers([[0.5, 0.7], [0.7, 0.5]]), [[2, 1], [1, 2]])


def test_the_order_of_addition_and_of_rows_does_not_matter() -> None:
    random = np.random.default_rng(1)
    scores = random.random(40)
    means = np.array([scores[random.permutation(40)].sum() / 40 for _ in range(60)])
    assert len(set(means.tolist())) > 1
    assert set(rank_numbers(means).tolist()) == {1.0}
    values, group = random.integers(0, 9, 50) / 9, random.integers(0, 3, 50)
    alike = [values[group == own] for own in group]
    naive = [1 + np.count_nonzero(own > value) for value, own in zip(values, alike, strict=True)]
    np.testing.assert_array_equal(rank_numbers(values, group), naive)


def test_places_are_given_nowhere_else() -> None:
    other = re.compile(r"\.rank\(|rankdata|\brank\(\) OVER", re.IGNORECASE)
    assert [name for name, path in sources(ROOT) if other.search(path.read_text(encoding="utf-8"))] == []


def test_bounds_count_the_models_that_are_better_and_worse() -> None:
    # 0 beats 2 and 3, 1 beats 3: of 0 and 1, and of 1 and 2, nothing is known.
    found = rank_bounds(np.array([0, 0, 1]), np.array([2, 3, 3]), 4)
    assert (found.low.tolist(), found.high.tolist()) == ([1, 1, 2, 3], [2, 3, 4, 4])


def test_models_far_apart_have_one_rank_and_those_on_few_clusters_every_rank() -> None:
    rng = np.random.default_rng(1)
    level = rng.random((12, 1))
    means = np.hstack([level + 0.5, level, level + 0.25]) + rng.normal(0, 0.02, (12, 3))
    counts = np.ones((12, 4))
    counts[4:, 3] = 0
    found = rank_bounds_of_means(np.hstack([means, level]) * counts, counts)
    assert (found.low.tolist(), found.high.tolist()) == ([1, 3, 2, 1], [2, 4, 3, 4])
    alone = rank_bounds_of_means(means[:, :1], counts[:, :1])
    assert (alone.low.tolist(), alone.high.tolist()) == ([1], [1])


SCORES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=25)


@given(SCORES)
def test_tau_is_scipy_s(pairs: list[tuple[int, int]]) -> None:
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    tau = kendalltau(first, second).statistic
    assert order_agreement(first, second).tau == pytest.approx(None if np.isnan(tau) else tau)


@given(SCORES)
def test_a_reversed_order_negates_tau_and_turns_the_interval(pairs: list[tuple[int, int]]) -> None:
    first, second = (np.array([pair[side] for pair in pairs], dtype=float) for side in (0, 1))
    one, other = order_agreement(first, second), order_agreement(first, -second)
    assert other.tau == pytest.approx(None if one.tau is None else -one.tau)
    assert (other.low is None) == (one.low is None)
    if one.low is not None:
        assert (other.low, other.high) == pytest.approx((-one.high, -one.low))  # type: ignore[operator]


def test_players_without_a_score_are_left_out() -> None:
    assert order_agreement([1, 2, np.nan, 3], [1, 2, 3, np.nan])._asdict() == order_agreement([1, 2], [1, 2])._asdict()


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ([1], [1], "at least 2 players"),
        ([1, 1, 1], [1, 2, 3], "all players at the same place"),
        ([1, 2, 3, 4], [1, 3, 2, 4], "at least 8 are needed"),
        (range(12), range(12), "no two players differs"),
    ],
)
def test_too_little_for_an_interval_says_why(first: list[float], second: list[float], reason: str) -> None:
    found = order_agreement(list(first), list(second))
    assert found.low is None
    assert reason in found.reason


def test_intervals_hold_the_truth() -> None:
    """Two normal columns with correlation r have tau 2 asin(r) / pi (Greiner)."""
    rng, held = np.random.default_rng(5), []
    for _ in range(300):
        first = rng.normal(size=25)
        found = order_agreement(first, 0.6 * first + 0.8 * rng.normal(size=25))
        assert found.low is not None
        assert found.high is not None
        held.append(found.low <= 2 * np.arcsin(0.6) / np.pi <= found.high)
    assert 0.92 < np.mean(held) < 0.995


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ConfigError, match="two columns of one length"):
        order_agreement([1, 2], [1, 2, 3])
