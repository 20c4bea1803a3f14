"""Numbers of boards as ratios of sums over the cells of a row, with what resampling them takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from dtef_pipeline.boards.cells import identify
from dtef_pipeline.boards.scored import Codes, Deviations, Noise, Scored
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.effective_size import effective_items
from dtef_pipeline.statistics.resampling import Floats, Resampling, effective_clusters, interval

Chosen = npt.NDArray[np.bool_]
Term = tuple[Floats | float, Deviations, Codes | None]
Terms = Callable[[Floats, Any], Sequence[Term]]
"""The noise of a ratio, given its value and the subject's noise: factors of deviations, and where each cell's stand (None: as the cells)."""


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


def grid_of(
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


def groups_of(grid: Grid, chosen: Chosen) -> Grid:
    """Some of the cells, whose rows are the groups."""
    rows = grid.rows.iloc[np.unique(grid.group, return_index=True)[1]]
    noise = None if grid.noise is None else grid.noise.of(np.flatnonzero(chosen))
    part = replace(
        grid, cells=grid.cells[chosen], noise=noise, rows=rows, row=grid.group[grid.row[chosen]], cluster=grid.cluster[chosen]
    )
    return _placed(part)


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


def mean_of(grid: Grid, resampling: Resampling | None, values: Floats, terms: Terms, *, crossed: bool = True) -> Number:
    return ratio(grid, resampling, values, np.ones(len(values)), terms, crossed=crossed)


def without_interval(value: Floats) -> Number:
    nothing = np.full(len(value), np.nan)
    return Number(value, nothing, nothing, None)
