"""Errors of scores are those of whole reviewers: the textbook's double loop, and none where there is too little to make one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dtef_pipeline.statistics.bradley_terry import StrengthFit, fit_strengths
from dtef_pipeline.statistics.clustered_errors import bounds, clustered_errors, enough, pair_tests
from tests.made.votes import lopsided, paired


def double_loop(fit: StrengthFit) -> np.ndarray:
    """Inverse, sum over reviewers and over pairs of their votes of the products of scores, inverse, times R / (R - 1); ties as half wins."""
    rows, k = fit.rows, len(fit.beta)
    scores = np.zeros((len(rows.left), k))
    for row, (i, j) in enumerate(zip(rows.left, rows.right, strict=True)):
        expected = 1 / (1 + np.exp(fit.beta[j] - fit.beta[i]))
        pull = rows.weight[row] * ((rows.outcome[row] + 1) / 2 - expected)
        scores[row, i], scores[row, j] = pull, -pull
    cluster = np.arange(len(rows.left)) if rows.cluster is None else rows.cluster
    middle = np.zeros((k, k))
    for one in range(len(scores)):
        for other in np.flatnonzero(cluster == cluster[one]):
            middle += np.outer(scores[one], scores[other])
    n = len(set(cluster.tolist()))
    return fit.inverse @ middle @ fit.inverse * n / (n - 1)


@pytest.mark.parametrize("clustered", [True, False])
def test_the_covariance_is_the_double_loop_s_on_lopsided_votes(clustered: bool) -> None:
    rows = lopsided(7, votes=150)
    fit = fit_strengths(rows if clustered else replace(rows, cluster=None))
    assert clustered_errors(fit).covariance == pytest.approx(double_loop(fit), abs=1e-12)


def test_equal_votes_of_nobody_in_particular_may_stand_in_one_row() -> None:
    rows = [(0, 1, 1)] * 30 + [(1, 0, 1)] * 20
    one = clustered_errors(fit_strengths(paired(rows)))
    merged = replace(paired([(0, 1, 1), (1, 0, 1)]), times=np.array([30.0, 20]))
    other = clustered_errors(fit_strengths(merged))
    assert other.covariance == pytest.approx(one.covariance)
    assert (other.clusters.tolist(), other.own.tolist(), other.votes.tolist()) == ([50, 50], [50, 50], [50, 50])


@pytest.mark.parametrize("ties", ["half", "davidson"])
def test_reviewers_that_vote_everything_twice_know_no_more(ties: str) -> None:
    """By vote the errors would shrink by the root of two."""
    rows = lopsided(2)
    twice = paired(
        [*zip(rows.left, rows.right, rows.outcome, strict=True)] * 2, rows.players, [*rows.cluster] * 2, [*rows.weight] * 2
    )
    one, other = (fit_strengths(found, ties=ties) for found in (rows, twice))  # type: ignore[arg-type]
    assert clustered_errors(other).errors == pytest.approx(clustered_errors(one).errors, rel=1e-6)
    assert other.model_errors == pytest.approx(one.model_errors / np.sqrt(2), rel=1e-6)


def test_an_interval_is_t_with_one_degree_less_than_reviewers() -> None:
    found = bounds(np.array([1.0]), np.array([0.5]), np.array([4.0]), np.array([True]))
    assert (found.low[0], found.high[0]) == pytest.approx((1 - 0.5 * 2.776445, 1 + 0.5 * 2.776445), abs=1e-5)


@pytest.mark.parametrize("reviewers", [4, 5])
def test_fewer_than_five_reviewers_make_no_interval(reviewers: int) -> None:
    rows = lopsided(4, players=4, votes=300, reviewers=reviewers)
    fit = fit_strengths(rows)
    assert enough(fit, clustered_errors(fit)).all() == (reviewers == 5)


def test_a_player_that_one_reviewer_saw_has_no_interval() -> None:
    """Its score is fitted to that one taste exactly, so that the sandwich sees next to no spread in it."""
    rows = lopsided(4, players=4, votes=300)
    more = [*zip(rows.left, rows.right, rows.outcome, strict=True), *[(4, 0, 1), (0, 4, 1), (4, 1, 1), (1, 4, 1)] * 5]
    fit = fit_strengths(paired(more, 5, [*rows.cluster, *[0] * 20]))
    found = clustered_errors(fit)
    assert found.errors[4] < found.errors[:4].mean()
    assert enough(fit, found).tolist() == [True] * 4 + [False]


def test_pairs_of_one_component_are_tested_and_adjusted_together() -> None:
    first = lopsided(9, players=3, votes=300)
    apart = [(i + 3, j + 3, outcome) for i, j, outcome in zip(first.left, first.right, first.outcome, strict=True)]
    fit = fit_strengths(paired([*zip(first.left, first.right, first.outcome, strict=True), *apart], 6, [*first.cluster] * 2))
    tests = pair_tests(fit, clustered_errors(fit))
    assert (fit.component[tests.better] == fit.component[tests.worse]).all()
    assert len(tests.p) == 6
    assert (tests.difference >= 0).all()
    assert tests.p_holm[:3] == pytest.approx(tests.p_holm[3:])
    smallest = tests.p[:3].argmin()
    assert tests.p_holm[smallest] == pytest.approx(min(1.0, 3 * tests.p[smallest]))


def test_without_an_answer_there_are_no_errors() -> None:
    fit = fit_strengths(paired([(0, 1, 1)] * 20))
    found = clustered_errors(fit)
    assert not enough(fit, found).any()
    assert len(pair_tests(fit, found).p) == 0
