"""Coverage of a rubric by a response: the mean over its criteria and the best of its alternative paths.

Source: weval methodology, 4.2, Weighted Aggregation and Handling of Alternative Paths. Unscored criteria are left out of every mean.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.blueprint.model import BLOCKS, SHOULD_NOT
from dtef_pipeline.rubric.hybrid import DOCUMENT, WORST_PATH, ScoringPolicy
from dtef_pipeline.rubric.levels import (
    CRITERION_KEYS,
    RESPONSE_KEYS,
    Codes,
    Floats,
    cast_keys,
    count,
    group_rows,
    sort_unique,
    sum_by_code,
    weighted_mean,
)

_NUMBERS = ("weight", "score")


class _Points(NamedTuple):
    """Points sorted by key, as arrays (points,), and their responses."""

    response: Codes
    n_responses: int
    weight: Floats
    is_in_path: npt.NDArray[np.bool_]
    path: Codes
    """(points in paths,): the path that each is in, of a block of a response."""
    block: Codes
    """(paths,): the block of a response that each path is in."""
    n_blocks: int
    response_of_block: Codes
    """(blocks of paths,): the response that each is of."""
    is_worst: npt.NDArray[np.bool_]
    """(blocks of paths,): whether the least score counts, not the highest."""


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
    layout = _arrange_points(frame, responses.code, len(responses), policy)
    score = _read_number_column(frame, "score")
    low, high = (_read_number_column(frame, name) for name in ("low", "high"))
    is_missing, size = np.isnan(score), len(responses)
    return responses.keys.assign(
        coverage=_compute_coverage(layout, score, policy),
        n_planned=count(responses.code, np.ones(len(frame), dtype=bool), size),
        n_scored=count(responses.code, ~is_missing, size),
        n_partial=count(responses.code, ~is_missing & (low < high), size),
        n_unscored=count(responses.code, is_missing, size),
    )


def _arrange_points(frame: pd.DataFrame, response: Codes, n_responses: int, policy: ScoringPolicy) -> _Points:
    has_path = frame["path"].notna().to_numpy()
    path_rows = frame.loc[has_path, ["block", "path"]].assign(response=response[has_path])
    paths = group_rows(path_rows, ("response", "block", "path"))
    blocks = group_rows(paths.keys, ("response", "block"))
    is_worst = (blocks.keys["block"] == SHOULD_NOT).to_numpy() & (policy.should_not_paths == WORST_PATH)
    block_responses = blocks.keys["response"].to_numpy(dtype=np.int64)
    weight = _read_number_column(frame, "weight")
    return _Points(response, n_responses, weight, has_path, paths.code, blocks.code, len(blocks), block_responses, is_worst)


def _compute_coverage(points: _Points, score: Floats, policy: ScoringPolicy) -> Floats:
    """Return the coverage of each response from scores (points,); NaN: unscored."""
    block_scores = _score_blocks(points, score)
    has_score = ~np.isnan(block_scores)
    blocks = sum_by_code(points.response_of_block[has_score], block_scores[has_score], points.n_responses)
    n_blocks = count(points.response_of_block, has_score, points.n_responses)
    is_required = ~np.isnan(score) & ~points.is_in_path
    weights = sum_by_code(points.response[is_required], points.weight[is_required], points.n_responses)
    sums = sum_by_code(points.response[is_required], (points.weight * score)[is_required], points.n_responses)
    if policy.or_paths == DOCUMENT:
        return _divide_scores(sums + blocks, weights + n_blocks)
    means = np.stack([_divide_scores(sums, weights), _divide_scores(blocks, n_blocks.astype(np.float64))])
    return _divide_scores(np.nansum(means, axis=0), (~np.isnan(means)).sum(axis=0).astype(np.float64))


def _score_blocks(points: _Points, score: Floats) -> Floats:
    """Return the mean of the path that counts, (blocks of paths,); NaN: no path has a score."""
    means = weighted_mean(points.path, score[points.is_in_path], points.weight[points.is_in_path], len(points.block))
    has_score = ~np.isnan(means)
    minima, best = np.full(points.n_blocks, np.inf), np.full(points.n_blocks, -np.inf)
    np.minimum.at(minima, points.block[has_score], means[has_score])
    np.maximum.at(best, points.block[has_score], means[has_score])
    scores = np.where(points.is_worst, minima, best)
    return np.where(np.isfinite(scores), scores, np.nan)


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
