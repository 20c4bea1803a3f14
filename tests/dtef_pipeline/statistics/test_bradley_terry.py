"""Bradley-Terry scores are the most likely ones, have the symmetries that they must have, and are none where none is finite."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics import bradley_terry
from dtef_pipeline.statistics.bradley_terry import TIES, PairedOutcomes, fit_strengths
from tests.made.votes import lopsided, paired

CYCLE = [(0, 1, 1), (1, 2, 1), (2, 0, 1)]
ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from([1, 0, -1])).filter(lambda row: row[0] != row[1]),
    max_size=40,
)


def minus_log_likelihood(at: npt.NDArray[np.float64], rows: PairedOutcomes, ties: str, l2: float = 0.0) -> float:
    """Row by row, in plain arithmetic; `at`: betas, then a coefficient for each covariate, then ln(nu) with ties davidson."""
    beta, total = at[: rows.players], 0.0
    for row, (i, j) in enumerate(zip(rows.left, rows.right, strict=True)):
        d = beta[i] - beta[j] + sum(rows.covariates[row] * at[rows.players : rows.players + rows.covariates.shape[1]])
        p, q = np.exp(d / 2), np.exp(-d / 2)
        tie = np.exp(at[-1]) if ties == "davidson" else 0.0
        won, lost, tied = p / (p + q + tie), q / (p + q + tie), tie / (p + q + tie)
        value = {1: np.log(won), -1: np.log(lost)}.get(int(rows.outcome[row]))
        if value is None and ties != "drop":
            value = np.log(tied) if ties == "davidson" else (np.log(won) + np.log(lost)) / 2
        total += rows.weight[row] * rows.times[row] * (value or 0.0)
    return -total + l2 * float((beta**2).sum())


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_scores_are_those_that_a_general_optimiser_finds(ties: str, l2: float) -> None:
    rows = lopsided(3, players=5, votes=90)
    free = rows.players + (ties == "davidson")
    found = minimize(minus_log_likelihood, np.zeros(free), (rows, ties, l2), options={"gtol": 1e-8})
    fit = fit_strengths(rows, ties=ties, l2=l2)  # type: ignore[arg-type]
    naive = found.x[: rows.players]
    assert fit.beta == pytest.approx(naive - naive.mean(), abs=1e-4)
    assert fit.nu == (pytest.approx(np.exp(found.x[-1]), abs=1e-4) if ties == "davidson" else None)


@pytest.mark.parametrize("ties", ["half", "davidson"])
def test_a_covariate_has_the_coefficient_that_a_general_optimiser_finds(ties: str) -> None:
    rows = lopsided(5, players=4, votes=80)
    rows = replace(rows, covariates=np.random.default_rng(1).normal(size=(80, 1)))
    found = minimize(minus_log_likelihood, np.zeros(5 + (ties == "davidson")), (rows, ties), options={"gtol": 1e-8})
    fit = fit_strengths(rows, ties=ties)  # type: ignore[arg-type]
    assert fit.coefficients == pytest.approx(found.x[4:5], abs=1e-4)
    assert fit.beta == pytest.approx(found.x[:4] - found.x[:4].mean(), abs=1e-4)


@given(ROWS, st.sampled_from(TIES), st.sampled_from([0.0, 0.1]))
def test_scores_are_0_on_average_over_each_component_and_shares_sum_to_1(
    rows: list[tuple[int, int, int]], ties: str, l2: float
) -> None:
    fit = fit_strengths(paired(rows, 5), ties=ties, l2=l2)  # type: ignore[arg-type]
    for number in set(fit.component.tolist()):
        here = fit.component == number
        if np.isfinite(fit.beta[here]).all():
            assert fit.beta[here].sum() == pytest.approx(0, abs=1e-9)
            assert fit.share[here].sum() == pytest.approx(1)


def test_a_player_that_never_lost_has_no_score_unless_a_prior_is_named() -> None:
    rows = paired([(0, 1, 1)] * 4)
    fit = fit_strengths(rows)
    assert fit.separable
    assert np.isnan(fit.beta).all()
    assert np.isnan(fit.share).all()
    assert fit_strengths(rows, l2=1).beta == pytest.approx([0.521298, -0.521298], abs=1e-6)


def test_a_fit_that_does_not_converge_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bradley_terry, "_MOST_STEPS", 1)
    fit = fit_strengths(paired([*CYCLE, (0, 1, 1)] * 3))
    assert fit.no_answer == ("unconverged",) * 3
    assert np.isnan(fit.beta).all()
    assert np.isnan(fit.model_errors).all()


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("wins", [1e5, 1e12])
def test_a_million_million_wins_to_one_still_converge(wins: float, ties: str) -> None:
    """Of a nearly sure win, 1 less its probability was rounding alone, so that the fit never came to rest."""
    rows = replace(paired([(0, 1, 1), (0, 1, -1), (1, 2, 1), (2, 1, 1)]), times=np.array([wins, 1, wins, 1]))
    fit = fit_strengths(rows, ties=ties)  # type: ignore[arg-type]
    assert fit.no_answer == ("",) * 3
    assert fit.beta[0] - fit.beta[1] == pytest.approx(np.log(wins))


def test_lengths_that_tell_every_vote_leave_no_finite_coefficient() -> None:
    rows = paired([*CYCLE, (0, 1, -1)], covariate=[1, 1, 1, -1])
    fit = fit_strengths(rows)
    assert fit.separable
    assert np.isnan(fit.beta).all()
    assert np.isnan(fit.coefficients).all()


@pytest.mark.parametrize("lengths", [[0, 0, 0, 0], [1, 1, -2, -1]])
def test_lengths_that_follow_from_the_players_leave_no_answer(lengths: list[float]) -> None:
    """All equally long, or each player always as long as itself: no vote tells strength from length."""
    fit = fit_strengths(paired([*CYCLE, (1, 0, 1)], covariate=lengths))
    assert fit.no_answer == ("unidentified",) * 3
    assert np.isnan(fit.coefficients).all()


@pytest.mark.parametrize(("given", "message"), [({"ties": "coin"}, "allowed: half"), ({"l2": -1.0}, "allowed: 0 or more")])
def test_what_is_no_way_of_fitting_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fit_strengths(paired(CYCLE), **given)  # type: ignore[arg-type]
