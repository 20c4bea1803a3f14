"""Comparing every two models on the cells that both have a score for, and the tiers of models that cannot be told apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.boards.cells import BoardOptions
from dtef_pipeline.statistics.differences import Codes, Floats, paired_statistics, places, resampling_of, without_rounding
from dtef_pipeline.statistics.permutation import SIGNIFICANCE, fewest_clusters, holm, permutations_for
from dtef_pipeline.survey.boards.schemas import COMPARISONS

_ASKED = ["context_level", "condition"]
_WHO = ["model", "model_variant"]
_CELL = ["round", "segment", "question_id"]


class _Grid(NamedTuple):
    """The scores of a context level and condition, cells by models, cells of a cluster together."""

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
    """Every two models (variants) on the cells that both have a score for, the better one first; as COMPARISONS.

    `cells` as of `load_cells`, of which `noise` (rows, replicates) are the centred deviations under resampling of the observed answers. Pairs
    without a shared cell have no row. `difference` is in units of the score, above 0 or 0; `p` is of the sign-flip test of whole question
    clusters, `p_holm` adjusted over the pairs of the same context level and condition.
    """
    tables = []
    for level, condition, rows in _by_asked(cells):
        grid = _grid(cells.iloc[rows], None if noise is None else noise[rows])
        if len(grid.models) > 1:
            tables.append(_compared(grid, options).assign(context_level=level, condition=condition))
    if not tables:
        return pd.DataFrame(COMPARISONS.empty_table().to_pandas())
    table = pd.concat(tables, ignore_index=True).assign(targets=options.targets, metric=options.metric, seed=options.seed)
    return table[list(COMPARISONS.names)]


def _by_asked(cells: pd.DataFrame) -> Iterator[tuple[str, str, Codes]]:
    """Each context level and condition, levels from the smallest, with the places of its scored rows."""
    scored = np.flatnonzero(cells["score"].notna())
    code, asked = places(cells.iloc[scored][_ASKED], _ASKED)
    asked["size"] = asked["context_level"].map(context_size)
    for place, level, condition, _ in asked.sort_values(["size", "condition"]).itertuples():
        yield str(level), str(condition), scored[code == place]


def context_size(level: str) -> float:
    """What context levels are ordered by: the number of questions asked for, infinite for `all`."""
    return np.inf if level == "all" else float(level)


def _grid(rows: pd.DataFrame, noise: npt.NDArray[np.float32] | None) -> _Grid:
    model, models = places(rows, _WHO)
    cell, _ = places(rows, _CELL)
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
    """Sums over the shared cells of a cluster are products of its scores with who has a score: a small matrix a cluster."""
    here = ~np.isnan(grid.scores)
    mask, scores = here.astype(np.float64), np.where(here, grid.scores, 0.0)
    left, right = np.triu_indices(len(grid.models), k=1)
    clusters = len(grid.starts) - 1
    sums, others, counts = (np.empty((clusters, len(left))) for _ in range(3))
    deviations = None if grid.noise is None else np.empty((len(grid.noise), clusters, len(left)), dtype=np.float32)
    for cluster in range(clusters):
        cells = slice(grid.starts[cluster], grid.starts[cluster + 1])
        on_shared = scores[cells].T @ mask[cells]
        sums[cluster], others[cluster] = on_shared[left, right], on_shared[right, left]
        counts[cluster] = (mask[cells].T @ mask[cells])[left, right]
        if deviations is not None and grid.noise is not None:
            drawn = mask[cells].astype(np.float32).T @ grid.noise[:, cells]  # (replicates, who has a score, whose noise)
            deviations[:, cluster] = drawn[:, right, left] - drawn[:, left, right]
    return _Pairs(left, right, sums, others, counts, deviations)


def _compared(grid: _Grid, options: BoardOptions) -> pd.DataFrame:
    pairs = _pairs(grid)
    shared = pairs.counts.sum(axis=0) > 0
    sums = without_rounding(pairs.scores - pairs.others, pairs.scores + pairs.others)
    worse = sums.sum(axis=0) < 0
    sums = np.where(worse, -sums, sums)
    noise = None if pairs.noise is None else np.where(worse, -pairs.noise, pairs.noise)
    statistics = paired_statistics(
        sums,
        pairs.counts,
        resampling_of(len(sums), options.resamples, options.seed),
        permutations=permutations_for(int(shared.sum())),
        seed=options.seed,
        noise=noise,
    )
    with np.errstate(invalid="ignore"):
        means, other_means = (part.sum(axis=0) / pairs.counts.sum(axis=0) for part in (pairs.scores, pairs.others))
    statistics["score"], statistics["other_score"] = np.where(worse, other_means, means), np.where(worse, means, other_means)
    first, second = np.where(worse, pairs.right, pairs.left), np.where(worse, pairs.left, pairs.right)
    statistics[_WHO] = grid.models.iloc[first].to_numpy()
    statistics[["other_model", "other_variant"]] = grid.models.iloc[second].to_numpy()
    statistics = statistics[shared].rename(columns={"n_clusters": "n_questions"})
    statistics["p_holm"] = holm(statistics["p"])
    told = np.where(statistics["p_holm"] < SIGNIFICANCE, "better", "not told apart")
    statistics["verdict"] = np.where(statistics["p"].isna(), "not tested", told)
    statistics["note"] = _hopeless(statistics)
    table: pd.DataFrame = statistics.sort_values([*_WHO, "other_model", "other_variant"], ignore_index=True)
    return table


def _hopeless(statistics: pd.DataFrame) -> pd.Series:
    """The notes, with one where no difference could pass for more than chance: too few questions for so many pairs."""
    tested = int(statistics["p"].notna().sum())
    needed = fewest_clusters(tested)
    few = statistics["p"].notna() & (statistics["n_questions"] < needed)
    pairs = "this pair" if tested == 1 else f"{tested} pairs"
    said = statistics["n_questions"].astype(str) + f" questions cannot tell {pairs} apart: at least {needed} are needed"
    return statistics["note"].where(~few, said)


def tiers(board_rows: pd.DataFrame, compared: pd.DataFrame) -> pd.Series:
    """The tier of each row of an overall board, from 1, on the board's index; null for unranked models.

    `compared` as of `comparisons`, of the same scores. Down the ranking of each context level and condition, a tier holds its first model
    and all that follow until one that the first is better than (p_holm < .05): that one opens the next tier. Models of one tier are so not
    told apart from its first; that need not hold of every two of them. None where no pair of the level and condition could be told apart,
    because there are too few questions.
    """
    testable = compared[(compared["note"] == "") & compared["p"].notna()]
    able = set(zip(*(testable[name].astype(str) for name in _ASKED), strict=True))
    told = compared[compared["verdict"] == "better"]
    better = set(zip(*(told[name].astype(str) for name in (*_ASKED, *_WHO, "other_model", "other_variant")), strict=True))
    ranked = board_rows[board_rows["rank"].notna()].sort_values([*_ASKED, "rank", *_WHO], kind="stable")
    found = pd.Series(pd.NA, index=board_rows.index, dtype="Int64")
    asked: tuple[str, ...] = ()
    for index, *names in ranked[[*_ASKED, *_WHO]].astype(str).itertuples(name=None):
        if (names[0], names[1]) not in able:
            continue
        if (names[0], names[1]) != asked:
            asked, first, tier = (names[0], names[1]), names[2:], 1
        elif (*asked, *first, *names[2:]) in better:
            first, tier = names[2:], tier + 1
        found.loc[index] = tier
    return found
