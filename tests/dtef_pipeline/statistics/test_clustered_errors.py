"""Errors of scores are those of whole reviewers and prompts: the textbook's double loop, and none where there is too little to make one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from dtef_pipeline.statistics.bradley_terry import PairedOutcomes, StrengthFit, fit_strengths
from dtef_pipeline.statistics.clustered_errors import compute_bounds, estimate_errors, list_dependences, pair_tests
from tests.made.votes import lopsided, paired


def double_loop(fit: StrengthFit, same: Callable[[int, int], bool]) -> np.ndarray:
    """Inverse, sum over pairs of votes of the same cluster of the products of scores, inverse, times G* / (G* - 1); ties as half wins.

    Summed over all pairs of votes of a cluster, products of what two votes tell of a player are the squares of the sums in G*.
    """
    rows, k = fit.rows, len(fit.beta)
    scores, information = np.zeros((2, len(rows.left), k))
    for row, (i, j) in enumerate(zip(rows.left, rows.right, strict=True)):
        expected = 1 / (1 + np.exp(fit.beta[j] - fit.beta[i]))
        pull = rows.weight[row] * ((rows.outcome[row] + 1) / 2 - expected)
        scores[row, i], scores[row, j] = pull, -pull
        information[row, i] = information[row, j] = rows.weight[row] ** 2 * expected * (1 - expected)
    middle, squares = np.zeros((k, k)), np.zeros(k)
    for one in range(len(scores)):
        for other in range(len(scores)):
            if same(one, other):
                middle += np.outer(scores[one], scores[other])
                squares += information[one] * information[other]
    effective = information.sum(axis=0) ** 2 / squares
    scale = np.sqrt(effective / (effective - 1))
    return fit.inverse @ middle @ fit.inverse * np.outer(scale, scale)


def on_prompts(rows: PairedOutcomes, prompts: int = 6, seed: int = 1) -> PairedOutcomes:
    return replace(rows, item=np.random.default_rng(seed).integers(prompts, size=len(rows.left)))


def test_the_covariances_are_those_of_the_double_loop_on_lopsided_votes() -> None:
    rows = on_prompts(lopsided(7, votes=120))
    reviewer, prompt = rows.cluster, rows.item
    fit = fit_strengths(rows)
    by_reviewer = double_loop(fit, lambda i, j: reviewer[i] == reviewer[j])
    by_prompt = double_loop(fit, lambda i, j: prompt[i] == prompt[j])
    by_both = double_loop(fit, lambda i, j: reviewer[i] == reviewer[j] and prompt[i] == prompt[j])
    both_ways = by_reviewer + by_prompt - by_both
    assert estimate_errors(fit).covariances == pytest.approx(np.stack([by_reviewer, by_prompt, both_ways]), abs=1e-12)
    one_way = fit_strengths(replace(rows, item=None))
    assert estimate_errors(one_way).covariances == pytest.approx(by_reviewer[None], abs=1e-12)
    alone = fit_strengths(replace(rows, item=None, cluster=None))
    assert estimate_errors(alone).covariances == pytest.approx(double_loop(fit, lambda i, j: i == j)[None], abs=1e-12)


def test_the_largest_variance_decides_with_the_degrees_of_its_ways() -> None:
    chosen = set()
    for seed in range(6):
        fit = fit_strengths(on_prompts(lopsided(7, players=4, votes=900), seed=seed))
        errors = estimate_errors(fit)
        variances = np.stack([np.diag(covariance) for covariance in errors.covariances])
        assert errors.effective[2] == pytest.approx(np.minimum(errors.effective[0], errors.effective[1]))
        ends = compute_bounds(fit, errors)
        for at, which in enumerate(variances.argmax(axis=0).tolist()):
            half = t.ppf(0.975, errors.effective[which, at] - 1) * np.sqrt(variances[which, at])
            assert (ends.low[at], ends.high[at]) == pytest.approx((fit.beta[at] - half, fit.beta[at] + half))
            chosen.add(which)
    assert {0, 2} <= chosen


def test_prompts_count_where_votes_are_worth_five_of_them() -> None:
    rows = lopsided(7, votes=120)
    assert len(list_dependences(on_prompts(rows, 5))) == 2
    assert len(list_dependences(on_prompts(rows, 4))) == 1
    assert len(list_dependences(replace(rows, item=np.maximum(0, np.arange(120) - 100)))) == 1
    assert len(list_dependences(replace(on_prompts(rows), cluster=None))) == 1
    assert list_dependences(replace(rows, cluster=None)) == ()


def has_interval(fit: StrengthFit) -> list[bool]:
    return np.isfinite(compute_bounds(fit, estimate_errors(fit)).se).tolist()


def test_fewer_than_five_effective_reviewers_make_no_interval() -> None:
    """Eight names of which one gave nearly all votes were taken for eight reviewers."""
    rows = lopsided(4, players=4, votes=300, reviewers=8)
    busy = np.maximum(0, np.arange(300) - 280) % 8
    for cluster, enough in ((np.arange(300) % 5, True), (np.arange(300) % 4, False), (busy, False)):
        assert has_interval(fit_strengths(replace(rows, cluster=cluster))) == [enough] * 4


def test_pairs_of_one_component_are_tested_and_adjusted_together() -> None:
    first = lopsided(9, players=3, votes=300)
    apart = [(i + 3, j + 3, outcome) for i, j, outcome in zip(first.left, first.right, first.outcome, strict=True)]
    fit = fit_strengths(paired([*zip(first.left, first.right, first.outcome, strict=True), *apart], 6, [*first.cluster] * 2))
    tests = pair_tests(fit, estimate_errors(fit))
    assert (fit.component[tests.better] == fit.component[tests.worse]).all()
    assert len(tests.p) == 6
    assert (tests.difference >= 0).all()
    assert tests.p_adjusted[:3] == pytest.approx(tests.p_adjusted[3:])
    smallest = tests.p[:3].argmin()
    assert tests.p_adjusted[smallest] == pytest.approx(min(1.0, 3 * tests.p[smallest]))
