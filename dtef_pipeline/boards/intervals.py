"""Board values as ratios of sums over the cells of a row, with cluster-robust intervals and the family's measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.boards.cells import BoardOptions, BoardSubject, Codes, Deviations, Noise, identify
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.cluster_robust import (
    Estimates,
    Floats,
    estimate_ratios,
    estimate_shared_variance,
    explain_missing,
)
from dtef_pipeline.statistics.differences import sum_by_cluster

Mask = npt.NDArray[np.bool_]
NoiseTerm = tuple[Floats | float, Deviations, Codes | None]
NoiseTerms = Callable[[Floats, Any], Sequence[NoiseTerm]]
"""The noise of a ratio, given its value and the subject's noise: factors, deviations, and the row of each cell in them (None: as the cells)."""


class Samples(NamedTuple):
    """The cells of a row that belong to one item, as answered by one sample of people."""

    starts: Codes  # (parts + 1,): where the cells of each begin in the grid's `order`, and the end
    place: Codes  # (parts,): cluster x rows + row
    sample: Codes  # (parts,)


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of one setting as sums: `row` is the row of the result of each cell, `cluster` its unit of independence."""

    subject: BoardSubject
    cells: pd.DataFrame
    noise: Noise | None
    rows: pd.DataFrame  # keys of the result
    row: Codes  # (cells,)
    cluster: Codes  # (cells,)
    clusters: int
    order: Codes  # (cells,) the cells by cluster, row and part
    samples: Samples

    @property
    def is_of_items(self) -> bool:
        """Whether each row covers a single item: it has one cluster and no interval."""
        return self.subject.keys.item in self.rows

    def column(self, name: str) -> Floats:
        return np.asarray(self.cells[name].to_numpy(dtype=np.float64, na_value=np.nan))

    def totals(self, values: Floats, mask: Mask) -> Floats:
        """Return (rows,) sums over the chosen cells."""
        return np.asarray(np.bincount(self.row[mask], weights=values[mask], minlength=len(self.rows)), dtype=np.float64)

    def mean(self, values: Floats) -> Floats:
        """Return (rows,) means of the known values, NaN if there are none."""
        return self.ratio(values, np.ones(len(values)))

    def ratio(self, top: Floats, bottom: Floats) -> Floats:
        """Return (rows,) sum(top) / sum(bottom) over the cells that have both; NaN if the denominator is 0."""
        mask = np.isfinite(top) & np.isfinite(bottom)
        below = self.totals(bottom, mask)
        return np.asarray(np.divide(self.totals(top, mask), below, out=np.full(len(below), np.nan), where=below != 0))

    def count_distinct(self, names: Sequence[str], mask: Mask) -> Codes:
        """Return (rows,) the number of distinct values of these columns in the chosen cells."""
        code, _ = identify(self.cells[list(names)], list(names))
        row_codes = np.unique(self.row[mask] * (code.max(initial=0) + 1) + code[mask]) // (code.max(initial=0) + 1)
        return np.bincount(row_codes, minlength=len(self.rows))

    @property
    def correlation(self) -> Floats:
        """(rows,) correlation of the noise of two items."""
        return self.subject.correlation(self.rows["model"])

    def estimate(
        self,
        top: Floats,
        bottom: Floats,
        terms: NoiseTerms,
        correlation: float | None = None,
        *,
        floor: Floats | float = 0.0,
    ) -> Estimates:
        """Return sum(top) / sum(bottom) of each row over the cells that have both, (rows,), with its cluster-robust error.

        The error includes variance from people shared by all clusters: `terms` say how the ratio moves with their answers, `correlation` is
        that of the noise of two items (default: the row's model's). `floor`: lower bound of the variance of the sums due to people.
        """
        mask = np.isfinite(top) & np.isfinite(bottom)
        place, shape = (self.cluster[mask], self.row[mask]), (self.clusters, len(self.rows))
        counts = sum_by_cluster(*place, np.ones(mask.sum()), shape)
        below = counts if (bottom[mask] == 1).all() else sum_by_cluster(*place, bottom[mask], shape)
        shared = np.maximum(self.compute_shared_variance(terms, self.ratio(top, bottom), mask, correlation), floor)
        with np.errstate(divide="ignore", invalid="ignore"):
            return estimate_ratios(
                sum_by_cluster(*place, top[mask], shape),
                below,
                sizes=counts,
                shared=np.nan_to_num(shared / below.sum(axis=0) ** 2),
            )

    def compute_shared_variance(self, terms: NoiseTerms, value: Floats, mask: Mask, correlation: float | None = None) -> Floats:
        """Return (rows,) the variance of sums over the chosen cells due to shared people; 0 if their answers are unknown."""
        if self.noise is None:
            return np.zeros(len(self.rows))
        from scipy.sparse import csr_matrix

        row = self.samples.place % len(self.rows)
        noise: npt.NDArray[np.floating] = np.zeros((len(row), 1), dtype=np.float32)
        for factor, deviations, place in terms(np.nan_to_num(value), self.noise):
            factors = np.broadcast_to(np.asarray(factor, dtype=np.float32), len(self.rows))[row]
            columns = self.order if place is None else place[self.order]
            values, shape = mask[self.order].astype(np.float32), (len(row), len(deviations))
            adding = csr_matrix((values, columns, self.samples.starts), shape=shape)
            noise = noise + np.asarray(adding @ deviations) * factors[:, None]
        rho = self.correlation if correlation is None else correlation
        return estimate_shared_variance(
            noise, row, self.samples.place // len(self.rows), self.samples.sample, len(self.rows), rho
        )


def build_ratio_grid(options: BoardOptions, cells: pd.DataFrame, noise: Noise | None, names: Sequence[str]) -> Grid:
    """Build the grid of a board's cells for the rows that the columns `names` identify; `noise` is aligned with the cells."""
    subject = options.subject
    row, rows = identify(cells, names)
    cluster, clusters = identify(cells, ["cluster"])
    if noise is None or subject.keys.item in names:
        return Grid(subject, cells, None, rows, row, cluster, len(clusters), row, Samples(row, row, row))
    (item, items), (sample, _) = identify(cells, options.item_of_people), identify(cells, options.people)
    flat = cluster * len(rows) + row
    part = flat * len(items) + item
    order = np.argsort(part, kind="stable")
    first = np.flatnonzero(np.diff(part[order], prepend=-1))
    parts = Samples(np.append(first, len(order)), flat[order[first]], sample[order[first]])
    return Grid(subject, cells, noise, rows, row, cluster, len(clusters), order, parts)


