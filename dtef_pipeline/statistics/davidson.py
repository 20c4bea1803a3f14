"""Likelihood of the outcome of a comparison given the difference of two scores: ties as half wins, or Davidson's model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Outcomes = npt.NDArray[np.int64]
"""(rows,): 1 the left one won, -1 the right one, 0 a tie."""


class OutcomeTerms(NamedTuple):
    """Log-likelihood of each row and its derivatives by the difference of scores d and by theta = ln(nu), (rows,) each."""

    value: Floats
    by_difference: Floats
    by_theta: Floats
    information: Floats
    """Minus the second derivative by d; of `crossed` by d and theta, of `of_theta` by theta twice."""
    crossed: Floats
    of_theta: Floats


def half_win_terms(difference: Floats, outcome: Outcomes) -> OutcomeTerms:
    """Return Bradley and Terry's terms (1952): left wins with probability 1 / (1 + exp(-d)); a tie is half a win for each."""
    points = (outcome + 1) / 2
    # Never 1 - won: of a nearly sure win nothing would be left of it but rounding.
    win, loss = _logistic(difference), _logistic(-difference)
    value = points * -np.logaddexp(0, -difference) + (1 - points) * -np.logaddexp(0, difference)
    nothing = np.zeros_like(difference)
    return OutcomeTerms(value, points * loss - (1 - points) * win, nothing, win * loss, nothing, nothing)


def davidson_terms(difference: Floats, outcome: Outcomes, theta: float) -> OutcomeTerms:
    """Return Davidson's terms (1970): left, right, tie are likely as exp(d/2) to exp(-d/2) to nu, that is p_i to p_j to nu sqrt(p_i p_j)."""
    half = difference / 2
    utilities = np.stack([half, -half, np.full_like(half, theta)])
    total = np.logaddexp.reduce(utilities, axis=0)
    left, right, tie = np.exp(utilities - total)
    lead = (left - right) / 2
    return OutcomeTerms(
        value=outcome * half + np.where(outcome == 0, theta, 0.0) - total,
        by_difference=np.where(outcome > 0, right + tie / 2, np.where(outcome < 0, -left - tie / 2, -lead)),
        by_theta=np.where(outcome == 0, left + right, -tie),
        information=left * right + tie * (left + right) / 4,
        crossed=-tie * lead,
        of_theta=tie * (left + right),
    )


def _logistic(difference: Floats) -> Floats:
    return np.exp(-np.logaddexp(0, -difference))
