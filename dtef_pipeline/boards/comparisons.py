"""Comparing every two models on the cells that both have a score for, and the tiers of models that cannot be told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.boards.cells import BoardOptions
from dtef_pipeline.boards.scored import Scored
from dtef_pipeline.keys import MODEL, Keys
from dtef_pipeline.statistics.differences import Codes, Floats, paired_statistics, places, resampling_of, without_rounding
from dtef_pipeline.statistics.permutation import SIGNIFICANCE, fewest_clusters, holm, permutations_for
from dtef_pipeline.statistics.resampling import product
from dtef_pipeline.text.counted import counted

_OTHER = ("other_model", "other_variant")


class _Grid(NamedTuple):
    """The scores of what was asked in one way, cells by models, cells of a cluster together."""

    models: pd.DataFrame
    scores: Floats  # (cells, models), NaN: none
    noise: npt.NDArray[np.float32] | None  # (replicates, cells, models), 0 where there is no score
    starts: Codes  # (clusters + 1,): where the cells of each cluster begin, and the end


class _Pairs(NamedTuple):
    """Sums over each cluster's cells that both models of a pair have: all (clusters, pairs), noise (replicates, clusters, pairs)."""

    left: npt.NDArray[np.intp]
    right: npt.NDArray[np.intp]
    scores: Floats
    others: Floats
    counts: Floats
    noise: npt.NDArray[np.float32] | None


def comparisons(cells: pd.DataFrame, options: BoardOptions, noise: npt.NDArray[np.float32] | None = None) -> pd.DataFrame:
    """Every two models (variants) on the cells that both have a score for, the better one first; as the subject's `comparisons`.

    `cells` as of `load_cells`, of which `noise` (rows, replicates) are the centred deviations under resampling of the observed answers. Pairs
    without a shared cell have no row. `difference` is in units of the score, above 0 or 0; `p` is of the sign-flip test of whole clusters,
    `p_holm` adjusted over the pairs that were asked in the same way.
    """
    schema, tables = options.subject.comparisons, []
    for asked, rows in _by_asked(cells, options.subject):
        grid = _grid(cells.iloc[rows], options.subject.keys, None if noise is None else noise[rows])
        if len(grid.models) > 1:
            tables.append(_compared(grid, options).assign(**asked))
    if not tables:
        return pd.DataFrame(schema.empty_table().to_pandas())
    table = pd.concat(tables, ignore_index=True).assign(targets=options.targets, metric=options.metric, seed=options.seed)
    return table[list(schema.names)]


def _by_asked(cells: pd.DataFrame, subject: Scored) -> Iterator[tuple[Mapping[str, str], Codes]]:
    """Each way of asking, by column, smallest first, with the places of its scored rows."""
    names = list(subject.keys.asked)
    scored = np.flatnonzero(cells["score"].notna())
    code, asked = places(cells.iloc[scored][names], names)
    asked["size"] = asked[names[0]].map(subject.size)
    for place, *values in asked.sort_values(["size", *names[1:]])[names].astype(str).itertuples():
        yield dict(zip(names, values, strict=True)), scored[code == place]


def _grid(rows: pd.DataFrame, keys: Keys, noise: npt.NDArray[np.float32] | None) -> _Grid:
    model, models = places(rows, list(MODEL))
    cell, _ = places(rows, list(keys.pair))
    cluster_of = places(rows.iloc[np.unique(cell, return_index=True)[1]], ["cluster"])[0]
    order = np.argsort(cluster_of, kind="stable")
    place = np.argsort(order)[cell]
    scores = np.full((len(order), len(models)), np.nan)
    scores[place, model] = rows["score"]
    deviations = None
    if noise is not None:
        deviations = np.zeros((noise.shape[1], *scores.shape), dtype=np.float32)
        deviations[:, place, model] = np.nan_to_num(noise).T
    starts = np.searchsorted(cluster_of[order], np.arange(cluster_of.max() + 2))
    return _Grid(models, scores, deviations, starts)


def _pairs(grid: _Grid) -> _Pairs:
    """Sums over the shared cells of a cluster are products of its scores with who has a score: one small matrix per cluster."""
    here = ~np.isnan(grid.scores)
    mask, scores = here.astype(np.float64), np.where(here, grid.scores, 0.0)
    left, right = np.triu_indices(len(grid.models), k=1)
    clusters = len(grid.starts) - 1
    sums, others, counts = (np.empty((clusters, len(left))) for _ in range(3))
    deviations = None if grid.noise is None else np.empty((len(grid.noise), clusters, len(left)), dtype=np.float32)
    for cluster in range(clusters):
        cells = slice(grid.starts[cluster], grid.starts[cluster + 1])
        on_shared = product(scores[cells].T, mask[cells])
        sums[cluster], others[cluster] = on_shared[left, right], on_shared[right, left]
        counts[cluster] = product(mask[cells].T, mask[cells])[left, right]
        if deviations is not None and grid.noise is not None:
            # (replicates, who has a score, whose noise)
            drawn = product(mask[cells].astype(np.float32).T, grid.noise[:, cells])
            deviations[:, cluster] = drawn[:, right, left] - drawn[:, left, right]
    return _Pairs(left, right, sums, others, counts, deviations)


