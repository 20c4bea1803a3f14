"""Comparisons of every two models of a board on the items that both have a score for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.item_means import codes, describe_few_clusters
from dtef_pipeline.boards.pairs import UNDECIDED, compare_models, sort_by_difference
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS, Codes, Floats
from dtef_pipeline.statistics.differences import MARGIN


class BoardGrid(NamedTuple):
    """The items of one board and the models with a score for any."""

    keys: dict[str, str]
    """The values that identify the board, by column."""
    rows: pd.DataFrame
    """(models,): model and model_variant, in the order of the text."""
    means: Floats
    """(items, models), each the mean over the draws that have a score; NaN: none. Items are in the order of their clusters, then of the text."""
    unit: Codes
    """(items,): equal for items of one cluster, from 0, rising."""
    noun: str
    """The name of such a group: `cluster`, or `item` if each item is its own."""
    scope: str = ""
    """What intervals cover, in words, if there are too few clusters and items are taken as independent."""

    def n_units(self) -> Codes:
        """Return (models,), the number of units in which each has a score."""
        starts = np.flatnonzero(np.diff(self.unit, prepend=-1))
        return np.asarray((np.add.reduceat(~np.isnan(self.means), starts, axis=0, dtype=np.int64) > 0).sum(axis=0))


def iterate_board_grids(scores: pa.Table, names: Sequence[str]) -> Iterator[BoardGrid]:
    """Yield a grid for each combination of `names` with a score, in order of first occurrence.

    `scores`: rows with `item_id`, `cluster`, `score`, `model`, `model_variant` and the columns of `names`.
    """
    score = scores["score"].cast(pa.float64()).to_numpy()
    places = np.flatnonzero(~np.isnan(score))
    scores, score = scores.take(pa.array(places)), score[places]
    group, first = codes(scores, names)
    item, cluster, model = (_rank_texts(scores, columns) for columns in (["item_id"], ["cluster"], MODEL))
    labels = scores.select(list(MODEL)).to_pandas().astype(str)
    named = scores.select(list(names)).take(pa.array(first)).to_pylist()
    order = np.argsort(group, kind="stable")
    for keys, rows in zip(named, np.split(order, np.flatnonzero(np.diff(group[order])) + 1), strict=False):
        yield _build_board_grid(keys, item[rows], cluster[rows], model[rows], score[rows], labels.iloc[rows])


def _build_board_grid(
    named: dict[str, str], item: Codes, cluster: Codes, model: Codes, score: Floats, labels: pd.DataFrame
) -> BoardGrid:
    items, first_of_item, place = np.unique(item, return_index=True, return_inverse=True)
    models, first_of_model, column = np.unique(model, return_index=True, return_inverse=True)
    shape = (len(items), len(models))
    flat = place * shape[1] + column
    counts = np.bincount(flat, minlength=len(items) * shape[1])
    sums = np.bincount(flat, score, len(counts))
    means = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0).reshape(shape)
    item_clusters = cluster[first_of_item]
    n_clusters = len(np.unique(item_clusters))
    several = MIN_CLUSTERS <= n_clusters < len(items)
    order = np.argsort(item_clusters, kind="stable") if several else np.arange(len(items))
    unit = np.unique(item_clusters[order], return_inverse=True)[1] if several else order
    rows = labels.iloc[first_of_model].reset_index(drop=True)
    note = describe_few_clusters(n_clusters) if n_clusters < len(items) else ""
    return BoardGrid(named, rows, means[order], unit.astype(np.int64), "cluster" if several else "item", note)


def _rank_texts(rows: pa.Table, names: Sequence[str]) -> Codes:
    """Return (rows,) the rank of each row's text among the distinct sorted texts, regardless of the order of the rows."""
    number, first = codes(rows, names)
    labels = rows.select(list(names)).take(pa.array(first)).to_pandas().astype(str)
    order = labels.sort_values(list(names)).index.to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[number]


_MAX_UNITS = 1_000
"""Number of units above which they are grouped into that many lots, each a cluster, to bound memory and time."""


def compare_boards(scores: pa.Table, boards: tuple[str, ...], *, margin: float = MARGIN) -> pd.DataFrame:
    """Return one row per two model variants of a board that share an item, better one first, largest difference first; see COMPARISONS.

    `scores`: as in `iterate_board_grids`, of one snapshot per partition; `boards`: columns that identify boards. A model's score for an
    item is the mean over its draws; `difference` is the mean over shared items. Intervals (95 %) and `p` take clusters as independent, or
    items if there are fewer than 5 clusters or each item is its own. `p_adjusted` is adjusted over all pairs of the board (Holm 1979). The
    verdict is that of `compare_models`, but always undecided with 2 to 4 clusters, because their items do not represent others.
    """
    tables = [compare_grid(grid, margin).assign(**grid.keys) for grid in iterate_board_grids(scores, boards)]
    parts = [part for part in tables if len(part)]
    return sort_by_difference(pd.concat(parts, ignore_index=True), boards) if parts else pd.DataFrame()


def compare_grid(grid: BoardGrid, margin: float = MARGIN) -> pd.DataFrame:
    """Apply `compare_models` to one board."""
    statistics = compare_models(grid.rows, grid.means, grid.unit % _MAX_UNITS, noun=grid.noun, margin=margin)
    if not grid.scope or not len(statistics):
        return statistics
    is_open = (statistics["note"] == "") & statistics["low"].notna()
    note = statistics["note"].mask(is_open, f"{grid.scope}, so the verdict stays open")
    return statistics.assign(verdict=UNDECIDED, note=note)
