"""Numbers of boards as ratios of sums over the cells of a row, with what resampling them takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.boards.cells import identify
from dtef_pipeline.boards.scored import Codes, Deviations, Noise, Scored
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.effective_size import effective_items
from dtef_pipeline.statistics.resampling import Floats, Resampling, Spread, interval
from dtef_pipeline.statistics.shared_noise import ClusterNoise, shared_variance

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Chosen = npt.NDArray[np.bool_]
Term = tuple[Floats | float, Deviations, Codes | None]
Terms = Callable[[Floats, Any], Sequence[Term]]
"""The noise of a ratio, given its value and the subject's noise: factors of deviations, and where each cell's stand (None: as the cells)."""


class Parts(NamedTuple):
    """The cells of a row that are of one item, as one sample of people answered it."""

    starts: Codes  # (parts + 1,): where the cells of each begin in the grid's `order`, and the end
    place: Codes  # (parts,): cluster x rows + row
    sample: Codes  # (parts,)


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
    order: Codes  # (cells,) the cells by cluster, row and part
    starts: Codes  # (clusters x rows + 1,): where those of each cluster and row begin in `order`, and the end
    parts: Parts

    @property
    def correlation(self) -> Floats:
        """(rows,) of the noise of two items."""
        return self.subject.correlation(self.rows["model"])

    def column(self, name: str) -> Floats:
        return np.asarray(self.cells[name].to_numpy(dtype=np.float64, na_value=np.nan))

    def totals(self, values: Floats, chosen: Chosen) -> Floats:
        """(rows,) sums over the chosen cells."""
        return np.asarray(np.bincount(self.row[chosen], weights=values[chosen], minlength=len(self.rows)), dtype=np.float64)

    def sums(self, values: Floats, chosen: Chosen) -> Floats:
        """(clusters, rows) sums over the chosen cells."""
        adding = _adding(chosen[self.order].astype(np.float64), self.order, self.starts, len(self.cells))
        summed = adding @ np.where(chosen, values, 0)
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

    def deviations(self, terms: Sequence[Term], chosen: Chosen, correlation: Floats | float) -> ClusterNoise | None:
        """The noise of the sums over the chosen cells; `correlation` of two items, (rows,) or of all. None where there are no `terms`."""
        row, noise = self.parts.place % len(self.rows), None
        for factor, deviations, place in terms:
            factors = np.broadcast_to(np.asarray(factor, dtype=np.float32), len(self.rows))[row]
            columns = self.order if place is None else place[self.order]
            adding = _adding(chosen[self.order].astype(np.float32), columns, self.parts.starts, len(deviations))
            part = np.asarray(adding @ deviations) * factors[:, None]
            noise = part if noise is None else noise + part
        if noise is None:
            return None
        ends = np.searchsorted(self.parts.place, np.arange(len(self.starts)))
        summed = _adding(np.ones(len(noise), dtype=np.float32), np.arange(len(noise)), ends, len(noise)) @ noise
        cluster = self.parts.place // len(self.rows)
        shared = shared_variance(noise, row, cluster, self.parts.sample, len(self.rows), correlation)
        return ClusterNoise(np.ascontiguousarray(summed.T).reshape(noise.shape[1], self.clusters, len(self.rows)), shared)


def grid_of(
    subject: Scored, cells: pd.DataFrame, noise: Noise | None, names: Sequence[str], cluster: Codes, clusters: int
) -> Grid:
    row, rows = identify(cells, names)
    group, _ = identify(rows, [name for name in names if name not in MODEL])
    return _placed(Grid(subject, cells, noise, rows, row, group, cluster, clusters, row, row, Parts(row, row, row)))


def _placed(grid: Grid) -> Grid:
    """The grid with its cells in the order of cluster, row and part; without, where a row is a single item and nothing is resampled."""
    keys = grid.subject.keys
    if keys.item in grid.rows:
        return grid
    (item, items), (sample, _) = identify(grid.cells, keys.shared_item), identify(grid.cells, keys.space[:1])
    flat = grid.cluster * len(grid.rows) + grid.row
    counts = np.bincount(flat, minlength=grid.clusters * len(grid.rows))
    part = flat * len(items) + item
    order = np.argsort(part, kind="stable")
    first = np.flatnonzero(np.diff(part[order], prepend=-1))
    parts = Parts(np.append(first, len(order)), flat[order[first]], sample[order[first]])
    return replace(grid, order=order, starts=np.concatenate([[0], np.cumsum(counts)]), parts=parts)


def groups_of(grid: Grid, chosen: Chosen) -> Grid:
    """Some of the cells, whose rows are the groups."""
    rows = grid.rows.iloc[np.unique(grid.group, return_index=True)[1]]
    noise = None if grid.noise is None else grid.noise.of(np.flatnonzero(chosen))
    part = replace(
        grid, cells=grid.cells[chosen], noise=noise, rows=rows, row=grid.group[grid.row[chosen]], cluster=grid.cluster[chosen]
    )
    return _placed(part)


def _adding(values: npt.NDArray[np.floating], columns: Codes, starts: Codes, width: int) -> csr_matrix:
    """The matrix (rows, width) that adds up, with the factors `values`, what stands at `columns`; where each row begins, and the end."""
    from scipy.sparse import csr_matrix

    return csr_matrix((values, columns, starts), shape=(len(starts) - 1, width))


class Number(NamedTuple):
    """A ratio of sums for each row of the result: value, 95 % interval, replicates and what is known of them (None without resampling)."""

    value: Floats
    low: Floats
    high: Floats
    replicates: Floats | None
    spread: Spread | None = None

    def where(self, chosen: Chosen) -> Number:
        value, low, high = (np.where(chosen, part, np.nan) for part in (self.value, self.low, self.high))
        return self._replace(value=value, low=low, high=high)

    def columns(self, name: str) -> dict[str, Floats]:
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


class Sums(NamedTuple):
    """What a ratio is made of: its value (rows,), the sums over each cluster's cells and their number (clusters, rows), and their noise."""

    value: Floats
    numerators: Floats
    denominators: Floats
    cells: Floats
    noise: ClusterNoise | None


def sums_of(grid: Grid, top: Floats, bottom: Floats, terms: Terms, correlation: float | None = None) -> Sums:
    """Of the cells that have both; the value is null where the second sum is 0. `correlation` of the noise of two items, None: the row's."""
    chosen = np.isfinite(top) & np.isfinite(bottom)
    value = value_of(grid, top, bottom)
    noise = None
    if grid.noise is not None:
        known = grid.correlation if correlation is None else correlation
        noise = grid.deviations(terms(np.nan_to_num(value), grid.noise), chosen, known)
    counts = grid.sums(np.ones(len(chosen)), chosen)
    below = counts if (bottom[chosen] == 1).all() else grid.sums(bottom, chosen)
    return Sums(value, grid.sums(top, chosen), below, counts, noise)


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
    found = resampling.ratios(sums.numerators, sums.denominators, sums.noise, sizes=sums.cells, crossed=crossed)
    return Number(sums.value, *interval(found), found.replicates, found.spread)


def mean_of(grid: Grid, resampling: Resampling | None, values: Floats, terms: Terms, *, crossed: bool = True) -> Number:
    return ratio(grid, resampling, values, np.ones(len(values)), terms, crossed=crossed)


def without_interval(value: Floats) -> Number:
    nothing = np.full(len(value), np.nan)
    return Number(value, nothing, nothing, None)
