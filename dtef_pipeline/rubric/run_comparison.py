"""Comparisons of two runs of one blueprint by model: paired by prompt and variant, tested by whole prompts, p adjusted over the models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.pairs import EQUIVALENT, UNDECIDED, compare_models, sort_by_difference
from dtef_pipeline.judging.consensus import USUAL_SCALE
from dtef_pipeline.rubric.board import TEST_TAG, load_rubric_snapshot_order, load_tags, select_latest_runs
from dtef_pipeline.rubric.levels import CELL_KEYS, RUN_KEYS, cast_keys, sort_unique
from dtef_pipeline.rubric.scoring import CELL_LEVEL
from dtef_pipeline.statistics.differences import (
    MARGIN,
    Floats,
    compute_paired_statistics,
    places,
    remove_rounding,
    sum_by_cluster,
    verdicts,
)
from dtef_pipeline.statistics.multiplicity import holm
from dtef_pipeline.tables import COMPARISONS, build_family_rows
from dtef_pipeline.text.number_words import format_count

IMPROVEMENT, REGRESSION = "improvement", "regression"
_PAIRED_BY = ("prompt", "model", "model_variant", "temperature", "system_index")
RUNS_COMPARED = (
    *("blueprint", "snapshot", "other_snapshot", "model", "verdict", "difference", "low", "high", "score", "other_score"),
    *("n_prompts", "n_pairs", "effect_size", "p", "p_adjusted", "note"),
)

PROMPTS_THAT_MOVED = ("prompt", "difference", "score", "other_score", "n_pairs", "moved_model", "model_difference")
_DIGITS_THAT_ORDER = 12
"""Decimals of a change by which prompts are sorted: prompts that differ only by rounding are sorted by name."""


def compare_runs(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return one row per model that both runs scored, the largest fall first; columns RUNS_COMPARED.

    `before`, `after`: scores (see `compute_blueprint_scores`) of one run each of the same blueprint. A pair is a prompt answered by one
    variant in both runs; the difference of hybrid scores, `after` minus `before`, is averaged over pairs by the weight of the prompt in
    `after`. `low` and `high` (95 %) and `p` (t test; null with fewer than 5 prompts) treat prompts as independent; `p_adjusted` is adjusted
    over the models (Holm 1979). `score` and `other_score`: means of the pairs after and before, 0-1.

    `verdict`: regression or improvement if p_adjusted is below .05, else equivalent if the 90 % interval is within +-MARGIN, else
    undecided.
    """
    pairs = pair_run_cells(before, after)
    if not len(pairs):
        return pd.DataFrame(columns=list(RUNS_COMPARED))
    run_columns = {name: pairs[name].iloc[0] for name in ("blueprint", "snapshot", "other_snapshot")}
    results = _test_models(pairs).assign(**run_columns)
    return results.sort_values(["difference", "model"], ignore_index=True)[list(RUNS_COMPARED)]


