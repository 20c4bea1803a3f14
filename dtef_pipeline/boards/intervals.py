"""What a board says beside its means: intervals, how sure the ranks are, and what the family measures.

Every number is a ratio of sums over the cells of a group, so that its replicates are products of the cluster weights with sums over each
cluster's cells. One set of weights and of drawn answers serves a whole board: numbers of two rows move together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.boards.cells import BoardOptions, identify
from dtef_pipeline.boards.ratios import Chosen, Grid, Number, Terms, grid_of, mean_of
from dtef_pipeline.boards.scored import Codes, Noise, Scored
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.ranks import rank_ranges
from dtef_pipeline.statistics.resampling import (
    MIN_CLUSTERS,
    Floats,
    Ratios,
    Resampling,
    interval,
    why_none,
)

_MUCH = 0.2
"""Part of the variance of a score from which the noise shared by all clusters makes its interval a conservative one: it rests on a constant."""
Floating = npt.NDArray[Any]


def board_intervals(
    cells: pd.DataFrame,
    noise: Noise | None,
    group_by: Sequence[str],
    options: BoardOptions,
    ranked: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """One row per group, way of asking and model variant that `cells` (of `load_cells`) have, with the subject's `columns`.

    `group_by` are the group's columns, none for the overall board. `noise`: of the same cells; None: intervals by clusters alone. `ranked`: all
    keys of the rows that are ranked; None: every row with a score.

    `score_low`, `score_high`: 95 % interval of the mean score, as every `low` and `high`; `adjusted_low`, `_high` of the score that models are
    ranked by. `parsed_score`: mean over parsed draws alone, with `parsed_low`, `_high`. The subject's `items`: different items with a score;
    `independent`: clusters with one; `effective`: as of `effective_items`. Its `corrected`: means, lower is better, with `_low` and `_high`.
    `rank_low`, `rank_high`, `p_best`: where 95 % of the replicates rank the row by adjusted score (equal rows take all of their places), and
    the share that put it first. `note`: what is missing and why. What else the columns say: the subject's `measures`.
    """
    subject = options.subject
    asked_by = subject.keys.asked
    if not len(cells):
        return pd.DataFrame(columns=[*group_by, *asked_by, *MODEL, *subject.columns])
    cluster, clusters = identify(cells, ["cluster"])
    resampling = None
    if options.resamples and subject.keys.item not in group_by:  # an item has one cluster: nothing to draw
        resampling = Resampling(len(clusters), resamples=options.resamples, seed=options.seed)
    asked, ways = identify(cells, asked_by)
    frames = []
    for code in range(len(ways)):
        rows = np.flatnonzero(asked == code)
        part, moved = (cells, noise) if len(ways) == 1 else (cells.iloc[rows], None if noise is None else noise.of(rows))
        grid = grid_of(subject, part, moved, [*group_by, *asked_by, *MODEL], cluster[rows], len(clusters))
        frames.append(_intervals(grid, resampling, ranked))
    return pd.concat(frames, ignore_index=True)


class Measured(NamedTuple):
    """What a family says of the rows of a board besides their means."""

    columns: Mapping[str, Floats]  # (rows,) each
    adjusted: Ratios | None  # the score that models are ranked by; None without resampling
    notes: Sequence[Sequence[str]]  # (rows,): what is missing and why


def _intervals(grid: Grid, resampling: Resampling | None, ranked: pd.DataFrame | None) -> pd.DataFrame:
    subject = grid.subject
    scored = np.isfinite(grid.column("score"))
    score = mean_of(grid, resampling, grid.column("score"), lambda _, noise: [(1, noise.score, None)])
    # The spread between clusters holds the noise of the answers already: only what all clusters share is added.
    parsed = mean_of(grid, resampling, grid.column("parsed_score"), lambda _, noise: [(1, noise.parsed, None)], crossed=False)
    clusters = grid.clusters_of(scored)
    items, effective = grid.items_of(scored)
    found: dict[str, Floating] = {
        "score_low": np.maximum(score.low, 0),
        "score_high": np.minimum(score.high, 1),
        "parsed_score": parsed.value,
        "parsed_low": np.maximum(parsed.low, 0),
        "parsed_high": np.minimum(parsed.high, 1),
        subject.items: items,
        subject.independent: clusters,
        subject.effective: effective,
    }
    for name in subject.corrected:
        found |= mean_of(grid, resampling, grid.column(name), _corrected(name), crossed=False).columns(name)
    measured = subject.measures(grid, resampling, score)
    found |= measured.columns
    found["adjusted_low"], found["adjusted_high"] = _ends(score.value, measured.adjusted)
    replicates = None if measured.adjusted is None else measured.adjusted.replicates
    found |= _ranks(grid, replicates, clusters, _is_ranked(grid, ranked, score.value))
    found["interval_kind"] = interval_kinds(subject, score)
    found["note"] = _notes(clusters, parsed.value, measured.notes, subject.keys.cluster_noun)
    return pd.concat([grid.rows, pd.DataFrame({name: found[name] for name in subject.columns})], axis=1)


def _ends(score: Floats, adjusted: Ratios | None) -> tuple[Floats, Floats]:
    if adjusted is None:
        return np.full(len(score), np.nan), np.full(len(score), np.nan)
    return interval(adjusted)


def _corrected(name: str) -> Terms:
    return lambda _, noise: [(1, noise.corrected[name], None)]


def _is_ranked(grid: Grid, ranked: pd.DataFrame | None, score: Floats) -> Chosen:
    if ranked is None:
        return np.isfinite(score)
    keys, wanted = np.zeros(len(score), dtype=np.int64), np.zeros(len(ranked), dtype=np.int64)
    for name in grid.rows:
        known = grid.rows[name].cat
        keys = keys * len(known.categories) + known.codes.to_numpy(dtype=np.int64)
        wanted = wanted * len(known.categories) + known.categories.get_indexer(pd.Index(ranked[name])).astype(np.int64)
    return np.isin(keys, wanted)


def _ranks(grid: Grid, adjusted: Floats | None, clusters: Floating, ranked: Chosen) -> dict[str, Floats]:
    """Range of ranks and chance of the first place, among the ranked rows of each group that have clusters enough."""
    found = {name: np.full(len(ranked), np.nan) for name in ("rank_low", "rank_high", "p_best")}
    for group in np.unique(grid.group) if adjusted is not None else []:
        rows = np.flatnonzero((grid.group == group) & ranked)
        enough = clusters[rows] >= MIN_CLUSTERS
        if adjusted is None or not enough.any():
            continue
        for name, values in zip(found, rank_ranges(adjusted[:, rows]), strict=True):
            found[name][rows[enough]] = values[enough]
    return found


def interval_kinds(subject: Scored, score: Number) -> npt.NDArray[np.object_]:
    """Which of the subject's kinds each row's intervals are, None without; judged by the score's."""
    with_people, conservative, alone = subject.interval_kinds
    if score.spread is None or score.replicates is None:
        return np.full(len(score.low), None, dtype=object)
    shared = score.spread.shared
    with np.errstate(invalid="ignore"):
        much = shared**2 > _MUCH * score.replicates.var(axis=0)
    kinds = np.where(much, conservative, np.where(shared > 0, with_people, alone)).astype(object)
    kinds[np.isnan(score.low)] = None
    return kinds


def _notes(clusters: Codes, parsed: Floats, others: Sequence[Sequence[str]], noun: str) -> npt.NDArray[np.object_]:
    """Why a row has no interval or lacks what was measured, in words; empty where it has all."""
    unread = ["no answer could be read" if n and np.isnan(mean) else "" for n, mean in zip(clusters, parsed, strict=True)]
    why = ([why_none(int(n), noun), nothing, *other] for n, nothing, other in zip(clusters, unread, others, strict=True))
    return np.array(["; ".join(filter(None, parts)) for parts in why], dtype=object)
