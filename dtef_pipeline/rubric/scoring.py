"""Averages of scores: draws to a cell, cells to a variant, variants to a model in one run of a blueprint.

Means are over what has a score: points of a cell, prompts of a variant, variants of a model. Each level has the number of planned ones
and the reasons of missing ones.
"""

from __future__ import annotations

import math
import numpy as np
import numpy.typing as npt
import pandas as pd
from collections.abc import (Sequence)
from dataclasses import (dataclass)
from dtef_pipeline.errors import (ConfigError)
from dtef_pipeline.identity import (digest)
from dtef_pipeline.rubric.blueprint.model import (BLOCKS, SHOULD_NOT)
from dtef_pipeline.rubric.levels import (CELL_KEYS, CRITERION_KEYS, Codes, Floats, MODEL_KEYS, PROMPT_KEYS, RESPONSE_KEYS, RowGroups, VARIANT_KEYS, cast_keys, count, count_reasons, group_rows, sort_unique, sum_by_code, weighted_mean)
from typing import (NamedTuple)

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


_NUMBERS = ("weight", "score")


def compute_coverage(points: pd.DataFrame, policy: ScoringPolicy | None = None) -> pd.DataFrame:
    """Return one row per response that has points, sorted by its keys. `points`: one row per response and criterion.

    `points` has the keys of the response and of the criterion, `weight` (above 0) and `score` (0-1, already inverted for should_not; null:
    unscored). It may have `low` and `high` (range of the score if all verdicts were known).

    Columns in addition to the keys: `coverage` (0-1, higher is better; null: no point is scored), `n_planned`, `n_scored`, `n_partial`
    (scored although a judgement is missing: low < high), and `n_unscored`.

    Required points of both blocks are averaged by weight, together with one point of weight 1 per block of paths: the highest mean of a
    path, of should_not the lowest. If `or_paths` is two_group, the required points and the blocks of paths are averaged separately and
    count equally; if `should_not_paths` is max, the highest path counts everywhere. Points without a score, and paths and blocks without
    any, are left out. Raises ConfigError if a column is missing, two rows have one key, a block is unknown, or a number is out of range.
    """
    policy = policy or ScoringPolicy()
    frame = cast_keys(points, "points", (*RESPONSE_KEYS, *CRITERION_KEYS, *_NUMBERS))
    frame = sort_unique(frame, (*RESPONSE_KEYS, *CRITERION_KEYS), "points")
    _check(frame)
    responses = group_rows(frame, RESPONSE_KEYS)
    score = _read_number_column(frame, "score")
    low, high = (_read_number_column(frame, name) for name in ("low", "high"))
    is_missing, size = np.isnan(score), len(responses)
    return responses.keys.assign(
        coverage=_compute_coverage(frame, score, responses.code, size, policy),
        n_planned=count(responses.code, np.ones(len(frame), dtype=bool), size),
        n_scored=count(responses.code, ~is_missing, size),
        n_partial=count(responses.code, ~is_missing & (low < high), size),
        n_unscored=count(responses.code, is_missing, size),
    )


def _compute_coverage(frame: pd.DataFrame, score: Floats, response: Codes, size: int, policy: ScoringPolicy) -> Floats:
    """Return the coverage of each response, (size,), from scores (points,); NaN: unscored. `response`: that of each point."""
    weight, in_path = _read_number_column(frame, "weight"), frame["path"].notna().to_numpy()
    path_rows = frame.loc[in_path, ["block", "path"]].assign(response=response[in_path])
    block_scores, block_responses = _score_blocks(path_rows, score[in_path], weight[in_path], policy)
    has_score = ~np.isnan(block_scores)
    blocks = sum_by_code(block_responses[has_score], block_scores[has_score], size)
    n_blocks = count(block_responses, has_score, size)
    is_required = ~np.isnan(score) & ~in_path
    weights = sum_by_code(response[is_required], weight[is_required], size)
    sums = sum_by_code(response[is_required], (weight * score)[is_required], size)
    if policy.or_paths == DOCUMENT:
        return _divide_scores(sums + blocks, weights + n_blocks)
    means = np.stack([_divide_scores(sums, weights), _divide_scores(blocks, n_blocks.astype(np.float64))])
    return _divide_scores(np.nansum(means, axis=0), (~np.isnan(means)).sum(axis=0).astype(np.float64))


def _score_blocks(rows: pd.DataFrame, score: Floats, weight: Floats, policy: ScoringPolicy) -> tuple[Floats, Codes]:
    """Return the mean of the path that counts in each block of a response, (blocks,), NaN if no path has a score; and the responses of the
    blocks. `rows`: response, block and path of each point in a path.
    """
    paths = group_rows(rows, ("response", "block", "path"))
    blocks = group_rows(paths.keys, ("response", "block"))
    means = weighted_mean(paths.code, score, weight, len(paths))
    has_score = ~np.isnan(means)
    minima, best = np.full(len(blocks), np.inf), np.full(len(blocks), -np.inf)
    np.minimum.at(minima, blocks.code[has_score], means[has_score])
    np.maximum.at(best, blocks.code[has_score], means[has_score])
    is_worst = (blocks.keys["block"] == SHOULD_NOT).to_numpy() & (policy.should_not_paths == WORST_PATH)
    scores = np.where(is_worst, minima, best)
    return np.where(np.isfinite(scores), scores, np.nan), blocks.keys["response"].to_numpy(dtype=np.int64)


