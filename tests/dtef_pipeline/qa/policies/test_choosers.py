"""What single policies choose: the steps that can be worked out by hand, and plain versions of their formulas."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from dtef_pipeline.qa.policies.choosers import AtRandom, Chooser, Dueling, EpsilonGreedy, Floats, Thompson, Ucb1, best
from dtef_pipeline.qa.policies.contextual import ContextualThompson, LinUcb

NOTHING = np.ones((1, 1))


def taught(policy: Chooser, pulls: list[tuple[int, float]]) -> None:
    for chosen, score in pulls:
        policy.learn(np.array([chosen]), np.array([score]), NOTHING)


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_ucb1_after_two_pulls_of_mean_half_and_one_of_two_fifths_chooses_the_second() -> None:
    policy = Ucb1(1, 2)
    taught(policy, [(0, 0.3), (0, 0.7), (1, 0.4)])
    assert 0.5 + sqrt(2 * log(3) / 2) < 0.4 + sqrt(2 * log(3) / 1)
    assert policy.choose(NOTHING, rng()).tolist() == [1]


def test_ucb1_tries_each_model_once_and_then_what_its_formula_says() -> None:
    policy, draws = Ucb1(1, 3), np.random.default_rng(1)
    times, sums = [0] * 3, [0.0] * 3
    for n in range(200):
        (chosen,) = policy.choose(NOTHING, draws).tolist()
        if n < 3:
            assert times[chosen] == 0
        else:
            bounds = [s / t + sqrt(2 * log(n) / t) for s, t in zip(sums, times, strict=True)]
            assert bounds[chosen] == pytest.approx(max(bounds))
        score = float(draws.random() < (0.2, 0.5, 0.8)[chosen])
        times[chosen] += 1
        sums[chosen] += score
        taught(policy, [(chosen, score)])
    assert times[2] > times[1] > times[0]


def test_thompson_after_three_good_and_one_bad_answer_draws_from_beta_4_2() -> None:
    policy = Thompson(1, 2)
    taught(policy, [(0, 1.0), (0, 1.0), (0, 0.0), (0, 1.0)])
    assert (policy.good[0].tolist(), policy.bad[0].tolist()) == ([4, 1], [2, 1])
    # Beta(4, 2) exceeds a uniform draw with the chance of its mean, 4 / 6.
    share = np.mean([policy.choose(NOTHING, draws)[0] == 0 for draws in [rng()] for _ in range(4_000)])
    assert share == pytest.approx(4 / 6, abs=0.03)


def test_thompson_counts_a_score_between_in_parts() -> None:
    policy = Thompson(1, 1)
    taught(policy, [(0, 0.25)])
    assert (policy.good[0, 0], policy.bad[0, 0]) == pytest.approx((1.25, 1.75))


def test_epsilon_greedy_explores_a_tenth_of_the_time() -> None:
    runs = 20_000
    policy = EpsilonGreedy(runs, 4)
    for model, score in enumerate((0.1, 0.9, 0.2, 0.3)):
        policy.learn(np.full(runs, model), np.full(runs, score), NOTHING)
    shares = np.bincount(policy.choose(NOTHING, rng())) / runs
    assert shares == pytest.approx([0.025, 0.925, 0.025, 0.025], abs=0.005)


def test_random_takes_every_model_and_equal_ones_are_as_likely() -> None:
    assert np.bincount(AtRandom(9_000, 3).choose(NOTHING, rng())) / 9_000 == pytest.approx([1 / 3] * 3, abs=0.02)
    ties = best(np.tile([1.0, 3.0, 3.0], (9_000, 1)), rng())
    assert np.bincount(ties, minlength=3) / 9_000 == pytest.approx([0, 0.5, 0.5], abs=0.02)


def naive_ridge(seen: list[tuple[Floats, float]], x: Floats) -> tuple[float, float]:
    """Mean and deviation at x of a regression that is solved anew from everything seen."""
    a, b = np.eye(len(x)), np.zeros(len(x))
    for row, score in seen:
        a += np.outer(row, row)
        b += score * row
    return float(x @ np.linalg.solve(a, b)), float(np.sqrt(x @ np.linalg.solve(a, x)))


@pytest.mark.parametrize("kind", [LinUcb, ContextualThompson])
def test_the_regressions_of_contextual_policies_are_those_solved_anew(kind: type[LinUcb]) -> None:
    draws, runs, models, width = np.random.default_rng(2), 3, 2, 4
    policy = kind(runs, models, width)
    seen: dict[tuple[int, int], list[tuple[Floats, float]]] = {(r, m): [] for r in range(runs) for m in range(models)}
    for _ in range(25):
        x, chosen, score = draws.normal(size=(runs, width)), draws.integers(models, size=runs), draws.random(runs)
        policy.learn(chosen, score, x)
        for run in range(runs):
            seen[run, int(chosen[run])].append((x[run], float(score[run])))
    x = draws.normal(size=(runs, width))
    mean, deviation = policy.expected(x)
    for (run, model), rows in seen.items():
        assert (mean[run, model], deviation[run, model]) == pytest.approx(naive_ridge(rows, x[run]))


def test_linucb_takes_the_greatest_upper_bound() -> None:
    policy = LinUcb(1, 2, 2)
    x = np.array([[1.0, 0.5]])
    policy.learn(np.array([0]), np.array([0.9]), x)
    bounds = [mean + deviation for mean, deviation in (naive_ridge([(x[0], 0.9)], x[0]), naive_ridge([], x[0]))]
    assert policy.choose(x, rng())[0] == np.argmax(bounds)


@pytest.mark.parametrize("kind", [LinUcb, ContextualThompson])
def test_contextual_policies_learn_who_is_good_at_what(kind: type[LinUcb]) -> None:
    policy, draws, late = kind(1, 2, 2), np.random.default_rng(3), []
    for step in range(600):
        topic = step % 2
        x = np.array([[1.0, float(topic)]])
        (chosen,) = policy.choose(x, draws).tolist()
        score = float(draws.random() < (0.9 if chosen == topic else 0.1))
        policy.learn(np.array([chosen]), np.array([score]), x)
        late += [chosen == topic] if step >= 300 else []
    assert np.mean(late) > 0.9


def test_contextual_thompson_spreads_its_draws_as_its_posterior_does() -> None:
    runs = 30_000
    policy = ContextualThompson(runs, 2, 1)
    policy.learn(np.zeros(runs, dtype=np.int64), np.full(runs, 0.5), np.ones((runs, 1)))
    # Model 0: mean .25, variance v^2 / 2; model 1: mean 0, variance v^2.
    from scipy.stats import norm

    chance = norm.cdf(0.25 / (policy.v * sqrt(1.5)))
    assert np.mean(policy.choose(np.ones((runs, 1)), rng()) == 0) == pytest.approx(chance, abs=0.01)


def test_duels_count_wins_and_draws_and_bound_them_by_the_formula() -> None:
    policy = Dueling(1, 3)
    for _ in range(4):
        policy.pair(rng())
    for better in (1.0, 1.0, 0.5):
        policy.learn_duel(np.array([0]), np.array([1]), np.array([better]))
    policy.learn_duel(np.array([2]), np.array([2]), np.array([0.5]))
    assert policy.wins[0].tolist() == [[0, 2.5, 0], [0.5, 0, 0], [0, 0, 0]]
    bounds = policy._bounds()[0]
    reach = sqrt(0.51 * log(4) / 3)
    assert bounds == pytest.approx(np.array([[0.5, 2.5 / 3 + reach, 1], [0.5 / 3 + reach, 0.5, 1], [1, 1, 0.5]]))


def test_duels_settle_on_the_model_that_beats_all_others() -> None:
    policy, draws = Dueling(50, 4), np.random.default_rng(4)
    chances = np.array([0.2, 0.4, 0.9, 0.5])
    for _ in range(1_500):
        first, second = policy.pair(draws)
        ahead = (draws.random(50) < chances[first]).astype(float) - (draws.random(50) < chances[second])
        policy.learn_duel(first, second, (np.sign(ahead) + 1) / 2)
    shares = np.bincount(np.concatenate([policy.pair(draws)[0] for _ in range(20)]), minlength=4) / 1_000
    assert shares[2] > 0.9


def test_the_first_champion_is_any_and_its_opponent_another_model() -> None:
    first, second = Dueling(6_000, 3).pair(rng())
    assert (first != second).all()
    assert np.bincount(first) / 6_000 == pytest.approx([1 / 3] * 3, abs=0.03)
