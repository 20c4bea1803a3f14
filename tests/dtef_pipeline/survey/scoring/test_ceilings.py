"""Ceilings: the prior strength and the simulation, by hand, against plain loops, and calibrated where the truth is known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from dtef_pipeline.survey.scoring import metrics
from dtef_pipeline.survey.scoring.references import MAX_STRENGTH, draw_truths, estimate_ceilings, estimate_prior_strength
from dtef_pipeline.survey.tables import DISTANCES

Floats = npt.NDArray[np.float64]
ALL_ON_SCALE = np.arange(4)


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def of_truth(truth: Floats, n: int, draws: int) -> dict[str, Floats]:
    """Ceilings of segments whose truths (segments, k) are known."""
    spread = np.broadcast_to(truth, (draws, *truth.shape))
    return estimate_ceilings(spread, np.full(len(truth), n), generator(), ordinal=True, ranks=np.arange(truth.shape[1]))


def naive_strength(observed: Floats, n: Floats) -> float:
    """Intraclass correlation of the answers themselves, by an analysis of variance of one 0/1 variable per option."""
    between = within = 0.0
    everyone = sum(n)
    for option in range(observed.shape[1]):
        grand = sum(n[s] * observed[s, option] for s in range(len(n))) / everyone
        for s in range(len(n)):
            yes = n[s] * observed[s, option]
            between += n[s] * (observed[s, option] - grand) ** 2 / (len(n) - 1)
            within += (yes * (1 - observed[s, option]) ** 2 + (n[s] - yes) * observed[s, option] ** 2) / (everyone - len(n))
    size = (everyone - sum(v * v for v in n) / everyone) / (len(n) - 1)
    rho = (between - within) / (between + (size - 1) * within)
    return (1 - rho) / rho


class TestPriorStrength:
    def test_by_hand(self) -> None:
        # Two segments of 10, 8:2 and 2:8: B = 10 (.09 + .09) 2 = 3.6; W = 2 x 10 (1 - .68) / 18 = .3556; n0 = 10.
        found = estimate_prior_strength(np.array([[0.8, 0.2], [0.2, 0.8]]), np.array([10.0, 10.0]))
        assert found == pytest.approx(10 * 0.3555556 / (3.6 - 0.3555556), rel=1e-6)

    def test_is_what_plain_loops_say_on_lopsided_segments(self) -> None:
        rng = generator(3)
        observed, n = rng.dirichlet([4, 1, 0.3, 2], 7), rng.integers(10, 600, 7).astype(np.float64)
        assert estimate_prior_strength(observed, n) == pytest.approx(naive_strength(observed, n))


def test_truths_lie_between_observed_and_population_by_the_shrinkage() -> None:
    observed, population = np.array([[0.9, 0.1, 0.0]] * 3), np.array([[0.2, 0.3, 0.5]] * 3)
    n, strength = np.array([40.0, 40.0, 40.0]), np.array([0.0, 40.0, MAX_STRENGTH])
    drawn = draw_truths(observed, n, population, strength, generator(), 4000)
    weight = (strength / (n + strength))[:, None]
    assert drawn.sum(axis=-1) == pytest.approx(1)
    assert drawn.mean(axis=0) == pytest.approx((1 - weight) * observed + weight * population, abs=0.005)
    share = observed[1, 0] * 0.5 + population[1, 0] * 0.5
    assert drawn[:, 1, 0].var() == pytest.approx(share * (1 - share) / 81, rel=0.1)


class TestCeilings:
    def test_by_hand_with_one_respondent_of_two_options(self) -> None:
        """A sample of one from 50:50 is always 1:0: every metric is that of the uniform distribution against it."""
        found = of_truth(np.array([[0.5, 0.5]]), 1, 20)
        expected = metrics.measure([0.5, 0.5], [1, 0])
        similar = {name: 1 - value if name in DISTANCES else value for name, value in expected.items()}
        assert {name: float(value[0]) for name, value in found.items()} == pytest.approx(
            {n: float(v) for n, v in similar.items()}
        )

    def test_is_the_mean_over_all_samples_there_are(self) -> None:
        """Against the exact sum over the binomial distribution."""
        n, share = 12, 0.7
        yes = np.arange(n + 1)
        samples = np.column_stack([yes, n - yes]) / n
        exact = binom.pmf(yes, n, share) @ metrics.js(np.broadcast_to([share, 1 - share], samples.shape), samples)
        found = of_truth(np.array([[share, 1 - share]]), n, 20_000)["js"][0]
        assert found == pytest.approx(exact, abs=0.002)


SIZES, STRENGTH, QUESTIONS, SEGMENTS, SIMULATED = (15, 33, 100, 450), 10, 250, 12, 40


@pytest.fixture(scope="module")
def calibration() -> dict[str, dict[int, float]]:
    """Truths are drawn, samples are shown, ceilings are made of the samples alone. Mean ceiling by n: of the truths, and as made."""
    rng = generator(11)
    n = np.resize(SIZES, SEGMENTS)
    found: dict[str, list[Floats]] = {"real": [], "shrunk": []}
    for _ in range(QUESTIONS):
        truth = rng.dirichlet(STRENGTH * rng.dirichlet(np.full(4, 3.0)), SEGMENTS)
        observed = rng.multinomial(n, truth) / n[:, None]
        believed = {"real": np.broadcast_to(truth, (SIMULATED, *truth.shape)), "shrunk": believed_truths(observed, n, rng)}
        for name, drawn in believed.items():
            found[name].append(estimate_ceilings(drawn, n, rng, ordinal=True, ranks=ALL_ON_SCALE)["js"])
    means = {name: np.mean(values, axis=0) for name, values in found.items()}
    return {name: {size: float(values[n == size].mean()) for size in SIZES} for name, values in means.items()}


def believed_truths(observed: Floats, n: npt.NDArray[np.int64], rng: np.random.Generator) -> Floats:
    size = n.astype(np.float64)
    population = np.broadcast_to(size @ observed / size.sum(), observed.shape)
    strength = np.full(len(n), estimate_prior_strength(observed, size))
    return draw_truths(observed, size, population, strength, rng, SIMULATED)


@pytest.mark.parametrize("n", SIZES)
def test_the_mean_ceiling_is_what_the_truth_really_scores(calibration: dict[str, dict[int, float]], n: int) -> None:
    assert calibration["shrunk"][n] == pytest.approx(calibration["real"][n], abs=0.003)
