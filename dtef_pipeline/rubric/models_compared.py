"""Every two models compared on the prompts that both have a score for, in the latest run of each blueprint.

Differences are taken prompt by prompt, within a blueprint first, as the board's means are; what is independent are blueprints, and
within one blueprint its prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.boards.families import BETTER, WORSE
from dtef_pipeline.rubric.aggregate import CELL_LEVEL
from dtef_pipeline.rubric.board import latest_runs
from dtef_pipeline.rubric.levels import CELL_KEYS, RUN_KEYS, with_key_types
from dtef_pipeline.rubric.runs_compared import EQUIVALENT, UNDECIDED
from dtef_pipeline.statistics.differences import (
    MARGIN,
    Codes,
    Floats,
    paired_statistics,
    places,
    verdicts,
    without_rounding,
)
from dtef_pipeline.statistics.multiplicity import holm

MODELS_COMPARED = {
    "model": "Model of the two with the higher mean",
    "other_model": "Model that it is compared with",
    "verdict": "Decision: better, equivalent or undecided",
    "difference": "Mean hybrid score of the model less that of the other, over shared prompts within a blueprint, then blueprints",
    "low": "Lower end of the 95 % interval of the difference",
    "high": "Upper end of the 95 % interval of the difference",
    "score": "Mean hybrid score of the model on these prompts, 0-1: higher is better",
    "other_score": "Mean hybrid score of the other model on these prompts, 0-1: higher is better",
    "n_blueprints": "Blueprints with a shared prompt",
    "n_prompts": "Prompts that both have a score for",
    "effect_size": "Difference over the standard deviation of the blueprints' (of one blueprint: the prompts') differences",
    "p": "Two-sided p of the t test by whole blueprints (of one blueprint: prompts); null: fewer than 5",
    "p_adjusted": "Probability of so large a difference by chance, adjusted over all pairs (Holm)",
    "note": "Note on what cannot be told, and why; empty: nothing",
}
"""Columns of a comparison of models, by name, with what they mean."""
_PAIRS_AT_A_TIME = 256


class _PromptScores(NamedTuple):
    """Scores by prompt and model, the prompts of a blueprint together."""

    models: Sequence[str]
    scores: Floats  # (prompts, models), NaN: none
    weight: Floats  # (prompts,): of each prompt in its blueprint
    starts: Codes  # (blueprints,): where the prompts of each begin


class _Summed(NamedTuple):
    """Of each pair of models, sums over each cluster's shared prompts, (clusters, pairs)."""

    scores: Floats
    others: Floats
    counts: Floats
    n_blueprints: Codes  # (pairs,)
    n_prompts: Codes  # (pairs,)


def compare_models(
    table: pd.DataFrame,
    order: Sequence[str],
    blueprints: Sequence[str],
    *,
    margin: float = MARGIN,
) -> pd.DataFrame:
    """One row per two models that share a prompt, the better one first, the largest difference first; columns MODELS_COMPARED.

    `table` and `order` as of `board`; `blueprints`: those that count. A model's score on a prompt is the mean over its variants that have one.
    Within a blueprint the difference is averaged over shared prompts by their weights, then over blueprints, each counting once. Intervals
    (95 %) and `p` take blueprints as what is independent; of one blueprint alone, prompts. `p_adjusted` is adjusted over all pairs (Holm 1979).

    `verdict`: better where p_adjusted is below .05, else equivalent where the 90 % interval lies within +-`margin`, else undecided.
    """
    cells = with_key_types(table, "scores", ("level", *CELL_KEYS, "hybrid", "weight"))
    runs = latest_runs(cells, order)
    runs = runs[runs["blueprint"].isin(blueprints)]
    cells = cells[(cells["level"] == CELL_LEVEL) & cells["hybrid"].notna()].merge(runs, "inner", list(RUN_KEYS))
    if cells["model"].nunique() < 2:
        return pd.DataFrame(columns=list(MODELS_COMPARED))
    by_prompt = _by_prompt(cells)
    first, second = np.triu_indices(len(by_prompt.models), k=1)
    parts = [
        _summed(by_prompt, first[at : at + _PAIRS_AT_A_TIME], second[at : at + _PAIRS_AT_A_TIME])
        for at in range(0, len(first), _PAIRS_AT_A_TIME)
    ]
    shared = np.concatenate([part.n_prompts for part in parts]) > 0
    if not shared.any():
        return pd.DataFrame(columns=list(MODELS_COMPARED))
    columns: list[Any] = [np.concatenate(of_parts, axis=-1)[..., shared] for of_parts in zip(*parts, strict=True)]
    summed = _Summed(*columns)
    noun = "prompt" if len(by_prompt.starts) == 1 else "blueprint"
    names = np.asarray(by_prompt.models, dtype=object)
    found = _tested_pairs(summed, (names[first[shared]], names[second[shared]]), noun, margin)
    found = found.sort_values(["difference", "model", "other_model"], ascending=[False, True, True], ignore_index=True)
    return found[list(MODELS_COMPARED)]


