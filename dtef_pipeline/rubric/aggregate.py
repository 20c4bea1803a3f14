"""Averages of scores: draws to a cell, cells to a variant, variants to a model in one run of a blueprint.

Means are over what has a score: points of a cell, prompts of a variant, variants of a model. Each level has the number of planned ones
and the reasons of missing ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.hybrid import ScoringPolicy, compute_hybrid, compute_hybrid_at
from dtef_pipeline.rubric.levels import (
    CELL_KEYS,
    MODEL_KEYS,
    PROMPT_KEYS,
    RESPONSE_KEYS,
    VARIANT_KEYS,
    Floats,
    RowGroups,
    cast_keys,
    count,
    count_reasons,
    group_rows,
    sort_unique,
    sum_by_code,
    weighted_mean,
)

CELL_LEVEL, VARIANT_LEVEL, MODEL_LEVEL = "cell", "variant", "model"
SCORE_NUMBERS = ("coverage", "similarity", "hybrid", "intercept", "slope")
"""Numbers that are averaged at every level."""
_POINT_COUNTS = ("n_planned", "n_scored", "n_partial", "n_unscored")
SCORE_COLUMNS = (
    "level",
    *CELL_KEYS,
    *SCORE_NUMBERS,
    "weight",
    *_POINT_COUNTS,
    "n_responses",
    "n_responses_scored",
    "reasons",
)
NOTHING_DEFINED = "neither criteria nor an ideal answer"
NO_COVERAGE = "no criterion could be scored"
NO_SIMILARITY = "no similarity to the ideal answer"


def compute_blueprint_scores(
    responses: pd.DataFrame,
    prompts: pd.DataFrame,
    coverages: pd.DataFrame,
    similar: pd.DataFrame,
    policy: ScoringPolicy | None = None,
) -> pd.DataFrame:
    """Return one row per cell, variant and model of each run: columns SCORE_COLUMNS, sorted by `level` and keys.

    `responses`: one row per planned response, with its keys and `reason`, why there is nothing to score (null: there is a response).
    `prompts`: one row per blueprint, prompt and, if it is a column, snapshot, see `weigh_prompts`. `coverages`: see `compute_coverage`.
    `similar`: the keys of a response and `similarity` to the ideal answer, -1 to 1, null if missing.

    `coverage`, `similarity` and `hybrid` (0-1 except the similarity, higher is better) are means: of a cell over its draws, of a variant
    over its cells by the weights of their prompts, of a model over its variants, unweighted; null if nothing is scored. `hybrid` is intercept +
    beta slope at every level. Keys that a level does not have are null.

    `n_planned`, `n_scored`, `n_partial` and `n_unscored` count the points of all draws of a cell, the prompts of a variant, and the
    variants of a model. Partial ones have a score although something is missing. `n_responses` counts planned responses, each draw
    separately, `n_responses_scored` those with a hybrid score, and `reasons` why the others have none. Raises ConfigError if a column is
    missing, two rows have one key, or a prompt has no weight.
    """
    policy = policy or ScoringPolicy()
    response_scores = _score_planned(responses, prompts, coverages, similar)
    cells = _average_cells(response_scores)
    variants = _aggregate_level(cells, VARIANT_KEYS, cells["weight"].to_numpy(np.float64), response_scores)
    models = _aggregate_level(variants, MODEL_KEYS, np.ones(len(variants)), response_scores)
    levels = zip((CELL_LEVEL, VARIANT_LEVEL, MODEL_LEVEL), (cells, variants, models), strict=True)
    table = pd.concat([rows.assign(level=level).reindex(columns=_WITHOUT_HYBRID) for level, rows in levels], ignore_index=True)
    scores = cast_keys(table, "scores")
    return scores.assign(hybrid=compute_hybrid_at(scores["intercept"], scores["slope"], policy.beta))[list(SCORE_COLUMNS)]


def weigh_prompts(prompts: pd.DataFrame, criteria: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of `prompts` that `compute_blueprint_scores` needs: keys, `weight`, `n_criteria` and `has_ideal`; one row per
    prompt.

    `prompts`: blueprint, prompt, snapshot if it is a column, `weight` and `ideal` (null: none). `criteria`: one row per criterion, with the
    same keys.
    """
    rows = cast_keys(prompts, "prompts", ("blueprint", "prompt", "weight", "ideal"))
    keys = [name for name in PROMPT_KEYS if name in rows]
    sizes = cast_keys(criteria, "criteria", keys).groupby(keys, as_index=False).size()
    weights = rows[[*keys, "weight"]].assign(has_ideal=rows["ideal"].notna())
    weights = weights.merge(sizes, "left", keys, validate="one_to_one").rename(columns={"size": "n_criteria"})
    return weights.assign(n_criteria=weights["n_criteria"].fillna(0).astype(np.int64))


_WITHOUT_HYBRID = [name for name in SCORE_COLUMNS if name != "hybrid"]


class _SortedResponses(NamedTuple):
    """Planned responses, sorted by key."""

    rows: pd.DataFrame  # keys, weight, numbers, counts of points
    reasons: pd.Series  # (rows,) why there is no hybrid score, null where there is one


