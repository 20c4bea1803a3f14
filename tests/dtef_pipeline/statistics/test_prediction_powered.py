"""Means corrected by a few labels: the published numbers, the definition by plain loops, and intervals that hold what they say."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.prediction_powered import (
    ClusterLabels,
    CorrectedMeans,
    compute_chances,
    draw_sample,
    estimate_corrected_means,
)

Floats = npt.NDArray[np.float64]
_Z = 1.959964


def powered_mean(labels: Floats, predicted: Floats, unlabelled: Floats) -> tuple[float, float]:
    """The PPI++ mean of independent items and its standard error, with the power of least variance."""
    spread = float(np.var(np.concatenate([predicted, unlabelled]), ddof=1)) * (1 + len(labels) / len(unlabelled))
    power = float(np.clip(np.cov(labels, predicted)[0, 1] / spread, 0, 1)) if spread > 0 else 0.0
    rest = labels - power * predicted
    variance = power**2 * np.var(unlabelled, ddof=1) / len(unlabelled) + np.var(rest, ddof=1) / len(labels)
    return float(rest.mean() + power * unlabelled.mean()), float(np.sqrt(variance))


class Prompts(NamedTuple):
    """The prompts of one run. By item (criterion of a prompt) and model, people's and judges' scores 0-1."""

    weights: Floats  # (prompts,)
    prompt: npt.NDArray[np.int64]  # (items,)
    people: Floats  # (items, models)
    judges: Floats  # (items, models)

    def means(self, of: Floats) -> Floats:
        """(prompts, models)"""
        sums = np.stack([np.bincount(self.prompt, column) for column in of.T], axis=1)
        return np.asarray(sums / np.bincount(self.prompt)[:, None])

    @property
    def truth(self) -> Floats:
        """(models,) the board's number, if people had judged everything."""
        return np.asarray(self.weights @ self.means(self.people) / self.weights.sum())

    def labelled(self, drawn: npt.NDArray[np.bool_], probability: Floats) -> ClusterLabels:
        people, judges = self.means(self.people), self.means(self.judges)
        weights = np.repeat(self.weights[:, None], people.shape[1], axis=1)
        labels, there = (np.where(drawn[:, None], part, np.nan) for part in (people, judges))
        return ClusterLabels(weights, judges, labels, there, probability)

    def held_by_items(self, given: ClusterLabels, truth: Floats) -> list[bool]:
        """Of each model, whether the interval holds the truth that takes criteria for independent."""
        drawn = np.isfinite(given.labels[:, 0])[self.prompt]
        held = []
        for people, judges, true in zip(self.people.T, self.judges.T, truth, strict=True):
            value, se = powered_mean(people[drawn], judges[drawn], judges[~drawn])
            held.append(bool(abs(value - true) <= _Z * se))
        return held


@dataclass(frozen=True)
class LabelledWorld:
    models: int = 3
    hard: float = 0.8
    """Standard deviation of how hard prompts are, in classes; that of criteria is the same."""
    bias: float = 0.12
    """Of judges on all criteria of a prompt, and, with heavy tails, on each: standard deviation in units of the score."""
    most: int = 30
    """Criteria of the largest prompts; half have 4 or fewer."""

    def prompts(self, rng: np.random.Generator, prompts: int) -> Prompts:
        sizes = 1 + rng.geometric(0.3, prompts) + (rng.random(prompts) < 0.1) * rng.integers(5, 26, prompts)
        prompt = np.repeat(np.arange(prompts), np.minimum(sizes, self.most))
        items = len(prompt)
        level = 2.2 + 0.25 * np.arange(self.models) + rng.normal(0, self.hard, prompts)[prompt, None]
        level = level + rng.normal(0, self.hard, items)[:, None] + rng.normal(0, 0.6, (items, self.models))
        off = 0.1 + rng.normal(0, self.bias, prompts)[prompt] + self.bias * rng.standard_t(3, items) / 2
        judged = [_classes(level + 4 * off[:, None] + rng.normal(0, 0.5, level.shape)) for _ in range(2)]
        weights = np.where(rng.random(prompts) < 0.15, rng.choice([2.0, 3.0, 5.0], prompts), 1.0)
        return Prompts(weights, prompt, _classes(level), (judged[0] + judged[1]) / 2)

    @cached_property
    def truth(self) -> Floats:
        """(models,) expected score over all prompts there might be."""
        found = self.prompts(np.random.default_rng(2_000_000), 100_000)
        return found.truth


def _classes(level: Floats) -> Floats:
    return np.asarray(np.clip(np.round(level), 0, 4) / 4)


def drawn_prompts(rng: np.random.Generator, weights: Floats, n: int) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Which prompts are drawn to be labelled, and the chance each had: in proportion to its weight."""
    chance = compute_chances(weights, n)
    return draw_sample(chance, rng), chance


Y, PREDICTED, OTHERS = [1, 0.5, 0.75, 0], [1, 0.75, 0.75, 0.5], [0.5, 1, 0.75, 0.25, 0.75, 1]


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
def test_intervals_by_prompts_hold_the_truth_and_those_by_items_do_not() -> None:
    """Criteria of one prompt go wrong together: counted one by one they are taken for far more evidence than they are."""
    made, held = LabelledWorld(models=3), {"drawn": [], "here": [], "items": []}  # type: ignore[var-annotated]
    for at in range(250):
        rng = np.random.default_rng([7, at])
        prompts = made.prompts(rng, 50)
        given = prompts.labelled(*drawn_prompts(rng, prompts.weights, 20))
        found: CorrectedMeans = estimate_corrected_means(given)
        held["drawn"] += ((found.low <= made.truth) & (made.truth <= found.high)).tolist()
        held["here"] += ((found.here_low <= prompts.truth) & (prompts.truth <= found.here_high)).tolist()
        held["items"] += prompts.held_by_items(given, made.truth)
    shares = {name: np.mean(part) for name, part in held.items()}
    assert 0.92 <= shares["drawn"] <= 0.98
    assert 0.92 <= shares["here"] <= 0.98
    assert shares["items"] < 0.8


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
