"""Evidence of drift equals its definition, and keeps the promised rate of false drifts however nights resemble each other."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.signal import lfilter
from scipy.stats import binom, nct, norm, t

from dtef_pipeline.drift.evidence import (
    ALPHA,
    BASELINE,
    HALF_BY,
    LONGEST_OUTAGE,
    PRIOR_VARIANCE,
    Dependence,
    Evidence,
    build_dependences,
    estimate_shift,
    evidence,
    log_bayes_factor,
    log_e,
    log_weight,
)

Floats = npt.NDArray[np.float64]


def wandering(seed: int, sets: int, nights: int, lag: float, degrees: float = math.inf) -> Floats:
    """(sets, nights) with a standard deviation of .02 and an autocorrelation of `lag`."""
    rng = np.random.default_rng(seed)
    drawn = rng.normal(size=(sets, nights)) if math.isinf(degrees) else rng.standard_t(degrees, (sets, nights))
    drawn = drawn if math.isinf(degrees) else drawn / math.sqrt(degrees / (degrees - 2))
    drawn[:, 1:] *= math.sqrt(1 - lag**2)
    return np.asarray(0.02 * lfilter([1.0], [1.0, -lag], drawn))


def marginal_likelihood(means: Floats, covariance: Floats) -> float:
    """Log density of Gaussian means with this covariance times an unknown variance, over a flat prior of the mean and 1 / sd of the sd."""
    inverse, one = np.linalg.inv(covariance), np.ones(len(means))
    size = one @ inverse @ one
    residual = means - one @ inverse @ means / size
    determinant = np.linalg.slogdet(covariance)[1] + math.log(size)
    return float(-determinant / 2 - (len(means) - 1) / 2 * math.log(residual @ inverse @ residual))


def e_by_definition(means: Floats, most: float) -> float:
    n = len(means)
    still, stepped = [], []
    for lag, share in build_dependences(most):
        own = share * lag ** np.abs(np.subtract.outer(np.arange(n), np.arange(n))) + (1 - share) * np.eye(n)
        still.append(math.exp(marginal_likelihood(means, own)))
        total = 0.0
        for change in range(1, n):
            step = (np.arange(n) >= change).astype(float)
            shifted = math.exp(marginal_likelihood(means, own + PRIOR_VARIANCE * np.outer(step, step)))
            total += HALF_BY / ((change + HALF_BY - 1) * (change + HALF_BY)) * shifted
        stepped.append(total + HALF_BY / (n - 1 + HALF_BY) * still[-1])
    return sum(stepped) / len(stepped) / max(still)


class TestDefinition:
    def test_of_four_snapshots_is_what_a_hand_calculation_says(self) -> None:
        """Nights 0, .02, .10, .12: sum of squares .0104; within the sides of a step at night 2, 3, 4 it is .0056, .0004, .0056."""
        # (1 + 25 m)^-1/2 [(1 + r) / (1 + r / (1 + 25 m))]^(3/2): m = 3/4, r = 6/7 at the ends; m = 1, r = 25 in the middle
        ends = 19.75**-0.5 * ((13 / 7) / (1 + 6 / 7 / 19.75)) ** 1.5
        middle = 26**-0.5 * (26 / (1 + 25 / 26)) ** 1.5
        # Prior weights 1/6, 5/42, 5/56 of a step at night 2, 3, 4, and 5/8 of a later one.
        expected = ends / 6 + middle * 5 / 42 + ends * 5 / 56 + 5 / 8
        found = math.exp(log_e(np.array([0.0, 0.02, 0.10, 0.12]), np.full(4, 1e-9), np.array([4]), build_dependences(0))[0])
        assert found == pytest.approx(expected, rel=1e-9)
        assert found == pytest.approx(1.888, abs=0.001)

    @given(st.integers(0, 10**6), st.integers(3, 9), st.floats(-0.2, 0.2), st.sampled_from([0.0, 0.5, 1.0]))
    def test_is_the_ratio_of_marginal_likelihoods_of_all_ways(
        self, seed: int, snapshots: int, shift: float, share: float
    ) -> None:
        means = np.random.default_rng(seed).normal(0, 0.03, snapshots)
        means[snapshots // 2 :] += shift
        found = log_e(means, np.full(snapshots, 1e-9), np.arange(2, snapshots + 1), build_dependences(share))
        expected = [math.log(e_by_definition(means[:n], share)) for n in range(2, snapshots + 1)]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-5)  # two snapshots may be nearly equal

    @pytest.mark.parametrize(("n1", "n2", "value"), [(5, 1, 0.4), (5, 3, 2.5), (20, 10, -3.0), (80, 20, 6.0)])
    def test_bayes_factor_is_the_noncentral_t_averaged_over_its_prior(self, n1: int, n2: int, value: float) -> None:
        effective, degrees = n1 * n2 / (n1 + n2), n1 + n2 - 2
        sd = math.sqrt(PRIOR_VARIANCE)
        integral, _ = quad(
            lambda d: nct.pdf(value, degrees, d * math.sqrt(effective)) * norm.pdf(d, 0, sd),
            -12 * sd,
            12 * sd,
            points=[value / math.sqrt(effective)],
            limit=400,
        )
        expected = integral / t.pdf(value, degrees)
        found = float(np.exp(log_bayes_factor(value**2 / degrees, effective, n1 + n2)))
        assert found == pytest.approx(expected, rel=1e-6)


class TestPath:
    def test_after_a_snapshot_does_not_depend_on_later_ones(self) -> None:
        generator = np.random.default_rng(2)
        means, spread = generator.normal(0, 0.02, 60), generator.uniform(0, 0.04, 60)
        whole = evidence(means, spread).log10_e
        for n in (6, 17, 59):
            np.testing.assert_allclose(evidence(means[:n], spread[:n]).log10_e, whole[:n], rtol=0, atol=1e-9)

    @given(st.integers(0, 10**6), st.floats(-100, 100), st.booleans())
    def test_neither_where_the_scores_lie_nor_their_sign_matters(self, seed: int, by: float, turned: bool) -> None:
        means = np.random.default_rng(seed).normal(0, 0.05, 30)
        spread = np.full(30, 0.006)
        plain = evidence(means, spread, threshold=0.05)
        other = evidence(by + (-means if turned else means), spread, threshold=0.05)
        np.testing.assert_allclose(other.log10_e, plain.log10_e, atol=1e-6)
        assert (other.first, plain.shift is None) == (plain.first, other.shift is None)
        assert plain.shift is not None
        assert other.shift == pytest.approx(-plain.shift if turned else plain.shift, abs=1e-6)

    def test_a_jump_after_snapshots_that_are_all_the_same_is_found_and_finite(self) -> None:
        means = np.zeros(20)
        means[12:] = 0.08
        found = evidence(means, np.zeros(20), threshold=math.log10(20))
        assert np.isfinite(found.log10_e).all()
        assert (found.log10_e[: 12 + LONGEST_OUTAGE] <= 0).all()  # until then it may be an outage
        assert found.log10_e[12 + LONGEST_OUTAGE] > math.log10(20)
        assert found.first == 12
        assert found.shift == pytest.approx(0.08)
        assert found.low is not None
        assert found.high is not None
        assert 0 < found.low < 0.08 < found.high

    @pytest.mark.parametrize("n", [0, 1, BASELINE])
    def test_there_is_no_evidence_before_the_first_snapshot_after_the_baseline(self, n: int) -> None:
        found = evidence(np.linspace(0, 1, n), np.zeros(n), threshold=0.0)
        assert found == Evidence(found.log10_e)
        assert not found.log10_e.any()
        assert found.highest is None


def test_interval_of_the_shift_is_what_the_e_value_does_not_rule_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtef_pipeline.drift.evidence.build_dependences", lambda _: (Dependence(0.0, 1.0),))
    means = np.random.default_rng(0).normal(0, 0.02, 20)
    means[12:] += 0.1
    found = evidence(means, np.zeros(20), threshold=math.log10(20))
    assert (found.first, found.until) == (12, 20)
    assert found.low is not None
    assert found.high is not None

    def factor(shift: float) -> float:
        moved = means - shift * (np.arange(20) >= 12)
        one, two = moved[:12], moved[12:]
        within = sum((one - one.mean()) ** 2) + sum((two - two.mean()) ** 2)
        return float(np.exp(log_bayes_factor(sum((moved - moved.mean()) ** 2) / within - 1, 12 * 8 / 20, 20) + log_weight(12)))

    assert factor(found.low) == pytest.approx(1 / ALPHA, rel=1e-4)
    assert factor(found.high) == pytest.approx(1 / ALPHA, rel=1e-4)


@pytest.mark.parametrize("lag", [pytest.param(0.0, marks=pytest.mark.thorough), 0.8])
def test_interval_holds_the_true_shift_however_often_one_looks(lag: float) -> None:
    missed = 0
    for means in wandering(7, 10, 40, lag):
        means[15:] += 0.05
        looks = range(16, 41, 2)
        intervals = [estimate_shift(means[:n], np.zeros(n), np.zeros(n), 15, frozenset())[1:] for n in looks]
        missed += any(low is not None and high is not None and not low <= 0.05 <= high for low, high in intervals)
    assert missed <= binom.ppf(1 - 1e-6, 10, ALPHA)


@pytest.mark.parametrize(
    ("lag", "degrees"),
    [
        (0.8, 5),
        (0.95, math.inf),
        *(
            pytest.param(*given, marks=pytest.mark.thorough)
            for given in ((0.0, 3), (0.5, 5), (0.65, math.inf), (0.9, math.inf))
        ),
    ],
)
def test_without_drift_the_chance_of_ever_reaching_one_over_alpha_is_at_most_alpha(lag: float, degrees: float) -> None:
    """At .8 the mixture with tuned powers reached it in one of ten series with shocks of t5, and at .95 in one of six."""
    highest = [float(evidence(means, np.zeros(60)).log10_e.max()) for means in wandering(11, 60, 60, lag, degrees)]
    reached = sum(e >= math.log10(1 / ALPHA) for e in highest)
    assert reached <= binom.ppf(1 - 1e-4, 60, ALPHA)