def find_moved_prompts(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return one row per prompt on which both runs scored a model, the largest absolute change first; columns PROMPTS_THAT_MOVED.

    `before`, `after` and pairs: see `compare_runs`. `difference`: mean hybrid score after minus before, -1 to 1; `score`, `other_score`:
    the two means. `moved_model`: the model with the largest mean difference on the prompt, `model_difference`.
    """
    pairs = pair_run_cells(before, after)
    if not len(pairs):
        return pd.DataFrame(columns=list(PROMPTS_THAT_MOVED))
    pairs = pairs.assign(difference=pairs["hybrid"] - pairs["hybrid_before"])
    by_prompt = pairs.groupby("prompt", sort=True)
    moves = by_prompt[["difference", "hybrid", "hybrid_before"]].mean()
    moves = moves.rename(columns={"hybrid": "score", "hybrid_before": "other_score"}).assign(n_pairs=by_prompt.size())
    by_model = pairs.groupby(["prompt", "model"], sort=True)["difference"].mean().reset_index()
    by_model = by_model.assign(size=by_model["difference"].abs()).sort_values(["prompt", "size"], kind="stable")
    largest = by_model.drop_duplicates("prompt", keep="last").set_index("prompt")
    moves = moves.assign(moved_model=largest["model"], model_difference=largest["difference"])
    size = moves["difference"].abs().round(_DIGITS_THAT_ORDER)
    moves = moves.assign(size=size).reset_index().sort_values(["size", "prompt"], ascending=[False, True], ignore_index=True)
    return moves[list(PROMPTS_THAT_MOVED)]


def pair_run_cells(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return one row per prompt answered by one variant in both runs: `hybrid` after, `hybrid_before`, and the prompt's `weight` after."""
    old, new = (
        sort_unique(cast_keys(scores[scores["level"] == CELL_LEVEL]), CELL_KEYS, name)
        for scores, name in ((before, "before"), (after, "after"))
    )
    keys = list(_PAIRED_BY)
    old = old[[*keys, "snapshot", "hybrid"]].rename(columns={"snapshot": "other_snapshot"})
    pairs = new[[*keys, *RUN_KEYS, "weight", "hybrid"]].merge(old, "inner", keys, suffixes=("", "_before"))
    return pairs.dropna(subset=["hybrid", "hybrid_before"]).reset_index(drop=True)


def has_regression(comparisons: pd.DataFrame) -> bool:
    """Return whether a model became worse, for `--fail-on regression`; takes rows of `compare_runs`."""
    return bool((comparisons["verdict"] == REGRESSION).any())


def _test_models(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per model of `pairs`: comparisons of the weighted sums over each prompt's pairs."""
    prompt, prompts = places(pairs, ["prompt"])
    model, models = places(pairs, ["model"])
    shape = len(prompts), len(models)
    weight = pairs["weight"].to_numpy(dtype=np.float64)
    weights = sum_by_cluster(prompt, model, weight, shape)
    now, before = (sum_by_cluster(prompt, model, weight * pairs[name], shape) for name in ("hybrid", "hybrid_before"))
    differences = remove_rounding(now - before, np.abs(now) + np.abs(before))
    statistics = compute_paired_statistics(differences, weights, noun="prompt")
    total = weights.sum(axis=0)
    statistics = statistics.assign(
        n_prompts=statistics["n_clusters"],
        model=models["model"],
        score=now.sum(axis=0) / total,
        other_score=before.sum(axis=0) / total,
        n_pairs=np.bincount(model, minlength=len(models)),
        p_adjusted=holm(statistics["p"]),
    )
    words = (IMPROVEMENT, REGRESSION, EQUIVALENT, UNDECIDED)
    return statistics.assign(verdict=verdicts(statistics, words, MARGIN))


def compare_over_blueprints(table: pd.DataFrame, order: Sequence[str], blueprints: Sequence[str]) -> pd.DataFrame:
    """Return one row per two models that share a prompt, better one first, largest difference first: see `compare_models`.

    `table` and `order`: see `board`. `blueprints`: those that count. A model's score on a prompt is the mean over its scored variants.
    Within a blueprint the difference is averaged over shared prompts by their weights, then over blueprints, each counting once. Intervals
    (95 %) and `p` treat blueprints as independent, or prompts if there is only one blueprint.
    """
    cells = cast_keys(table)
    runs = select_latest_runs(cells, order)
    runs = runs[runs["blueprint"].isin(blueprints)]
    cells = cells[(cells["level"] == CELL_LEVEL) & cells["hybrid"].notna()].merge(runs, "inner", list(RUN_KEYS))
    if cells["model"].nunique() < 2:
        return pd.DataFrame()
    prompts, models, scores, weight = _build_score_matrix(cells)
    blueprint = places(prompts, ["blueprint"])[0]
    several = len(np.unique(blueprint)) > 1
    cluster, noun = (blueprint, "blueprint") if several else (np.arange(len(prompts)), "prompt")
    comparisons = compare_models(models, scores, cluster, noun=noun, weight=weight, alike=several, margin=MARGIN)
    return sort_by_difference(comparisons) if len(comparisons) else comparisons


def build_comparisons_table(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return COMPARISONS of the models over all blueprints without the tag `test`. `connection` has the tables of BOARD_READS."""
    scores = connection.execute("SELECT * EXCLUDE (reasons) FROM rubric_scores WHERE level IN ('cell', 'model')").df()
    blueprints = [blueprint for blueprint, tags in load_tags(connection).items() if TEST_TAG not in tags]
    comparisons = compare_over_blueprints(scores, load_rubric_snapshot_order(connection), blueprints)
    return build_family_rows(comparisons.assign(metric="hybrid"), COMPARISONS, "rubric")


def _build_score_matrix(cells: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, Floats, Floats]:
    """Return prompts, models, scores (prompts, models) with NaN if missing, and each prompt's weight in its blueprint (prompts,)."""
    prompt, prompts = places(cells, ["blueprint", "prompt"])
    model, models = places(cells, ["model"])
    size = len(prompts) * len(models)
    place = prompt * len(models) + model
    n = np.bincount(place, minlength=size)
    total = np.bincount(place, cells["hybrid"].to_numpy(dtype=np.float64), minlength=size)
    scores = np.divide(total, n, out=np.full(size, np.nan), where=n > 0).reshape(len(prompts), len(models))
    weight = np.zeros(len(prompts))
    weight[prompt] = cells["weight"].to_numpy(dtype=np.float64)
    return prompts, models, scores, weight


_MARKED_SCALE = re.compile(r"\[scale:(\d+)\]\Z")
_HOW_ON_ONE_SCALE = "`dtef rubric run --from judge` judges all of them on the `scale` of the panel file"
_HOW_BY_THE_SAME = "`dtef rubric run --from judge --judge APPROACH=MODEL` judges all of them with the same judges"


def select_averaged_runs(scores: pd.DataFrame, runs: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """Return the rows of `runs` that are the latest of their blueprint; `scores` and `order`: see `select_latest_runs`."""
    latest = select_latest_runs(scores, order).astype("str")
    return latest.merge(runs.astype({"blueprint": "str", "snapshot": "str"}), on=["blueprint", "snapshot"])


def describe_unlike_runs(runs: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence for each way in which the runs differ. `runs`: one row per blueprint, with `judges` (names), `judge_hash` and
    `policy`.

    Blueprints without judges are ignored when judges are compared.
    """
    yield from describe_several_policies(runs["policy"])
    names = pd.Series([list(judges) if judges is not None else [] for judges in runs["judges"]], dtype=object)
    judge_rows = pd.DataFrame({"names": names, "hash": runs["judge_hash"].tolist()})
    judge_rows = judge_rows[judge_rows["names"].map(len) > 0]
    # The judges of a run share one scale.
    marks = judge_rows["names"].map(lambda panel: [match[1] for name in panel if (match := _MARKED_SCALE.search(name))])
    scale = marks.map(lambda sizes: int(next(iter(sizes), USUAL_SCALE)))
    if len(scale.unique()) > 1:
        details = _format_groups(scale.map("{} classes".format))
        yield f"blueprints were judged on different scales, which cannot be compared: {details}; {_HOW_ON_ONE_SCALE}"
    name = judge_rows["names"].map(lambda panel: ", ".join(_MARKED_SCALE.sub("", judge) for judge in panel))
    has_one_hash = judge_rows.groupby([scale.rename("scale"), name.rename("name")])["hash"].transform("nunique") == 1
    name = name.where(has_one_hash, name + " with judge_hash " + judge_rows["hash"].str[:8])
    if len(name.unique()) > 1:
        yield f"blueprints were judged by different judges: {_format_groups(name)}; {_HOW_BY_THE_SAME}"


def describe_several_policies(policies: pd.Series) -> Iterator[str]:
    if len(policies.unique()) > 1:
        yield (
            f"blueprints were scored by different policies: {_format_groups(policies)}; `dtef rubric run --from judge` scores all by "
            "the same"
        )


def _format_groups(names: pd.Series) -> str:
    """Format counts of names: `ten (2 blueprints); five (1 blueprint)`, the most frequent first."""
    return "; ".join(f"{name} ({format_count(int(n), 'blueprint')})" for name, n in names.value_counts().items())
