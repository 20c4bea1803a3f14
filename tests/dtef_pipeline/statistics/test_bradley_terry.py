"""Bradley-Terry scores, with Davidson's ties too, are the most likely ones, and are none where none is finite."""

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
from dtef_pipeline.statistics.bradley_terry import (
    TIES,
    PairedOutcomes,
    davidson_terms,
    find_unbeaten,
    fit_strengths,
    has_growing_direction,
    number_components,
    number_strong_groups,
)
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
    monkeypatch.setattr(bradley_terry, "_MAX_STEPS", 1)
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


EDGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda edge: edge[0] != edge[1]), max_size=15)


def reached(edges: list[tuple[int, int]], start: int) -> set[int]:
    found, ahead = {start}, [start]
    while ahead:
        here = ahead.pop()
        new = {there for one, there in edges if one == here} - found
        found |= new
        ahead += new
    return found


def columns(edges: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([one for one, _ in edges], dtype=np.int64), np.array([other for _, other in edges], dtype=np.int64)


@given(EDGES)
def test_components_are_who_can_reach_whom(edges: list[tuple[int, int]]) -> None:
    both_ways = [*edges, *((other, one) for one, other in edges)]
    weak, strong = number_components(6, *columns(edges)), number_strong_groups(6, *columns(edges))
    for one in range(6):
        for other in range(6):
            assert (weak[one] == weak[other]) == (other in reached(both_ways, one))
            assert (strong[one] == strong[other]) == (other in reached(edges, one) and one in reached(edges, other))


@given(EDGES)
def test_scores_grow_for_ever_exactly_where_a_component_is_not_strongly_connected(edges: list[tuple[int, int]]) -> None:
    wins = np.zeros((len(edges), 6))
    for row, (better, worse) in enumerate(edges):
        wins[row, better], wins[row, worse] = 1, -1
    weak, strong = number_components(6, *columns(edges)), number_strong_groups(6, *columns(edges))
    assert has_growing_direction(wins) == (len(set(weak.tolist())) < len(set(strong.tolist())))


@pytest.mark.parametrize(
    ("edges", "top"), [([(0, 1), (1, 2)], [True, False, False]), ([(0, 1), (1, 0), (2, 0)], [False, False, True])]
)
def test_those_whom_nobody_else_beat_are_named(edges: list[tuple[int, int]], top: list[bool]) -> None:
    better, worse = columns(edges)
    assert find_unbeaten(number_strong_groups(3, better, worse), better, worse).tolist() == top
