"""Two runs of one blueprint compared model by model: paired by what was asked, tested by whole prompts, p adjusted over the models."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.aggregate import CELL_LEVEL
from dtef_pipeline.rubric.levels import CELL_KEYS, in_order, with_key_types
from dtef_pipeline.statistics.differences import (
    MARGIN,
    cluster_sums,
    paired_statistics,
    places,
    verdicts,
    without_rounding,
)
from dtef_pipeline.statistics.multiplicity import holm
from dtef_pipeline.text.counted import counted

IMPROVEMENT, REGRESSION, EQUIVALENT, UNDECIDED = "improvement", "regression", "equivalent", "undecided"
_PAIRED_BY = ("prompt", "model", "model_variant", "temperature", "system_index")
RUNS_COMPARED = (
    *("blueprint", "snapshot", "other_snapshot", "model", "verdict", "difference", "low", "high", "score", "other_score"),
    *("n_prompts", "n_pairs", "effect_size", "p", "p_adjusted", "note"),
)

PROMPTS_THAT_MOVED = ("prompt", "difference", "score", "other_score", "n_pairs", "moved_model", "model_difference")
_DIGITS_THAT_ORDER = 12
"""Decimals of a move by which prompts are sorted: what differs by rounding alone is sorted by name."""


def compare_runs(
    before: pd.DataFrame,
    after: pd.DataFrame,
    *,
    margin: float = MARGIN,
) -> pd.DataFrame:
    """One row per model that both runs scored, the largest fall first; columns RUNS_COMPARED.

    `before`, `after`: scores (as of `scores`) of one run of the same blueprint each. A pair is a prompt as one variant answered it in both
    runs; the difference of hybrid scores, `after` less `before`, is averaged over pairs by the weight of the prompt in `after`. `low` and
    `high` (95 %) and `p` (t test; null with fewer than 5 prompts) take prompts as what is independent; `p_adjusted` is
    adjusted over the models (Holm 1979). `score`: of the pairs after, `other_score`: before, 0-1.

    `verdict`: regression or improvement where p_adjusted is below .05, else equivalent where the 90 % interval lies within +-`margin`, else
    undecided. Raises ConfigError where either table has not the cells of exactly one run, or the blueprints differ.
    """
    pairs = paired_cells(before, after)
    if not len(pairs):
        return pd.DataFrame(columns=list(RUNS_COMPARED))
    of_runs = {name: pairs[name].iloc[0] for name in ("blueprint", "snapshot", "other_snapshot")}
    found = _test_models(pairs, margin).assign(**of_runs)
    return found.sort_values(["difference", "model"], ignore_index=True)[list(RUNS_COMPARED)]


def moved_prompts(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """One row per prompt that a model was scored on in both runs, the largest move first, whichever way; columns PROMPTS_THAT_MOVED.

    `before`, `after` as of `compare_runs`, and so are the pairs. `difference`: mean of the hybrid scores after less those before, -1 to 1;
    `score`, `other_score`: the two means. `moved_model`: the model with the largest mean difference on the prompt, and `model_difference`.
    """
    pairs = paired_cells(before, after)
    if not len(pairs):
        return pd.DataFrame(columns=list(PROMPTS_THAT_MOVED))
    pairs = pairs.assign(difference=pairs["hybrid"] - pairs["hybrid_before"])
    by_prompt = pairs.groupby("prompt", sort=True)
    found = by_prompt[["difference", "hybrid", "hybrid_before"]].mean()
    found = found.rename(columns={"hybrid": "score", "hybrid_before": "other_score"}).assign(n_pairs=by_prompt.size())
    by_model = pairs.groupby(["prompt", "model"], sort=True)["difference"].mean().reset_index()
    by_model = by_model.assign(size=by_model["difference"].abs()).sort_values(["prompt", "size"], kind="stable")
    largest = by_model.drop_duplicates("prompt", keep="last").set_index("prompt")
    found = found.assign(moved_model=largest["model"], model_difference=largest["difference"])
    size = found["difference"].abs().round(_DIGITS_THAT_ORDER)
    found = found.assign(size=size).reset_index().sort_values(["size", "prompt"], ascending=[False, True], ignore_index=True)
    return found[list(PROMPTS_THAT_MOVED)]


def paired_cells(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """One row per prompt as one variant answered it in both runs: `hybrid` after, `hybrid_before`, and the prompt's `weight` after.

    Raises ConfigError as `compare_runs` does.
    """
    old, new = _cells(before, "before"), _cells(after, "after")
    if not len(old) or not len(new):
        return pd.DataFrame(columns=[*_PAIRED_BY, "weight", "hybrid", "hybrid_before"])
    blueprint, snapshot = _run(new, "after")
    other_blueprint, other_snapshot = _run(old, "before")
    if blueprint != other_blueprint:
        raise ConfigError(f"runs: got {other_blueprint} and {blueprint}; allowed: two runs of one blueprint")
    keys = list(_PAIRED_BY)
    pairs = new[[*keys, "weight", "hybrid"]].merge(old[[*keys, "hybrid"]], "inner", keys, suffixes=("", "_before"))
    pairs = pairs.dropna(subset=["hybrid", "hybrid_before"]).reset_index(drop=True)
    return pairs.assign(blueprint=blueprint, snapshot=snapshot, other_snapshot=other_snapshot)


def has_regression(compared: pd.DataFrame) -> bool:
    """Whether a model is worse than it was: what `--fail-on regression` asks of `compare_runs`."""
    return bool((compared["verdict"] == REGRESSION).any())


def _cells(table: pd.DataFrame, name: str) -> pd.DataFrame:
    rows = with_key_types(table, name, ("level", *CELL_KEYS, "hybrid", "weight"))
    return in_order(rows[rows["level"] == CELL_LEVEL].reset_index(drop=True), CELL_KEYS, name)


def _run(cells: pd.DataFrame, name: str) -> tuple[str, str]:
    runs = cells[["blueprint", "snapshot"]].drop_duplicates().astype(str).to_numpy().tolist()
    if len(runs) != 1:
        raise ConfigError(f"{name}: got cells of {counted(len(runs), 'run')}; allowed: one blueprint in one snapshot")
    return runs[0][0], runs[0][1]


def _test_models(pairs: pd.DataFrame, margin: float) -> pd.DataFrame:
    """One row per model of `pairs`: sums over each prompt's pairs, by weight, compared."""
    prompt, prompts = places(pairs, ["prompt"])
    model, models = places(pairs, ["model"])
    shape = len(prompts), len(models)
    weight = pairs["weight"].to_numpy(dtype=np.float64)
    weights = cluster_sums(prompt, model, weight, shape)
    now, then = (cluster_sums(prompt, model, weight * pairs[name], shape) for name in ("hybrid", "hybrid_before"))
    statistics = paired_statistics(
        without_rounding(now - then, np.abs(now) + np.abs(then)),
        weights,
        noun="prompt",
    )
    total = weights.sum(axis=0)
    statistics = statistics.assign(
        n_prompts=statistics["n_clusters"],
        model=models["model"],
        score=now.sum(axis=0) / total,
        other_score=then.sum(axis=0) / total,
        n_pairs=np.bincount(model, minlength=len(models)),
        p_adjusted=holm(statistics["p"]),
    )
    words = (IMPROVEMENT, REGRESSION, EQUIVALENT, UNDECIDED)
    return statistics.assign(verdict=verdicts(statistics, words, margin))