def _by_prompt(cells: pd.DataFrame) -> _PromptScores:
    prompt, prompts = places(cells, ["blueprint", "prompt"])
    model, models = places(cells, ["model"])
    size = len(prompts) * len(models)
    place = prompt * len(models) + model
    n = np.bincount(place, minlength=size)
    total = np.bincount(place, cells["hybrid"].to_numpy(dtype=np.float64), minlength=size)
    scores = np.divide(total, n, out=np.full(size, np.nan), where=n > 0).reshape(len(prompts), len(models))
    weight = np.zeros(len(prompts))
    weight[prompt] = cells["weight"].to_numpy(dtype=np.float64)
    starts = np.flatnonzero(~prompts["blueprint"].duplicated().to_numpy())
    return _PromptScores(models["model"].tolist(), scores, weight, starts.astype(np.int64))


def _summed(rows: _PromptScores, left: Codes, right: Codes) -> _Summed:
    """A cluster is a blueprint, whose sums are its means and whose count is 1; of one blueprint, a prompt with its weight."""
    shared = ~np.isnan(rows.scores[:, left]) & ~np.isnan(rows.scores[:, right])
    counts = rows.weight[:, None] * shared
    scores, others = (counts * np.where(shared, rows.scores[:, side], 0.0) for side in (left, right))
    n_blueprints = (np.add.reduceat(shared, rows.starts, axis=0, dtype=np.int64) > 0).sum(axis=0)
    if len(rows.starts) > 1:
        scores, others, counts = (np.add.reduceat(part, rows.starts, axis=0) for part in (scores, others, counts))
        there = counts > 0
        scores, others = (np.divide(part, counts, out=np.zeros(part.shape), where=there) for part in (scores, others))
        counts = there.astype(np.float64)
    return _Summed(scores, others, counts, n_blueprints, shared.sum(axis=0))


def _tested_pairs(
    summed: _Summed,
    names: tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]],
    noun: str,
    margin: float,
) -> pd.DataFrame:
    """One row per pair, seen from the model with the higher mean."""
    scores, others = (np.abs(part) for part in (summed.scores, summed.others))
    sums = without_rounding(summed.scores - summed.others, scores + others)
    worse = without_rounding(sums.sum(axis=0), np.abs(sums).sum(axis=0)) < 0
    statistics = paired_statistics(
        np.where(worse, -sums, sums),
        summed.counts,
        noun=noun,
    )
    total = summed.counts.sum(axis=0)
    means = summed.scores.sum(axis=0) / total, summed.others.sum(axis=0) / total
    statistics = statistics.assign(
        model=np.where(worse, names[1], names[0]),
        other_model=np.where(worse, names[0], names[1]),
        score=np.where(worse, means[1], means[0]),
        other_score=np.where(worse, means[0], means[1]),
        n_blueprints=summed.n_blueprints,
        n_prompts=summed.n_prompts,
        p_adjusted=holm(statistics["p"]),
    )
    return statistics.assign(verdict=verdicts(statistics, (BETTER, WORSE, EQUIVALENT, UNDECIDED), margin))
