"""Evidence of drift equals its definitions as integrals and sums, and keeps the promised rate of false drifts."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, simpson
from scipy.signal import lfilter
from scipy.stats import binom, nct, norm, t

from dtef_pipeline.drift.autocorrelation import (
    EARLY,
    PATIENCE,
    PRIOR_VARIANCES,
    RESOLUTION,
    Dependence,
    fits,
    log_bayes_factor,
    weight,
)
from dtef_pipeline.drift.evidence import ALPHA, BASELINE, Evidence, evidence
from dtef_pipeline.drift.outages import LONGEST_OUTAGE

Floats = npt.NDArray[np.float64]


INDEPENDENT = Dependence(0.0, 1.0)


def unknown(means: Floats) -> Floats:
    return np.zeros(len(means))


def two_sample(values: Floats, change: int, floor: float = 0.0) -> tuple[float, float]:
    """t squared over its degrees of freedom, and the effective size, from the textbook two-sample test."""
    one, two = values[:change], values[change:]
    effective = len(one) * len(two) / len(values)
    least = len(values) * floor**2
    within = sum((x - one.mean()) ** 2 for x in one) + sum((x - two.mean()) ** 2 for x in two)
    total = sum((x - values.mean()) ** 2 for x in values)
    return max(total, least) / max(within, least) - 1, effective


def factor_by_definition(values: Floats, change: int, floor: float = 0.0) -> float:
    ratio, effective = two_sample(values, change, floor)
    each = [
        (1 + g * effective) ** -0.5 * ((1 + ratio) / (1 + ratio / (1 + g * effective))) ** ((len(values) - 1) / 2)
        for g in PRIOR_VARIANCES
    ]
    return sum(each) / len(each)


def prior(change: int, baseline: int) -> float:
    if change < baseline:
        return EARLY / (baseline - 1)
    place = change - baseline + PATIENCE
    return (1 - EARLY if baseline > 1 else 1) * PATIENCE / (place * (place + 1))


def path_by_definition(values: Floats, baseline: int, floors: Floats) -> list[float]:
    path = []
    for n in range(1, len(values) + 1):
        e, known = 0.0, 0.0
        for change in range(1, n):
            factor = factor_by_definition(values[:n], change, floors[n - 1])
            counts = n - change >= (3 if change >= baseline else 2 * baseline)
            e += prior(change, baseline) * (factor if counts else min(factor, 1))
            known += prior(change, baseline)
        path.append(e + 1 - known)
    return path


class TestBayesFactor:
    @pytest.mark.parametrize(("values", "change"), [([0.1, 0.3, 0.2, 0.8], 2), ([0.0, 0.5, 0.1, 0.2, 0.9], 4)])
    def test_is_the_integral_over_the_shift_and_the_haar_prior_of_mean_and_spread(
        self, values: list[float], change: int
    ) -> None:
        """Likelihoods summed up on a grid of mean, log spread and shift: nothing is taken from the formula."""
        x = np.array(values)
        # The mean is in units of the spread from the middle of the values, so that its prior is flat and one grid serves all spreads.
        mean, log_spread, shift = np.linspace(-10, 10, 201), np.linspace(-4, 7, 111), np.linspace(-6, 6, 61)
        sigma = np.exp(log_spread)[:, None, None]
        mu = x.mean() + sigma * mean[None, :, None]
        logs = sum(
            norm.logpdf(value, mu + sigma * shift[None, None, :] * (place >= change), sigma) for place, value in enumerate(x)
        )
        likelihood = simpson(simpson(np.exp(logs) * sigma, x=mean, axis=1), x=log_spread, axis=0)
        variance = 1.0
        expected = simpson(likelihood * norm.pdf(shift, 0, math.sqrt(variance)), x=shift) / likelihood[30]
        ratio, effective = two_sample(x, change)
        gain = 1 + variance * effective
        single = gain**-0.5 * ((1 + ratio) / (1 + ratio / gain)) ** ((len(x) - 1) / 2)
        assert single == pytest.approx(expected, rel=1e-3)

    @pytest.mark.parametrize(("n1", "n2", "value"), [(5, 1, 0.4), (5, 3, 2.5), (20, 10, -3.0), (80, 20, 6.0)])
    def test_is_the_noncentral_t_averaged_over_its_prior(self, n1: int, n2: int, value: float) -> None:
        effective, degrees = n1 * n2 / (n1 + n2), n1 + n2 - 2
        expected = np.mean(
            [
                quad(
                    lambda d, g=g: nct.pdf(value, degrees, d * math.sqrt(effective)) * norm.pdf(d, 0, math.sqrt(g)),
                    -12 * math.sqrt(g),
                    12 * math.sqrt(g),
                    points=[value / math.sqrt(effective)],
                    limit=400,
                )[0]
                / t.pdf(value, degrees)
                for g in PRIOR_VARIANCES
            ]
        )
        found = float(np.exp(log_bayes_factor(value**2 / degrees, effective, n1 + n2)))
        assert found == pytest.approx(expected, rel=1e-6)

    @pytest.mark.parametrize("seed", range(4))
    def test_is_a_fair_bet_on_every_next_snapshot(self, seed: int) -> None:
        """Averaged over what the next snapshot may be without drift, given those so far, the factor stays what it is."""
        seen = np.random.default_rng(seed).normal(0.3, 2.0, 6 + seed)
        change, n = 5, len(seen)
        scale = seen.std(ddof=1) * math.sqrt(1 + 1 / n)

        def bet(value: float) -> float:
            return factor_by_definition(np.append(seen, seen.mean() + scale * value), change) * float(t.pdf(value, n - 1))

        expected = factor_by_definition(seen, change) if n > change else 1.0
        assert quad(bet, -np.inf, np.inf, limit=300)[0] == pytest.approx(expected, rel=1e-6)

    def test_rises_with_the_ratio_and_is_bounded(self) -> None:
        factors = log_bayes_factor(np.array([0, 0.1, 1, 10, 1e6, 1e12, 1e300]), 4.0, 12)
        assert (np.diff(factors) >= 0).all()
        assert np.isfinite(factors).all()
        assert factors[0] < 0


class TestPath:
    @settings(max_examples=40, deadline=None)
    @given(
        st.integers(2, 6),
        st.lists(st.floats(-1, 1), min_size=3, max_size=14),
        st.lists(st.floats(0, 0.1), min_size=14, max_size=14),
    )
    def test_is_the_sum_over_change_points_by_definition(
        self, baseline: int, values: list[float], spreads: list[float]
    ) -> None:
        means, spread = np.array(values), np.array(spreads[: len(values)])
        floors = np.array([max(RESOLUTION, np.median(spread[:n])) for n in range(1, len(means) + 1)])
        found = np.exp(fits(means, baseline, floors, INDEPENDENT, np.arange(1, len(means) + 1)).factor)
        np.testing.assert_allclose(found, path_by_definition(means, baseline, floors)[: len(means)], rtol=1e-8)

    def test_after_a_snapshot_does_not_depend_on_later_ones(self) -> None:
        generator = np.random.default_rng(2)
        means, spread = generator.normal(0, 0.02, 60), generator.uniform(0, 0.04, 60)
        whole = evidence(means, spread).log10_e
        for n in (6, 17, 59):
            np.testing.assert_allclose(evidence(means[:n], spread[:n]).log10_e, whole[:n], rtol=0, atol=1e-12)

    def test_weights_of_the_change_points_sum_to_one(self) -> None:
        weights = np.exp(weight(np.arange(1, BASELINE + 1000), BASELINE))
        later = weights[BASELINE - 1 :]
        assert weights.sum() + (1 - EARLY) * PATIENCE / (1000 + PATIENCE) == pytest.approx(1, abs=1e-12)
        assert weights[: BASELINE - 1].sum() == pytest.approx(EARLY, abs=1e-12)  # exp of a log: the last bit is the processor's
        assert later[:PATIENCE].sum() == pytest.approx((1 - EARLY) / 2, abs=1e-12)

    @settings(max_examples=30, deadline=None)
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

    @pytest.mark.parametrize("noise", [INDEPENDENT, Dependence(0.6, 1.0), Dependence(0.85, 0.5)])
    @settings(max_examples=15, deadline=None)
    @given(st.integers(0, 10**6), st.floats(0, 0.2), st.floats(0, 0.3))
    def test_believing_less_in_small_spreads_only_lowers_the_evidence(
        self, noise: Dependence, seed: int, spread: float, shift: float
    ) -> None:
        means = np.random.default_rng(seed).normal(0, 0.03, 40)
        means[20:] += shift
        low, high = (fits(means, BASELINE, np.full(40, s), noise, np.arange(6, 41)).factor for s in (spread / 2, spread))
        assert (high <= low + 1e-9).all()

    @pytest.mark.parametrize("value", [0.0, 0.7, 1.0, 1e6])
    def test_nights_that_are_all_the_same_are_no_evidence(self, value: float) -> None:
        found = evidence(np.full(100, value), np.zeros(100), threshold=1.3)
        assert (found.log10_e <= 0).all()
        assert found.first == BASELINE
        assert found.shift == pytest.approx(0, abs=1e-9)

    def test_a_jump_after_nights_that_are_all_the_same_is_found_and_finite(self) -> None:
        means = np.zeros(20)
        means[12:] = 0.08
        found = evidence(means, np.zeros(20), threshold=math.log10(20))
        assert np.isfinite(found.log10_e).all()
        assert (found.log10_e[:17] <= 0).all()
        assert found.log10_e[17] > math.log10(20)
        assert found.first == 12
        assert found.shift == pytest.approx(0.08)
        assert found.low is not None
        assert found.high is not None
        assert 0 < found.low < 0.08 < found.high

    def test_a_difference_below_the_resolution_is_none(self) -> None:
        means = np.zeros(60)
        means[30:] = 0.001
        assert (evidence(means, np.zeros(60)).log10_e < 1).all()

    @pytest.mark.parametrize("n", [0, 1, BASELINE])
    def test_there_is_no_evidence_before_the_first_snapshot_after_the_baseline(self, n: int) -> None:
        found = evidence(np.linspace(0, 1, n), np.zeros(n), threshold=0.0)
        assert found == Evidence(found.log10_e)
        assert not found.log10_e.any()
        assert found.highest is None

    @pytest.mark.parametrize("depth", [0.1, 0.3, 1.0])
    def test_a_night_off_and_back_is_no_drift_however_far_off(self, depth: float) -> None:
        """A single night far off was evidence enough, and one outage was a drift for good."""
        for seed in range(20):
            means = np.random.default_rng(seed).normal(0, 0.01, 60)
            means[30] -= depth
            assert evidence(means, np.full(60, 0.01)).log10_e.max() < math.log10(20)

    def test_what_is_far_off_counts_from_its_sixth_night(self) -> None:
        means = np.random.default_rng(1).normal(0, 0.01, 60)
        means[30:] -= 0.3
        path = evidence(means, np.full(60, 0.01)).log10_e
        assert (path[: 30 + LONGEST_OUTAGE] <= 0).all()  # until then it may be an outage
        assert path[30 + LONGEST_OUTAGE] > math.log10(1000)

    def test_a_level_that_wanders_is_less_evidence_where_batteries_explain_a_part_of_it_than_where_responses_do(
        self,
    ) -> None:
        nights = lfilter([1.0], [1.0, -0.8], np.random.default_rng(8).normal(0, 0.0144, (25, 80)))  # standard deviation .024
        spread, few = np.full(80, 0.012), np.full(80, 0.001)
        of_batteries, of_responses = (
            np.mean([evidence(means, spread, sampling).log10_e.max() for means in nights]) for sampling in (few, spread)
        )
        assert of_batteries < of_responses - 0.02

    @pytest.mark.parametrize("noise", [Dependence(0.6, 1.0), Dependence(0.85, 0.5)])
    def test_with_autocorrelation_it_is_that_of_generalised_least_squares(self, noise: Dependence) -> None:
        """Sums of squares from the inverse of the correlations, as the textbook has them."""
        means, n, change = np.random.default_rng(3).normal(0, 0.05, 12), 12, 7
        apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        inverse = np.linalg.inv(noise.share * noise.lag**apart + (1 - noise.share) * np.eye(n))
        left = []
        for columns in ([np.ones(n)], [np.ones(n), (np.arange(n) >= change).astype(float)]):
            design = np.column_stack(columns)
            residual = means - design @ np.linalg.solve(design.T @ inverse @ design, design.T @ inverse @ means)
            left.append(float(residual @ inverse @ residual))
        information = np.linalg.inv(design.T @ inverse @ design)[1, 1]
        expected = float(log_bayes_factor(left[0] / left[1] - 1, 1 / information, n)) + float(weight(change, 5))
        found = fits(means, 5, np.full(n, 1e-9), noise, np.array([n])).terms[0, change]
        assert found == pytest.approx(expected, rel=1e-9)


class TestShift:
    @pytest.mark.parametrize("seed", [0, 1, 2, 4])  # the nights of 3 have an outage, which the definition does not know
    def test_interval_is_what_the_bayes_factor_does_not_rule_out(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dtef_pipeline.drift.evidence._LAGS", ())
        means = np.random.default_rng(seed).normal(0, 0.02, 40)
        means[25:] += 0.1
        found = evidence(means, unknown(means), threshold=math.log10(20))
        assert found.first is not None
        assert abs(found.first - 25) <= 1
        assert found.low is not None
        assert found.high is not None
        step = 0.0005
        grid = np.arange(-0.1, 0.3, step)
        kept = []
        for shift in grid:
            moved_back = (means - shift * (np.arange(40) >= found.first))[: found.until]
            if prior(found.first, BASELINE) * factor_by_definition(moved_back, found.first) < 1 / ALPHA:
                kept.append(shift)
        assert found.low == pytest.approx(min(kept), abs=step)
        assert found.high == pytest.approx(max(kept), abs=step)

    def test_interval_holds_the_true_shift_however_often_one_looks(self) -> None:
        generator = np.random.default_rng(7)
        missed = 0
        for _ in range(25):
            means = generator.normal(0, 0.02, 40)
            means[15:] += 0.05
            intervals = [evidence(means[:n], unknown(means[:n]), baseline=15) for n in range(16, 41)]
            missed += any(i.low is not None and i.high is not None and not i.low <= 0.05 <= i.high for i in intervals)
        assert missed <= binom.ppf(1 - 1e-6, 25, ALPHA)

    def test_two_snapshots_of_baseline_and_one_more_have_a_shift_without_bounds(self) -> None:
        found = evidence(np.array([0.0, 0.01, 0.3]), np.zeros(3), baseline=2)
        assert found.shift == pytest.approx(0.295)
        assert (found.low, found.high) == (None, None)


def reaches(highest: list[float], alpha: float) -> bool:
    """Whether 1 / alpha was reached more often than chance allows: one in a million tests would say so wrongly."""
    return bool(np.sum(np.array(highest) >= math.log10(1 / alpha)) > binom.ppf(1 - 1e-6, len(highest), alpha))


class TestVille:
    @settings(max_examples=6, deadline=None)
    @given(
        seed=st.integers(0, 2**32 - 1),
        mean=st.floats(-5, 5),
        sd=st.floats(0.001, 2),
        spread=st.floats(0, 0.05),
        nights=st.integers(6, 45),
        baseline=st.integers(2, 8),
    )
    def test_without_drift_one_over_alpha_is_ever_reached_with_chance_alpha_at_most(
        self, seed: int, mean: float, sd: float, spread: float, nights: int, baseline: int
    ) -> None:
        generator = np.random.default_rng(seed)
        sets = generator.normal(mean, sd, (60, nights))
        highest = [float(evidence(means, np.full(nights, spread), baseline=baseline).log10_e.max()) for means in sets]
        for alpha in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01):
            assert not reaches(highest, alpha), alpha

    def test_expected_e_is_at_most_one_whenever_one_stops(self) -> None:
        generator = np.random.default_rng(5)
        paths = [10 ** evidence(means, np.zeros(30)).log10_e for means in generator.normal(0.7, 0.02, (300, 30))]
        stops = {
            "at a fixed time": lambda path: 11,
            "at the end": lambda path: 29,
            "at the first e of 2": lambda path: int(np.argmax(path >= 2)) if (path >= 2).any() else 29,
            "when it looks worst": lambda path: BASELINE + int(np.argmax(np.abs(np.diff(path[BASELINE:])) > 0.5)),
        }
        for name, stop in stops.items():
            stopped = np.array([path[stop(path)] for path in paths])
            assert stopped.mean() <= 1 + 4 * stopped.std() / math.sqrt(len(stopped)), name

    @pytest.mark.parametrize("degrees", [5, 3])
    def test_nights_with_outliers_hold_the_rate_too(self, degrees: int) -> None:
        generator = np.random.default_rng(degrees)
        sets = 0.02 * generator.standard_t(degrees, (100, 100))
        assert not reaches([float(evidence(means, np.zeros(100)).log10_e.max()) for means in sets], ALPHA)
