"""Kendall's tau of two orders, and its interval over players."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.ranks import order_agreement

SCORES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=25)


@given(SCORES)
def test_tau_is_scipy_s(pairs: list[tuple[int, int]]) -> None:
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    assert order_agreement(first, second).tau == pytest.approx(_or_none(kendalltau(first, second).statistic))


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


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
