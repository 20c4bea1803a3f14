"""Worlds of prompts, criteria, models and judges of which people label a part: what corrected scores are tried on.

Prompts differ in how hard they are and in how many criteria they have (a few have very many), criteria in how hard they are and in how far
judges are off on them, in one direction, with heavy tails. All models and judges share these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dtef_pipeline.statistics.prediction_powered import ClusterLabels, compute_chances, draw_sample

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