class Measures(NamedTuple):
    """A family's further columns and notes for the rows of a board."""

    columns: Mapping[str, Floats]  # (rows,) each
    notes: Sequence[Sequence[str]]  # (rows,): what is missing and why


def board_intervals(cells: pd.DataFrame, noise: Noise | None, group_by: Sequence[str], options: BoardOptions) -> pd.DataFrame:
    """Return one row per group, setting and model variant of `cells` (from `load_cells`), with the subject's `columns`.

    `group_by`: columns of the group, empty for the overall board. `noise`: of the same cells; None for intervals only by clusters.

    `score_low`, `score_high`: 95 % interval of the mean score. `parsed_score`: mean over parsed draws. The subject's `items`: distinct
    items with a score; `independent`: clusters with one. `note`: what is missing and why. Further columns come from the subject's
    `measures`.
    """
    subject = options.subject
    names = [*group_by, *subject.keys.asked, *MODEL]
    if not len(cells):
        return pd.DataFrame(columns=[*names, *subject.columns])
    condition, conditions = identify(cells, subject.keys.asked)
    frames = []
    for code in range(len(conditions)):
        rows = np.flatnonzero(condition == code)
        part, part_noise = (
            (cells, noise) if len(conditions) == 1 else (cells.iloc[rows], None if noise is None else noise.select_cells(rows))
        )
        frames.append(_compute_intervals(build_ratio_grid(options, part, part_noise, names)))
    return pd.concat(frames, ignore_index=True)


def _compute_intervals(grid: Grid) -> pd.DataFrame:
    subject = grid.subject
    score = grid.column("score")
    has_score = np.isfinite(score)
    clusters = grid.count_distinct(["cluster"], has_score)
    low, high = np.full((2, len(grid.rows)), np.nan)
    if not grid.is_of_items:
        low, high = clip_to_unit(grid.estimate(score, np.ones(len(score)), lambda _, noise: [(1, noise.score, None)]))
    parsed_means = grid.mean(grid.column("parsed_score"))
    measures = subject.measures(grid)
    notes = (
        [explain_missing(int(n), subject.keys.cluster_noun), "no answer could be read" if n and np.isnan(mean) else "", *extra]
        for n, mean, extra in zip(clusters, parsed_means, measures.notes, strict=True)
    )
    columns: dict[str, npt.NDArray[np.generic]] = {
        "score_low": low,
        "score_high": high,
        "parsed_score": parsed_means,
        subject.items: grid.count_distinct(["same_item"], has_score),
        subject.independent: clusters,
        **measures.columns,
        "note": np.array(["; ".join(filter(None, reasons)) for reasons in notes], dtype=object),
    }
    return pd.concat([grid.rows, pd.DataFrame({name: columns[name] for name in subject.columns})], axis=1)


def clip_to_unit(score: Estimates) -> tuple[Floats, Floats]:
    """Return the ends of 95 % intervals of scores, clipped to 0-1."""
    low, high = score.interval()
    return np.maximum(low, 0), np.minimum(high, 1)
