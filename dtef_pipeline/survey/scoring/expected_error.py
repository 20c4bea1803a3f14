"""The precision of a run before it starts: the standard error of means over its pairs.

Scores of pairs are a nested random model: score = mean + battery + question within the battery + pair within the question.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.statistics.cluster_robust import degrees_of_freedom


class Components(NamedTuple):
    """Variances of the scores of pairs, 0 or more: between batteries, between questions of a battery, between pairs of a question."""

    battery: float
    question: float
    pair: float


def estimate_variance_components(scores: pd.DataFrame) -> Components:
    """Return moment estimates of the components: the analysis of variance of an unbalanced nested design (Henderson's method 1; Searle,
    Casella & McCulloch 1992, 5.3).

    Estimates below 0 are 0. Variance that a level does not show, such as pairs if each question has one, is part of the level above.

    Args:
        scores: one row per pair, no NaN: `score`, `question` and `cluster` (its battery).
    """
    score = scores["score"].to_numpy(np.float64)
    question, battery = (_factorize_column(scores, name) for name in ("question", "cluster"))
    question_batteries = np.zeros(question.max() + 1, dtype=np.int64)  # (questions,) their batteries
    question_batteries[question] = battery
    pairs, battery_sizes = np.bincount(question), np.bincount(battery)
    n, questions, batteries = len(score), len(pairs), len(battery_sizes)
    means = np.bincount(question, weights=score) / pairs
    battery_means = np.bincount(battery, weights=score) / battery_sizes
    between = float(pairs @ (means - battery_means[question_batteries]) ** 2)
    battery_sum = float(battery_sizes @ (battery_means - score.mean()) ** 2)
    within = float((pairs**2 / battery_sizes[question_batteries]).sum())
    pair = _divide_components(float(((score - means[question]) ** 2).sum()), n - questions)
    question_variance = _divide_components(between - pair * (questions - batteries), n - within)
    lower_levels = pair * (batteries - 1) + question_variance * (within - (pairs**2).sum() / n)
    return Components(_divide_components(battery_sum - lower_levels, n - (battery_sizes**2).sum() / n), question_variance, pair)


def compute_expected_error(components: Components, pairs: pd.DataFrame) -> float:
    """Return the standard error of the mean score over the pairs of a run, for other batteries of this kind; NaN for none.

    Its square is sigma_B^2 sum(w_b^2) + sigma_Q^2 sum(w_q^2) + sigma_C^2 / pairs, with the shares w of batteries and of questions among the
    pairs; with Q questions of s segments each, the last two are sigma_Q^2 / Q and sigma_C^2 / (Q s).

    Args:
        pairs: one row per pair: `question` and `cluster`.
    """
    if not len(pairs):
        return np.nan
    battery, question = (float((pairs[name].value_counts(normalize=True) ** 2).sum()) for name in ("cluster", "question"))
    variance = components.battery * battery + components.question * question + components.pair / len(pairs)
    return float(np.sqrt(variance))


def compute_expected_degrees(pairs: pd.DataFrame) -> float:
    """Return the degrees of freedom of the test of a mean over the pairs of a run, 1 or more. `pairs`: one row per pair, with its
    `cluster`.
    """
    return float(degrees_of_freedom(np.bincount(_factorize_column(pairs, "cluster"))[:, None].astype(np.float64))[0])


def compute_difference_deviations(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of several models as deviations whose variance is, averaged over models, that of the difference of two of them.

    `scores`: `score`, and `setting` and the pair's `question` and `segment`, which identify a pair. Pairs of one model are dropped.
    """
    pair_scores = scores.groupby(["setting", "question", "segment"], observed=True)["score"]
    models = pair_scores.transform("size")
    deviation = (scores["score"] - pair_scores.transform("mean")) * np.sqrt(2 * models / (models - 1).clip(lower=1))
    return scores.assign(score=deviation)[models > 1]


def _factorize_column(frame: pd.DataFrame, name: str) -> npt.NDArray[np.int64]:
    return np.asarray(pd.factorize(frame[name])[0], dtype=np.int64)


def _divide_components(above: float, below: float) -> float:
    return max(above / below, 0.0) if below > 1e-9 else 0.0