def _divide_scores(above: Floats, below: Floats) -> Floats:
    return np.asarray(np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0))


def _read_number_column(frame: pd.DataFrame, name: str) -> Floats:
    """Return the column as numbers; NaN: null, or no such column."""
    if name not in frame:
        return np.full(len(frame), np.nan)
    return frame[name].to_numpy(dtype=np.float64, na_value=np.nan)


def _check(frame: pd.DataFrame) -> None:
    """Raise ConfigError for the first invalid block or number."""
    weight = _read_number_column(frame, "weight")
    _refuse(frame, "block", ~frame["block"].isin(BLOCKS).to_numpy(), ", ".join(BLOCKS))
    _refuse(frame, "weight", ~((weight > 0) & np.isfinite(weight)), "a number above 0")
    for name in ("score", "low", "high"):
        values = _read_number_column(frame, name)
        _refuse(frame, name, (values < 0) | (values > 1), "a number from 0 to 1, or null")


def _refuse(frame: pd.DataFrame, name: str, wrong: npt.NDArray[np.bool_], requirement: str) -> None:
    if wrong.any():
        row = frame.iloc[int(np.argmax(wrong))]
        where = ", ".join(str(row[key]) for key in ("blueprint", "prompt", "model", *CRITERION_KEYS))
        raise ConfigError(f"points: {name} of {where}: got {row[name]}; allowed: {requirement}")


Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Hybrid(NamedTuple):
    """The hybrid score of each row at every weight of the similarity, (rows,) each; NaN: unscored."""

    intercept: Floats
    """The score if similarity has weight 0, 0-1."""
    slope: Floats
    """Change of the score as the weight goes from 0 to 1, -1 to 1."""


def compute_hybrid(
    coverage: npt.ArrayLike, similarity: npt.ArrayLike, has_criteria: npt.ArrayLike, has_ideal: npt.ArrayLike
) -> Hybrid:
    """Return beta max(0, similarity) + (1 - beta) coverage (weval methodology, 5.1), all (rows,).

    If the prompt has only criteria or only an ideal answer, that part is the score at every beta. The score is NaN if a part that the
    prompt defines is NaN, or if it defines neither.
    """
    coverages = np.asarray(coverage, dtype=np.float64)
    similar = np.maximum(np.asarray(similarity, dtype=np.float64), 0.0)
    rubric, ideal = np.asarray(has_criteria, dtype=bool), np.asarray(has_ideal, dtype=bool)
    intercept = np.where(rubric, coverages, np.where(ideal, similar, np.nan))
    slope = np.where(rubric & ideal, similar - coverages, 0.0)
    is_missing = np.isnan(intercept) | np.isnan(slope)
    return Hybrid(np.where(is_missing, np.nan, intercept), np.where(is_missing, np.nan, slope))


def compute_hybrid_at(intercept: npt.ArrayLike, slope: npt.ArrayLike, beta: float) -> Floats:
    """Return intercept + beta slope, the score at a weight of the similarity, as every board and the report's slider compute it.

    Means of hybrid scores are linear in beta, too, so this also applies to means. Raises ConfigError if beta is outside 0-1.
    """
    return np.asarray(intercept, dtype=np.float64) + require_beta(beta) * np.asarray(slope, dtype=np.float64)


DOCUMENT, TWO_GROUP = "document", "two_group"
OR_PATHS = (DOCUMENT, TWO_GROUP)
"""How alternative paths count: as one point of weight 1 (weval methodology, 4.2), or as much as all required points (upstream's code)."""
WORST_PATH, HIGHEST_PATH = "worst", "max"
SHOULD_NOT_PATHS = (WORST_PATH, HIGHEST_PATH)
"""Which alternative path of should_not counts: the most fulfilled one, or the least (upstream's code)."""
OFFLINE_EMBEDDER = "local/minilm-l6-int8"


@dataclass(frozen=True, slots=True)
class ScoringPolicy:
    """The settings of scoring. Raises ConfigError if a value is not allowed."""

    beta: float = 0.35
    """Weight of the similarity in the hybrid score, 0-1."""
    or_paths: str = DOCUMENT
    """document | two_group."""
    should_not_paths: str = WORST_PATH
    """worst | max."""
    embedder: str = OFFLINE_EMBEDDER
    """Default embedding model for similarity."""

    def __post_init__(self) -> None:
        require_beta(self.beta)
        _require_one_of("or_paths", self.or_paths, OR_PATHS)
        _require_one_of("should_not_paths", self.should_not_paths, SHOULD_NOT_PATHS)
        if not isinstance(self.embedder, str) or not self.embedder.strip():
            raise ConfigError(
                f"policy embedder: got {self.embedder!r}; allowed: the name of an embedder, such as {OFFLINE_EMBEDDER}"
            )

    @property
    def policy_hash(self) -> str:
        """32 hexadecimal digits, equal for policies that give the same scores."""
        return digest("policy", float(self.beta), self.or_paths, self.should_not_paths, self.embedder)


def require_beta(beta: float) -> float:
    """Return the weight of the similarity. Raises ConfigError unless it is a number from 0 to 1."""
    is_number = isinstance(beta, int | float) and not isinstance(beta, bool)
    if not is_number or not math.isfinite(beta) or not 0 <= beta <= 1:
        raise ConfigError(f"policy beta: got {beta!r}; allowed: a number from 0 (only coverage) to 1 (only similarity)")
    return float(beta)


def _require_one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"policy {name}: got {value!r}; allowed: {', '.join(choices)}")
