"""Davidson's model of ties: its parameter, and when it has no finite value."""

from __future__ import annotations

import numpy as np
import pytest

from dtef_pipeline.statistics.bradley_terry import davidson_terms, fit_strengths
from tests.made.votes import paired


def test_nu_is_ties_over_the_root_of_wins_times_losses() -> None:
    fit = fit_strengths(paired([(0, 1, 1)] * 3 + [(0, 1, -1)] + [(0, 1, 0)] * 2), ties="davidson")
    assert fit.nu == pytest.approx(2 / np.sqrt(3))
    assert fit.beta[0] - fit.beta[1] == pytest.approx(np.log(3))


def test_ties_alone_leave_nu_without_end() -> None:
    fit = fit_strengths(paired([(0, 1, 0)] * 5), ties="davidson")
    assert fit.nu is None
    assert fit.separable


def test_ties_and_wins_that_a_ladder_explains_leave_no_finite_answer() -> None:
    """0 beats 1, and both tie 2: connected both ways, but with 2 halfway between them the likelihood grows with nu for ever."""
    rows = paired([(0, 1, 1), (1, 2, 0), (2, 0, 0)])
    assert not fit_strengths(rows).separable
    assert fit_strengths(rows, ties="davidson").separable
    assert np.isfinite(fit_strengths(rows, ties="davidson", l2=0.1).beta).all()


@pytest.mark.parametrize("theta", [-1.0, 0.4])
@pytest.mark.parametrize("outcome", [1, 0, -1])
def test_derivatives_are_those_of_differences(theta: float, outcome: int) -> None:
    step, at, outcomes = 1e-4, np.array([0.7]), np.array([outcome])

    def value(difference: float = 0.0, more: float = 0.0) -> float:
        return float(davidson_terms(at + difference, outcomes, theta + more).value[0])

    terms = davidson_terms(at, outcomes, theta)
    assert terms.by_difference[0] == pytest.approx((value(step) - value(-step)) / (2 * step), abs=1e-7)
    assert terms.by_theta[0] == pytest.approx((value(0, step) - value(0, -step)) / (2 * step), abs=1e-7)
    assert -terms.information[0] == pytest.approx((value(step) - 2 * value() + value(-step)) / step**2, abs=1e-6)
    assert -terms.of_theta[0] == pytest.approx((value(0, step) - 2 * value() + value(0, -step)) / step**2, abs=1e-6)
    corners = value(step, step) - value(step, -step) - value(-step, step) + value(-step, -step)
    assert -terms.crossed[0] == pytest.approx(corners / (4 * step**2), abs=1e-6)