def _score_planned(
    responses: pd.DataFrame, prompts: pd.DataFrame, coverages: pd.DataFrame, similar: pd.DataFrame
) -> _SortedResponses:
    keys = list(RESPONSE_KEYS)
    planned_rows = _select_sorted(responses, "responses", keys, ("reason",))
    prompt_keys = [name for name in PROMPT_KEYS if name in prompts]
    rows = planned_rows.merge(
        _select_sorted(prompts, "prompts", prompt_keys, ("weight", "n_criteria", "has_ideal")), "left", prompt_keys
    )
    _check_weights(rows)
    rows = rows.merge(_select_sorted(coverages, "coverage", keys, ("coverage", *_POINT_COUNTS)), "left", keys)
    rows = rows.merge(_select_sorted(similar, "similarity", keys, ("similarity",)), "left", keys)
    rows[list(_POINT_COUNTS)] = rows[list(_POINT_COUNTS)].fillna(0).astype(np.int64)
    n_missing = (rows["n_criteria"] - rows["n_planned"]).clip(lower=0).astype(np.int64)
    rows = rows.assign(n_planned=rows["n_planned"] + n_missing, n_unscored=rows["n_unscored"] + n_missing)
    rubric, ideal = rows["n_criteria"].to_numpy() > 0, rows["has_ideal"].to_numpy(dtype=bool)
    hybrid = compute_hybrid(rows["coverage"], rows["similarity"], rubric, ideal)
    rows = rows.assign(intercept=hybrid.intercept, slope=hybrid.slope)
    cases = [rows["reason"].notna(), ~rubric & ~ideal, rubric & rows["coverage"].isna()]
    reasons = np.select(cases, [rows["reason"].astype(object), NOTHING_DEFINED, NO_COVERAGE], NO_SIMILARITY)
    return _SortedResponses(rows, pd.Series(reasons, dtype=object).where(rows["intercept"].isna()))


def _select_sorted(table: pd.DataFrame, name: str, keys: list[str], columns: Sequence[str]) -> pd.DataFrame:
    """Return the keys and `columns` of a table, sorted by the keys, which must be unique."""
    return sort_unique(cast_keys(table, name, (*keys, *columns)), keys, name)[[*keys, *columns]]


def _check_weights(rows: pd.DataFrame) -> None:
    weight = rows["weight"].to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.flatnonzero(~((weight > 0) & np.isfinite(weight)))
    if len(wrong):
        row = rows.iloc[wrong[0]]
        problem = f"got {row['weight']}; allowed: a row with a number above 0"
        raise ConfigError(f"prompts: weight of {row['blueprint']}, {row['prompt']}: {problem}")


def _average_cells(responses: _SortedResponses) -> pd.DataFrame:
    """Return one row per cell: the unweighted mean over its draws, and the sum of their points."""
    rows, reasons = responses
    cells = group_rows(rows, CELL_KEYS)
    size, first = len(cells), np.unique(cells.code, return_index=True)[1]
    sums = {name: sum_by_code(cells.code, rows[name], size).astype(np.int64) for name in _POINT_COUNTS}
    return _average_groups(cells, rows, np.ones(len(rows))).assign(
        **sums,
        weight=rows["weight"].to_numpy(dtype=np.float64)[first],
        n_responses=count(cells.code, np.ones(len(rows), dtype=bool), size),
        n_responses_scored=count(cells.code, reasons.isna(), size),
        reasons=_collect_group_reasons(cells, reasons),
    )


def _aggregate_level(below: pd.DataFrame, names: Sequence[str], weights: Floats, responses: _SortedResponses) -> pd.DataFrame:
    """Return one row per combination of `names`: weighted means over the rows of the level below, their counts, and why responses have no
    score.
    """
    above = group_rows(below, names)
    size, has_score = len(above), below["intercept"].notna().to_numpy()
    is_complete = (below["n_partial"] + below["n_unscored"] == 0) & (below["n_responses"] == below["n_responses_scored"])
    return _average_groups(above, below, weights).assign(
        n_planned=count(above.code, np.ones(len(below), dtype=bool), size),
        n_scored=count(above.code, has_score, size),
        n_partial=count(above.code, has_score & ~is_complete, size),
        n_unscored=count(above.code, ~has_score, size),
        weight=np.nan,
        n_responses=sum_by_code(above.code, below["n_responses"], size).astype(np.int64),
        n_responses_scored=sum_by_code(above.code, below["n_responses_scored"], size).astype(np.int64),
        reasons=_collect_group_reasons(group_rows(responses.rows, names), responses.reasons),
    )


def _average_groups(groups: RowGroups, rows: pd.DataFrame, weights: Floats) -> pd.DataFrame:
    numbers = [name for name in SCORE_NUMBERS if name != "hybrid"]
    means = {
        name: weighted_mean(groups.code, rows[name].to_numpy(np.float64, na_value=np.nan), weights, len(groups))
        for name in numbers
    }
    return groups.keys.assign(**means)


def _collect_group_reasons(groups: RowGroups, reasons: pd.Series) -> pd.Series:
    has_reason = reasons.notna().to_numpy()
    return pd.Series(count_reasons(groups.code[has_reason], reasons[has_reason], len(groups)), dtype=object)