def _compared(grid: _Grid, options: BoardOptions) -> pd.DataFrame:
    pairs = _pairs(grid)
    shared = pairs.counts.sum(axis=0) > 0
    sums = without_rounding(pairs.scores - pairs.others, pairs.scores + pairs.others)
    worse = without_rounding(sums.sum(axis=0), np.abs(sums).sum(axis=0)) < 0
    sums = np.where(worse, -sums, sums)
    noise = None if pairs.noise is None else np.where(worse, -pairs.noise, pairs.noise)
    subject = options.subject
    statistics = paired_statistics(
        sums,
        pairs.counts,
        resampling_of(len(sums), options.resamples, options.seed),
        permutations=permutations_for(int(shared.sum())),
        seed=options.seed,
        noise=noise,
        noun=subject.keys.noun,
    )
    with np.errstate(invalid="ignore"):
        means, other_means = (part.sum(axis=0) / pairs.counts.sum(axis=0) for part in (pairs.scores, pairs.others))
    statistics["score"], statistics["other_score"] = np.where(worse, other_means, means), np.where(worse, means, other_means)
    first, second = np.where(worse, pairs.right, pairs.left), np.where(worse, pairs.left, pairs.right)
    statistics[list(MODEL)] = grid.models.iloc[first].to_numpy()
    statistics[list(_OTHER)] = grid.models.iloc[second].to_numpy()
    statistics = statistics[shared].rename(columns={"n_clusters": subject.items})
    statistics["p_holm"] = holm(statistics["p"])
    tested = np.where(statistics["p_holm"] < SIGNIFICANCE, "better", "not told apart")
    statistics["verdict"] = np.where(statistics["p"].isna(), "not tested", tested)
    statistics["note"] = _hopeless(statistics, subject)
    table: pd.DataFrame = statistics.sort_values([*MODEL, *_OTHER], ignore_index=True)
    return table


def _hopeless(statistics: pd.DataFrame, subject: Scored) -> pd.Series:
    """The notes, with one where no difference could pass for more than chance: too few clusters for so many pairs."""
    tested = int(statistics["p"].notna().sum())
    needed = fewest_clusters(tested)
    few = statistics["p"].notna() & (statistics[subject.items] < needed)
    pairs = "this pair" if tested == 1 else counted(tested, "pair")
    items = pd.Series([counted(n, subject.keys.noun) for n in statistics[subject.items]], statistics.index, dtype=object)
    too_few = items + f" cannot tell {pairs} apart: at least {needed} are needed"
    return statistics["note"].where(~few, too_few)


def tiers(board_rows: pd.DataFrame, compared: pd.DataFrame, keys: Keys) -> pd.Series:
    """The tier of each row of an overall board, from 1, on the board's index; null for unranked models.

    `compared` as of `comparisons`, of the same scores. Down the ranking of each way of asking, a tier holds its first model and all that
    follow until one that the first is better than (p_holm < .05): that one opens the next tier. Models of one tier are so not told apart from
    its first; that need not hold of every two of them. None where no pair that was asked in that way could be told apart, because there are
    too few clusters.
    """
    testable = compared[(compared["note"] == "") & compared["p"].notna()]
    able = set(zip(*(testable[name].astype(str) for name in keys.asked), strict=True))
    won = compared[compared["verdict"] == "better"]
    better = set(zip(*(won[name].astype(str) for name in (*keys.asked, *MODEL, *_OTHER)), strict=True))
    ranked = board_rows[board_rows["rank"].notna()].sort_values([*keys.asked, "rank", *MODEL], kind="stable")
    found = pd.Series(pd.NA, index=board_rows.index, dtype="Int64")
    asked: tuple[str, ...] = ()
    for index, *names in ranked[[*keys.asked, *MODEL]].astype(str).itertuples(name=None):
        way, who = tuple(names[: len(keys.asked)]), names[len(keys.asked) :]
        if way not in able:
            continue
        if way != asked:
            asked, first, tier = way, who, 1
        elif (*asked, *first, *who) in better:
            first, tier = who, tier + 1
        found.loc[index] = tier
    return found


def why_no_tier(board_rows: pd.DataFrame, compared: pd.DataFrame, keys: Keys) -> pd.Series:
    """Why each ranked row of a board with the column `tier` has none, in words, on the board's index; empty for all others.

    `compared` as of `comparisons`, of the same scores: what it notes most often of the pairs that were asked in the same way.
    """
    noted = compared[compared["note"] != ""]
    reasons = {
        tuple(map(str, way)): Counter(rows["note"]).most_common(1)[0][0]
        for way, rows in noted.groupby(list(keys.asked), observed=True)
    }
    ways = zip(*(board_rows[name].astype(str) for name in keys.asked), strict=True)
    said = pd.Series([reasons.get(way, "no other model to compare with") for way in ways], board_rows.index, dtype=object)
    return said.where(board_rows["rank"].notna() & board_rows["tier"].isna(), "")
