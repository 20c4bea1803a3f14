"""Means corrected by a few labels: the published numbers, the definition by plain loops, and intervals that hold what they say."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.prediction_powered import (
    ClusterLabels,
    compute_chances,
    draw_sample,
    estimate_corrected_means,
)

Floats = npt.NDArray[np.float64]
TRUTH = 0.6


def drawn_world(rng: np.random.Generator) -> tuple[ClusterLabels, Floats]:
    """Labels on prompts drawn by weight, with predictions that are too high and go wrong together by prompt; and the means of all labels."""
    weights = np.where(rng.random((50, 1)) < 0.15, rng.choice([2.0, 3.0, 5.0], (50, 1)), 1.0) * np.ones(3)
    labels = rng.beta(5 * TRUTH, 5 * (1 - TRUTH), (50, 3))
    predicted = np.clip(labels + 0.1 + 0.1 * rng.standard_t(3, (50, 1)) + rng.normal(0, 0.05, labels.shape), 0, 1)
    chances = compute_chances(weights[:, 0], 20)
    drawn = draw_sample(chances, rng)[:, None]
    given = ClusterLabels(weights, predicted, np.where(drawn, labels, np.nan), np.where(drawn, predicted, np.nan), chances)
    return given, (weights * labels).sum(axis=0) / weights.sum(axis=0)


def lopsided(seed: int, columns: int = 3, clusters: int = 30, labelled: int = 12) -> ClusterLabels:
    """Unequal weights and chances; a column lacks some clusters, and labels differ from the predictions beside them."""
    rng = np.random.default_rng(seed)
    weights = rng.pareto(1.5, (clusters, columns)) + 0.2
    weights[rng.random((clusters, columns)) < 0.1] = 0
    predicted = rng.random((clusters, columns))
    drawn = np.isin(np.arange(clusters), rng.choice(clusters, labelled, replace=False))[:, None] & (weights > 0)
    there = np.where(drawn, np.clip(predicted + rng.normal(0, 0.05, predicted.shape), 0, 1), np.nan)
    labels = there * 0.8 + rng.normal(0, 0.1, there.shape)
    return ClusterLabels(weights, predicted, labels, there, rng.uniform(0.2, 0.9, clusters))


def by_definition(given: ClusterLabels, column: int, kept: list[int], unlabelled: int | None = None) -> float:
    """The value from the clusters in `kept` by plain sums; the label of `unlabelled` is not used."""
    w = {i: given.weights[i, column] for i in kept if given.weights[i, column] > 0}
    some = [i for i in w if np.isfinite(given.labels[i, column]) and i != unlabelled]
    total = sum(w.values())
    every = sum(given.weights[i, column] for i in range(len(given.weights)))
    assert total <= every
    a = {i: w[i] / given.probability[i] for i in some}
    share = {i: a[i] / sum(a.values()) for i in some}
    f_all = sum(w[i] * given.predicted[i, column] for i in w) / total
    y = sum(share[i] * given.labels[i, column] for i in some)
    f = sum(share[i] * given.predicted_there[i, column] for i in some)
    together = sum(share[i] * (given.labels[i, column] - y) * (given.predicted_there[i, column] - f) for i in some)
    spread = sum(w[i] / total * (given.predicted[i, column] - f_all) ** 2 for i in w)
    together /= 1 - sum(part**2 for part in share.values())
    spread /= 1 - sum((part / total) ** 2 for part in w.values())
    most = 1 / (1 - sum(w[i] for i in some) / total)
    power = min(max(together / spread, 0), most)
    return float(y + power * (f_all - f))


@pytest.mark.parametrize("seed", range(3))
def test_lopsided_clusters_agree_with_the_definition_and_with_leaving_each_out(seed: int) -> None:
    given = lopsided(seed)
    found = estimate_corrected_means(given)
    every = list(range(len(given.weights)))
    for column in range(given.weights.shape[1]):
        value = by_definition(given, column, every)
        assert found.value[column] == pytest.approx(value)
        some = [i for i in every if given.weights[i, column] > 0 and np.isfinite(given.labels[i, column])]
        others = [i for i in every if given.weights[i, column] > 0 and i not in some]
        variance = sum(
            (len(part) - 1)
            / len(part)
            * sum((by_definition(given, column, [j for j in every if j != i]) - value) ** 2 for i in part)
            for part in (some, others)
        )
        assert found.se[column] == pytest.approx(variance**0.5)
        here = sum((1 - given.probability[i]) * (by_definition(given, column, every, i) - value) ** 2 for i in some)
        assert found.here_se[column] == pytest.approx((here * (len(some) - 1) / len(some)) ** 0.5)
        assert found.n_labelled[column] == len(some)


def test_labels_for_all_have_no_error_about_these_clusters() -> None:
    rng = np.random.default_rng(2)
    y, f = rng.random((20, 1)), rng.random((20, 1))
    found = estimate_corrected_means(ClusterLabels(np.ones((20, 1)), f, y, f, np.ones(20)))
    assert found.value[0] == pytest.approx(y.mean())
    assert found.here_low[0] == pytest.approx(found.here_high[0])
    assert found.low[0] < found.value[0] < found.high[0]


def test_narrower_intervals_need_more_labels_but_never_more_than_there_are() -> None:
    given = lopsided(3)
    wide, narrow, none = (estimate_corrected_means(given, half_width=width).needed for width in (0.2, 0.05, 1e-9))
    assert (wide <= narrow).all()
    assert (narrow <= none).all()
    assert none == pytest.approx((given.weights > 0).sum(axis=0))


def test_few_labels_have_no_interval_and_one_has_no_value() -> None:
    given = lopsided(4, labelled=4)
    assert np.isnan(estimate_corrected_means(given).low).all()
    assert np.isfinite(estimate_corrected_means(given).value).all()
    assert np.isnan(estimate_corrected_means(lopsided(4, labelled=0)).value).all()


def test_impossible_chances_and_weights_are_refused() -> None:
    given = lopsided(1)
    with pytest.raises(ConfigError, match="probability 0; allowed: above 0, at most 1"):
        estimate_corrected_means(given._replace(probability=np.zeros(30)))
    with pytest.raises(ConfigError, match="0 or more"):
        estimate_corrected_means(given._replace(weights=-given.weights))


@pytest.mark.thorough
def test_intervals_hold_the_truth_of_all_prompts_and_of_these() -> None:
    held: dict[str, list[bool]] = {"drawn": [], "here": []}
    for at in range(250):
        given, here = drawn_world(np.random.default_rng([7, at]))
        found = estimate_corrected_means(given)
        held["drawn"] += ((found.low <= TRUTH) & (found.high >= TRUTH)).tolist()
        held["here"] += ((found.here_low <= here) & (here <= found.here_high)).tolist()
    assert all(0.92 <= np.mean(part) <= 0.98 for part in held.values()), {name: np.mean(part) for name, part in held.items()}


def test_chances_are_in_proportion_to_size_and_sum_to_the_number_drawn() -> None:
    assert compute_chances([1, 1, 2], 2) == pytest.approx([0.5, 0.5, 1])
    assert compute_chances([1, 1, 1, 9, 2], 3) == pytest.approx([0.4, 0.4, 0.4, 1, 0.8])
    assert compute_chances([5, 1], 7) == pytest.approx([1, 1])
    assert compute_chances([1, 1, 1, 4, 100], 3) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1, 1])


def test_things_are_drawn_as_often_as_their_chance_says_and_always_as_many() -> None:
    rng = np.random.default_rng(2)
    chance = compute_chances(rng.pareto(1.5, 23) + 0.1, 9)
    made = np.array([draw_sample(chance, rng) for _ in range(4000)])
    assert set(made.sum(axis=1).tolist()) == {9}
    assert np.abs(made.mean(axis=0) - chance).max() < 4 * 0.5 / 4000**0.5


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ConfigError, match="0 items to draw"):
        compute_chances([1, 2], 0)
    with pytest.raises(ConfigError, match="size of 0; allowed: above 0"):
        compute_chances([1, 0], 1)
