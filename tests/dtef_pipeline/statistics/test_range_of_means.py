"""The range of noisy means: two means by hand, ranges by plain loops, and coverage where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from dtef_pipeline.statistics.range_of_means import Floats, MeanNoise, RangeOfMeans, range_of_means

SEED = 3


def of(means: list[float], sd: float = 1.0, center: float = 0.0, draws: int = 40_000, freedom: float = np.inf) -> RangeOfMeans:
    normal = np.random.default_rng(SEED).standard_normal((len(means), draws))
    noise = MeanNoise.drawn(sd**2 * np.eye(len(means)), freedom, normal, SEED)
    return range_of_means(np.array(means), np.full(len(means), center), noise)


def test_two_means_have_the_range_of_a_folded_normal() -> None:
    found, apart = of([0.0, 4.0]), np.sqrt(2)  # the difference of two means has the variance 2
    assert found.expected == pytest.approx(apart * np.sqrt(2 / np.pi), rel=0.01)
    assert found.p == pytest.approx(2 * ndtr(-4 / apart), abs=0.003)
    assert (found.low, found.high) == pytest.approx((apart * 0.0313, apart * 2.2414), abs=0.06)
    # The true differences at which one of 4 or more, in either direction, has a chance of 2.5 % and 97.5 %, and the mean range at these.
    for chance, end in ((0.025, found.excess_low), (0.975, found.excess_high)):
        k = brentq(lambda at, wanted=chance: ndtr(at - 4 / apart) + ndtr(-at - 4 / apart) - wanted, 0, 9)
        folded = apart * (np.sqrt(2 / np.pi) * np.exp(-(k**2) / 2) + k * (1 - 2 * ndtr(-k)))
        assert end == pytest.approx(folded - found.expected, abs=0.2)


def test_few_degrees_of_freedom_widen_what_chance_can_do_but_not_what_it_does_on_average() -> None:
    known, guessed = of([0.0, 3.0, 1.0]), of([0.0, 3.0, 1.0], freedom=5)
    assert guessed.expected == known.expected
    assert guessed.p > known.p
    assert guessed.high > known.high
    assert guessed.excess_high > known.excess_high


def test_a_range_below_the_expected_one_has_an_interval_that_begins_there() -> None:
    found = of([0.0, 0.5, 1.0])
    assert found.excess_low == pytest.approx(1 - found.expected)
    assert found.excess_high > 0
    assert of([0.0, 0.0], sd=0.0)[:3] == (0, 0, 0)
    assert of([0.0, 0.0], sd=0.0).p == 1


def test_shift_and_unit_change_nothing() -> None:
    first, moved = of([0.1, 0.4, 0.9, 0.2]), of([1.1, 1.4, 1.9, 1.2], center=1.0)
    assert moved == pytest.approx(first, abs=1e-9)
    assert np.delete(of([1, 4, 9, 2], sd=10), 3) == pytest.approx(10 * np.delete(first, 3), rel=1e-9)


@pytest.mark.parametrize("true", [[0.0] * 8, [3.0] + [0.0] * 7, [2.0] * 4 + [0.0] * 4, [0.0, 4.0]])
def test_intervals_cover_the_excess_that_repetitions_show_on_average(true: list[float]) -> None:
    """Best and worst are chosen by the data: the naive interval of the largest difference would lie too high."""
    rng = np.random.default_rng(4)
    center, repetitions = np.zeros(len(true)), 150
    noise = MeanNoise.drawn(np.eye(len(true)), np.inf, rng.standard_normal((len(true), 2_000)), SEED)

    def mean_range(of: Floats) -> float:
        return float(np.ptp(of[:, None] + rng.standard_normal((len(of), 20_000)), axis=0).mean())

    excess = mean_range(np.array(true)) - mean_range(center)
    found = [range_of_means(np.array(true) + rng.standard_normal(len(true)), center, noise) for _ in range(repetitions)]
    covered = np.mean([one.excess_low - 0.02 <= excess <= one.excess_high + 0.02 for one in found])
    assert covered >= 0.90  # 150 sets at a true 95 %: 99 runs in 100 show 90 %; 500 sets gave 94-99 %
    if not any(true):
        assert np.mean([one.p < 0.05 for one in found]) <= 0.10
