"""What a board says beside its means: intervals, how sure the ranks are, and what the family measures.

Every number is a ratio of sums over the cells of a group, so that its replicates are products of the cluster weights with sums over each
cluster's cells. One set of weights and of drawn answers serves a whole board: numbers of two rows move together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from dtef_pipeline.boards.cells import BoardOptions, identify
from dtef_pipeline.boards.scored import Codes, Deviations, Noise, Scored
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.effective_size import effective_items
from dtef_pipeline.statistics.ranks import ranks
from dtef_pipeline.statistics.resampling import (
    CONFIDENCE,
    MIN_CLUSTERS,
    Floats,
    Resampling,
    effective_clusters,
    interval,
    why_none,
    within_limits,
)

_MUCH = 0.2
"""Part of the variance of a score from which the noise shared by all clusters makes its interval a conservative one: it rests on a constant."""
Chosen = npt.NDArray[np.bool_]
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
        grid = _grid(subject, part, moved, [*group_by, *asked_by, *MODEL], cluster[rows], len(clusters))
        frames.append(_intervals(grid, resampling, ranked))
    return pd.concat(frames, ignore_index=True)


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of one way of asking as sums: `row` is the row of the result that each belongs to, `cluster` what it is independent by."""

    subject: Scored
    cells: pd.DataFrame
    noise: Noise | None
    rows: pd.DataFrame  # keys of the result
    row: Codes  # (cells,)
    group: Codes  # (rows,): what is ranked together
    cluster: Codes  # (cells,)
    clusters: int
    order: Codes  # (cells,) the cells by cluster and row
    starts: Codes  # (clusters x rows + 1,): where those of each cluster and row begin in `order`, and the end

    @property
    def correlation(self) -> Floats:
        """(rows,) of the noise of two clusters."""
        return self.subject.correlation(self.rows["model"])

    def column(self, name: str) -> Floats:
        return np.asarray(self.cells[name].to_numpy(dtype=np.float64, na_value=np.nan))

    def totals(self, values: Floats, chosen: Chosen) -> Floats:
        """(rows,) sums over the chosen cells."""
        return np.asarray(np.bincount(self.row[chosen], weights=values[chosen], minlength=len(self.rows)), dtype=np.float64)

    def sums(self, values: Floats, chosen: Chosen) -> Floats:
        """(clusters, rows) sums over the chosen cells."""
        summed = self._adding(np.float64, chosen) @ np.where(chosen, values, 0)
        return np.asarray(summed.reshape(self.clusters, len(self.rows)))

    def clusters_of(self, chosen: Chosen) -> Codes:
        """(rows,) clusters with a chosen cell."""
        if self.subject.keys.item in self.rows:
            return np.minimum(self.totals(chosen.astype(np.float64), chosen), 1).astype(np.int64)
        return np.asarray((self.sums(np.ones(len(chosen)), chosen) > 0).sum(axis=0))

    def items_of(self, chosen: Chosen) -> tuple[Codes, Floats]:
        """(rows,) different items with a chosen cell, and their effective number."""
        if self.subject.keys.item in self.rows:
            return self.clusters_of(chosen), np.full(len(self.rows), np.nan)
        item, _ = identify(self.cells, ["same_item"])
        first = np.unique(item, return_index=True)[1]
        shape = (len(first), len(self.rows))
        flat = item[chosen] * shape[1] + self.row[chosen]
        score = self.column("score")[chosen]
        counts, sums = (
            np.bincount(flat, weights=weights, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
            for weights in (None, score)
        )
        return np.count_nonzero(counts, axis=0), effective_items(counts, sums, self.cluster[first])

    def deviations(self, noise: Deviations, chosen: Chosen, place: Codes | None = None) -> Deviations:
        """(replicates, clusters, rows) sums of noise over the chosen cells; `place`: where in `noise` a cell's stands."""
        summed = self._adding(np.float32, chosen, place, len(noise)) @ noise
        return np.ascontiguousarray(summed.T).reshape(noise.shape[1], self.clusters, len(self.rows))

    def _adding(self, kind: type, chosen: Chosen, place: Codes | None = None, width: int | None = None) -> sparse.csr_matrix:
        """The matrix (clusters x rows, cells or places) that adds up the chosen cells of each cluster and row."""
        columns = self.order if place is None else place[self.order]
        return sparse.csr_matrix(
            (chosen[self.order].astype(kind), columns, self.starts), shape=(len(self.starts) - 1, width or len(self.cells))
        )


def _grid(
    subject: Scored, cells: pd.DataFrame, noise: Noise | None, names: Sequence[str], cluster: Codes, clusters: int
) -> Grid:
    row, rows = identify(cells, names)
    group, _ = identify(rows, [name for name in names if name not in MODEL])
    return _placed(Grid(subject, cells, noise, rows, row, group, cluster, clusters, row, row))


def _placed(grid: Grid) -> Grid:
    """The grid with its cells in the order of cluster and row; without, where a row is a single item and nothing is resampled."""
    if grid.subject.keys.item in grid.rows:
        return grid
    flat = grid.cluster * len(grid.rows) + grid.row
    counts = np.bincount(flat, minlength=grid.clusters * len(grid.rows))
    return replace(grid, order=np.argsort(flat, kind="stable"), starts=np.concatenate([[0], np.cumsum(counts)]))


class Number(NamedTuple):
    """A ratio of sums for each row of the result: value, 95 % interval and replicates (None without resampling).

    `shared`: standard deviation of what the replicates share with those of all other numbers (`Ratios.shared`). `effective`: as of `Sums`.
    """

    value: Floats
    low: Floats
    high: Floats
    replicates: Floats | None
    shared: Floats | None = None
    effective: Floats | None = None

    def where(self, chosen: Chosen) -> Number:
        value, low, high = (np.where(chosen, part, np.nan) for part in (self.value, self.low, self.high))
        return self._replace(value=value, low=low, high=high)

    def columns(self, name: str) -> dict[str, Floats]:
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


Term = tuple[Floats | float, Deviations, Codes | None]
Terms = Callable[[Floats, Any], Sequence[Term]]
"""The noise of a ratio, given its value and the subject's noise: factors of deviations, and where each cell's stand (None: as the cells)."""


class Measured(NamedTuple):
    """What a family says of the rows of a board besides their means."""

    columns: Mapping[str, Floats]  # (rows,) each
    adjusted: Floats | None  # (replicates, rows) of the score that models are ranked by; None without resampling
    notes: Sequence[Sequence[str]]  # (rows,): what is missing and why


class Sums(NamedTuple):
    """What a ratio is made of: its value (rows,), the sums over each cluster's cells (clusters, rows), and their noise."""

    value: Floats
    numerators: Floats
    denominators: Floats
    noise: Deviations | None
    correlation: Floats  # (rows,) of the noise of two clusters
    effective: Floats  # (rows,): `effective_clusters` by their cells


def sums_of(grid: Grid, top: Floats, bottom: Floats, terms: Terms) -> Sums:
    """Of the cells that have both; the value is null where the second sum is 0."""
    chosen = np.isfinite(top) & np.isfinite(bottom)
    value = value_of(grid, top, bottom)
    noise = None
    if grid.noise is not None:
        for factor, deviations, place in terms(np.nan_to_num(value), grid.noise):
            part = grid.deviations(deviations, chosen, place) * np.asarray(factor, dtype=np.float32)
            noise = part if noise is None else noise + part
    counts = grid.sums(np.ones(len(chosen)), chosen)
    below = counts if (bottom[chosen] == 1).all() else grid.sums(bottom, chosen)
    return Sums(value, grid.sums(top, chosen), below, noise, grid.correlation, effective_clusters(counts))


def value_of(grid: Grid, top: Floats, bottom: Floats) -> Floats:
    """sum(top) / sum(bottom) over the cells that have both, null where the second is 0."""
    chosen = np.isfinite(top) & np.isfinite(bottom)
    below = grid.totals(bottom, chosen)
    return np.asarray(np.divide(grid.totals(top, chosen), below, out=np.full(len(below), np.nan), where=below != 0))


def ratio(
    grid: Grid, resampling: Resampling | None, top: Floats, bottom: Floats, terms: Terms, *, crossed: bool = True
) -> Number:
    """sum(top) / sum(bottom) with its percentile interval; `crossed` as of `Resampling.ratios`."""
    if resampling is None:
        return without_interval(value_of(grid, top, bottom))
    return number_of(sums_of(grid, top, bottom, terms), resampling, crossed=crossed)


def number_of(sums: Sums, resampling: Resampling, *, crossed: bool = True) -> Number:
    found = resampling.ratios(sums.numerators, sums.denominators, sums.noise, crossed=crossed, correlation=sums.correlation)
    ends = interval(found.replicates, found.n_clusters, found.between, sums.effective)
    return Number(sums.value, *ends, found.replicates, found.shared, sums.effective)


def without_interval(value: Floats) -> Number:
    nothing = np.full(len(value), np.nan)
    return Number(value, nothing, nothing, None)


def _intervals(grid: Grid, resampling: Resampling | None, ranked: pd.DataFrame | None) -> pd.DataFrame:
    subject = grid.subject
    scored = np.isfinite(grid.column("score"))
    score = mean_of(grid, resampling, grid.column("score"), lambda _, noise: [(1, noise.score, None)])
    score_low, score_high = within_limits(score.value, score.low, score.high)
    # The spread between clusters holds the noise of the answers already: only what all clusters share is added.
    parsed = mean_of(grid, resampling, grid.column("parsed_score"), lambda _, noise: [(1, noise.parsed, None)], crossed=False)
    parsed_low, parsed_high = within_limits(parsed.value, parsed.low, parsed.high)
    clusters = grid.clusters_of(scored)
    items, effective = grid.items_of(scored)
    found: dict[str, Floating] = {
        "score_low": score_low,
        "score_high": score_high,
        "parsed_score": parsed.value,
        "parsed_low": parsed_low,
        "parsed_high": parsed_high,
        subject.items: items,
        subject.independent: clusters,
        subject.effective: effective,
    }
    for name in subject.corrected:
        found |= mean_of(grid, resampling, grid.column(name), _corrected(name), crossed=False).columns(name)
    measured = subject.measures(grid, resampling, score)
    found |= measured.columns
    found["adjusted_low"], found["adjusted_high"] = _ends(measured.adjusted, clusters, score.effective)
    found |= _ranks(grid, measured.adjusted, clusters, _is_ranked(grid, ranked, score.value))
    found["interval_kind"] = _kinds(subject, score, score_low)
    found["note"] = _notes(clusters, parsed.value, measured.notes, subject.keys.cluster_noun)
    return pd.concat([grid.rows, pd.DataFrame({name: found[name] for name in subject.columns})], axis=1)


def _ends(replicates: Floats | None, clusters: Floating, effective: Floats | None) -> tuple[Floats, Floats]:
    if replicates is None:
        return np.full(len(clusters), np.nan), np.full(len(clusters), np.nan)
    return interval(replicates, clusters, effective=effective)


def _corrected(name: str) -> Terms:
    return lambda _, noise: [(1, noise.corrected[name], None)]


def mean_of(grid: Grid, resampling: Resampling | None, values: Floats, terms: Terms, *, crossed: bool = True) -> Number:
    return ratio(grid, resampling, values, np.ones(len(values)), terms, crossed=crossed)


def groups_of(grid: Grid, chosen: Chosen) -> Grid:
    """Some of the cells, whose rows are the groups."""
    rows = grid.rows.iloc[np.unique(grid.group, return_index=True)[1]]
    noise = None if grid.noise is None else grid.noise.of(np.flatnonzero(chosen))
    part = replace(
        grid, cells=grid.cells[chosen], noise=noise, rows=rows, row=grid.group[grid.row[chosen]], cluster=grid.cluster[chosen]
    )
    return _placed(part)


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
    """Range of ranks and chance of the first place, among the ranked rows of each group that have clusters enough.

    Equal rows take all of their places: of three that share place 8 each is at place 8 to 10.
    """
    found = {name: np.full(len(ranked), np.nan) for name in ("rank_low", "rank_high", "p_best")}
    tail = (1 - CONFIDENCE) / 2
    for group in np.unique(grid.group) if adjusted is not None else []:
        rows = np.flatnonzero((grid.group == group) & ranked)
        enough = clusters[rows] >= MIN_CLUSTERS
        if adjusted is None or not enough.any():
            continue
        drawn = np.nan_to_num(adjusted[:, rows], nan=-np.inf)
        best_place, worst_place = ranks(drawn), len(rows) + 1 - ranks(drawn, highest_first=False)
        first = best_place == 1
        low = np.quantile(best_place, tail, axis=0, method="inverted_cdf")
        high = np.quantile(worst_place, 1 - tail, axis=0, method="inverted_cdf")
        best = (first / first.sum(axis=1, keepdims=True)).mean(axis=0)
        for name, values in (("rank_low", low), ("rank_high", high), ("p_best", best)):
            found[name][rows[enough]] = values[enough]
    return found


def _kinds(subject: Scored, score: Number, low: Floats) -> npt.NDArray[np.object_]:
    """Which of the subject's kinds each row's intervals are, None without; judged by the score's."""
    with_people, conservative, alone = subject.interval_kinds
    if score.shared is None or score.replicates is None:
        return np.full(len(low), None, dtype=object)
    with np.errstate(invalid="ignore"):
        much = score.shared**2 > _MUCH * score.replicates.var(axis=0)
    kinds = np.where(much, conservative, np.where(score.shared > 0, with_people, alone)).astype(object)
    kinds[np.isnan(low)] = None
    return kinds


def _notes(clusters: Codes, parsed: Floats, others: Sequence[Sequence[str]], noun: str) -> npt.NDArray[np.object_]:
    """Why a row has no interval or lacks what was measured, in words; empty where it has all."""
    unread = ["no answer could be read" if n and np.isnan(mean) else "" for n, mean in zip(clusters, parsed, strict=True)]
    why = ([why_none(int(n), noun), nothing, *other] for n, nothing, other in zip(clusters, unread, others, strict=True))
    return np.array(["; ".join(filter(None, parts)) for parts in why], dtype=object)
