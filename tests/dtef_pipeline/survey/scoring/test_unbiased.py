"""Noise-corrected errors: by hand, against plain loops, by an invariance, on rejected input, and by simulation over n."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.scoring.metrics import (
    DistributionPair,
    compute_corrected_errors,
    compute_corrected_rps_on_scale,
    compute_gini,
)

Floats = npt.NDArray[np.float64]
GUESS, SEEN, N = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 11


def corrected_l2(predicted: npt.ArrayLike, observed: npt.ArrayLike, n: npt.ArrayLike) -> Floats:
    return compute_corrected_errors(DistributionPair(predicted, observed), n)["l2_corrected"]


def corrected_rps(predicted: npt.ArrayLike, observed: npt.ArrayLike, n: npt.ArrayLike) -> Floats:
    return compute_corrected_errors(DistributionPair(predicted, observed), n)["rps_corrected"]


def naive_l2(q: Floats, p: Floats, n: float) -> float:
    """Squared error less the sum of the unbiased variances of the shares."""
    return sum((a - b) ** 2 for a, b in zip(q, p, strict=True)) - sum(b * (1 - b) / (n - 1) for b in p)


def naive_rps(q: Floats, p: Floats, n: float) -> float:
    total = 0.0
    for step in range(1, len(p)):
        reached, real = sum(q[:step]), sum(p[:step])
        total += (reached - real) ** 2 - real * (1 - real) / (n - 1)
    return total


def lopsided(rows: int, k: int, seed: int) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    q, p = rng.dirichlet(np.full(k, 0.3), (2, rows))
    return q, p, rng.integers(2, 500, rows).astype(np.float64)


def test_values_by_hand() -> None:
    # squared error .09 + .09; spread 1 - (.04 + .09 + .25) = .62, a tenth of it
    assert corrected_l2(GUESS, SEEN, N) == pytest.approx(0.18 - 0.062)
    # steps .5 against .2 and .8 against .5; spread .16 + .25
    assert corrected_rps(GUESS, SEEN, N) == pytest.approx(0.18 - 0.041)
    assert corrected_l2(SEEN, SEEN, N) == pytest.approx(-0.062)
    assert compute_gini(SEEN, N) == pytest.approx(0.62 * 1.1)


@pytest.mark.parametrize(("name", "naive"), [("l2_corrected", naive_l2), ("rps_corrected", naive_rps)])
@pytest.mark.parametrize("k", [2, 5, 9])
def test_every_error_is_what_plain_loops_say_on_lopsided_rows(name: str, naive: Callable[..., float], k: int) -> None:
    q, p, n = lopsided(60, k, seed=k)
    expected = [naive(*row) for row in zip(q, p, n, strict=True)]
    assert compute_corrected_errors(DistributionPair(q, p), n)[name] == pytest.approx(expected)


def test_options_off_the_scale_are_left_out_with_those_who_chose_them() -> None:
    ranks = [0, -1, 1, 2]
    q, p = [0.25, 0.5, 0.15, 0.1], [0.1, 0.5, 0.15, 0.25]
    assert compute_corrected_rps_on_scale(q, p, 22, ranks) == pytest.approx(float(corrected_rps(GUESS, SEEN, N)))
    assert compute_corrected_rps_on_scale(q, p, 22, [0, 1, 2, 3]) == pytest.approx(float(corrected_rps(q, p, 22)))


@pytest.mark.parametrize("n", [0, 1, np.nan])
def test_too_few_or_unknown_respondents_give_no_value(n: float) -> None:
    for value in (corrected_l2(GUESS, SEEN, n), corrected_rps(GUESS, SEEN, n), compute_gini(SEEN, n)):
        assert np.isnan(value)
    assert np.isnan(corrected_l2([GUESS, GUESS], [SEEN, SEEN], [n, 11])).tolist() == [True, False]


def test_rejected_input_says_what_arrived_and_what_is_allowed() -> None:
    rows = [SEEN, SEEN, SEEN]
    for n, message in (
        ([10, 20], r"n: got shape \(2,\) for distributions of shape \(3, 3\); allowed: a number, or one per row"),
        ([10, -5, 3], r"n: row 1 is -5\.0; allowed: a finite number of respondents >= 0"),
        (np.inf, r"n: row 0 is inf"),
    ):
        with pytest.raises(ConfigError, match=message):
            corrected_l2(rows, rows, n)
