"""Wilson intervals and pass@k: by hand, by their definitions in exact numbers, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.cluster_robust import estimate_ratios
from dtef_pipeline.statistics.proportions import compute_unit_interval, compute_wilson_interval, estimate_pass_at_k

Z = 1.959963984540054


@pytest.mark.parametrize(
    ("successes", "trials", "ends"),
    [
        (9, 10, (0.5958499732047615, 0.9821237869049271)),
        (10, 10, (0.7224672001371107, 1.0)),
        (0, 10, (0.0, 0.2775327998628893)),
    ],
)
def test_wilson_intervals_of_published_counts(successes: int, trials: int, ends: tuple[float, float]) -> None:
    assert tuple(map(float, compute_wilson_interval(successes, trials))) == pytest.approx(ends, abs=1e-9)


@given(st.integers(1, 5_000), st.data())
def test_the_ends_are_the_proportions_that_a_score_test_just_keeps(trials: int, data: st.DataObject) -> None:
    """The definition that the formula solves: |p - q| = z sqrt(q (1 - q) / n)."""
    successes = data.draw(st.integers(0, trials))
    low, high = map(float, compute_wilson_interval(successes, trials))
    share = successes / trials
    assert 0 <= low <= share <= high <= 1

    def excess(q: float) -> float:
        return abs(share - q) - Z * sqrt(q * (1 - q) / trials)

    if successes:
        assert low == pytest.approx(brentq(excess, 1e-12, min(share, 1 - 1e-9)), abs=1e-6)
    if successes < trials:
        assert high == pytest.approx(brentq(excess, max(share, 1e-9), 1 - 1e-12), abs=1e-6)


@pytest.mark.parametrize(("n", "c", "k", "chance"), [(5, 2, 1, 0.4), (5, 2, 2, 0.7), (5, 5, 3, 1.0), (20, 0, 10, 0.0)])
def test_pass_at_k_by_hand(n: int, c: int, k: int, chance: float) -> None:
    assert float(estimate_pass_at_k(n, c, k)) == pytest.approx(chance)


@given(st.integers(1, 300), st.integers(1, 100), st.data())
def test_pass_at_k_is_its_definition_in_exact_numbers(n: int, k: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, n))
    found = float(estimate_pass_at_k(n, c, k))
    if n < k:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(float(1 - Fraction(comb(n - c, k), comb(n, k))), abs=1e-12)


@pytest.mark.parametrize(("n", "c", "k"), [(5, 6, 1), (5, -1, 1), (5, 2, 0)])
def test_impossible_counts_are_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ConfigError, match="allowed: "):
        estimate_pass_at_k(n, c, k)
    if k:
        with pytest.raises(ConfigError, match=r"interval of a proportion: got .* allowed: from 0"):
            compute_wilson_interval(c, n)


def test_a_mean_of_scores_that_differ_has_the_t_interval_on_the_logit_scale() -> None:
    scores = np.array([0.1, 0.5, 0.9, 0.7, 0.8])
    low, high = compute_unit_interval(estimate_ratios(scores[:, None], np.ones((5, 1))))
    middle, reach = np.log(0.6 / 0.4), stats.t.ppf(0.975, 4) * stats.sem(scores) / 0.24
    ends = [1 / (1 + np.exp(-(middle + side * reach))) for side in (-1, 1)]
    assert (low[0], high[0]) == pytest.approx(tuple(ends))


def test_scores_that_are_alike_do_not_rule_out_that_others_fail() -> None:
    """Six scores of .9 had no interval, or one of no width."""
    nearly = [0.9, 0.9, 0.9, 0.91, 0.89, 0.9]
    found = estimate_ratios(np.array([[0.9] * 6, nearly]).T, np.ones((6, 2)))
    low, high = compute_unit_interval(found)
    # One more of 0 moves the mean by .9 / 7, which is further than the interval is wide.
    wilson = [float(end) for end in compute_wilson_interval(5.4, 6)]
    assert (low.tolist(), high.tolist()) == (pytest.approx([wilson[0]] * 2), pytest.approx([wilson[1]] * 2))
    assert np.isnan(compute_unit_interval(estimate_ratios(np.ones((4, 1)), np.ones((4, 1))))[0]).all()


def drawn_scores(world: str, size: tuple[int, int], rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Scores and their expected value."""
    if world == "passed":
        return (rng.random(size) < 0.8).astype(float), 0.8
    if world == "rarely failed":
        return np.where(rng.random(size) < 0.15, 0.1, 0.9), 0.78
    if world == "near 1":
        return rng.beta(4, 0.5, size), 4 / 4.5
    return np.clip(rng.normal(0.7, 0.15, size), 0, 1), 0.6989


@pytest.mark.thorough
@pytest.mark.parametrize("n", [5, 8, 12])
@pytest.mark.parametrize("world", ["passed", "rarely failed", "near 1", "normal"])
def test_intervals_of_few_scores_hold_the_truth(world: str, n: int) -> None:
    """Of 5 to 12 scores the t interval alone holds .55 to .93 of all truths but those of normal scores."""
    scores, truth = drawn_scores(world, (n, 2_000), np.random.default_rng(n))
    found = estimate_ratios(scores, np.ones(scores.shape))
    (low, high), plain = compute_unit_interval(found), found.interval()
    assert ((low <= truth) & (truth <= high)).mean() > 0.93
    if world == "normal":
        assert np.median(high - low) < 1.05 * np.median(plain[1] - plain[0])
