"""Comparisons of every two models on the cells that both have a score for, and the ranks that they leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.boards.cells import BoardOptions, BoardSubject
from dtef_pipeline.boards.pairs import (
    BETTER,
    OTHER,
    PairSums,
    add_families,
    add_model_columns,
    compare_pairs,
    product,
    sum_shared_items,
)
from dtef_pipeline.keys import MODEL, Keys
from dtef_pipeline.statistics.cluster_robust import compute_common_variance
from dtef_pipeline.statistics.differences import Codes, Floats, places
from dtef_pipeline.statistics.ranks import rank_bounds
from dtef_pipeline.text.number_words import list_first_names

_MOST_NAMED = 3
_OF_PARSED = {"n_pairs": "n_parsed_pairs", "difference": "parsed_difference", "p": "parsed_p", "note": "parsed_note"}
"""The columns from parsed scores only, by the name of the same number under the policy."""


_OF_COMPARISON = (
    *(*MODEL, "targets", "metric", *OTHER, "n_pairs", "n_items", "n_clusters", "score", "other_score", "difference", "low"),
    *("high", "effect_size", "p", "adjusted_over", "p_adjusted", "verdict", "n_parsed_pairs", "parsed_difference"),
    *("parsed_p", "parsed_p_adjusted", "parsed_verdict", "parsed_note", "note"),
)
"""The columns of comparisons, except those of the setting."""


class _Grid(NamedTuple):
    """The scores of one setting, cells by models, cells of a cluster together."""

    models: pd.DataFrame
    scores: Floats  # (cells, models), NaN: none
    noise: npt.NDArray[np.float32] | None  # (replicates, cells, models), 0 where there is no score
    cluster: Codes  # (cells,) from 0, rising
    part: Codes  # (cells,): the item in its sample of people, in order within a cluster
    sample: Codes  # (cells,): of people
    parsed: Floats  # (cells, models): scores of only the parsed responses, NaN: none
    answered: npt.NDArray[np.float32]  # (cells, models): responses per parsed one, 0 where none is
    item: Codes  # (cells,): the item that each is of


class _Pairs(NamedTuple):
    """Sums over each cluster's cells that both models of a pair have, (clusters, pairs) each."""

    left: npt.NDArray[np.intp]
    right: npt.NDArray[np.intp]
    sums: PairSums
    items: Codes  # (pairs,): different items among the shared cells
    noise: Floats  # (pairs,): variance of the sums that people make if the noise of items correlated by 1; 0: not known


def compare_all_pairs(
    cells: pd.DataFrame, options: BoardOptions, noise: npt.NDArray[np.float32] | None = None, *, has_parsed: bool = True
) -> pd.DataFrame:
    """Compare every two models (variants) on the cells that both have a score for, the better one first.

    `cells`: see `load_cells`; `noise` (rows, replicates): their centred deviations when the answers are drawn again. Pairs without a shared
    cell have no row. `difference` is in units of the score, at least 0, with its cluster-robust interval and the `p` of its t test.
    `adjusted_over`, `p_adjusted` and the verdicts: see `add_families`.

    Columns that begin with `parsed_` cover only the parsed scores of cells where both have one; without `has_parsed` they are null.
    """
    tables = []
    for condition, rows in _iterate_conditions(cells, options.subject):
        grid = _build_grid(cells.iloc[rows], options, None if noise is None else noise[rows])
        if len(grid.models) > 1:
            tables.append(_compare(grid, options, has_parsed).assign(**condition))
    if not tables:
        return pd.DataFrame(columns=[*options.subject.keys.asked, *_OF_COMPARISON])
    table = add_families(pd.concat(tables, ignore_index=True), options)
    return table.assign(targets=options.targets, metric=options.metric)[[*options.subject.keys.asked, *_OF_COMPARISON]]


def _iterate_conditions(cells: pd.DataFrame, subject: BoardSubject) -> Iterator[tuple[Mapping[str, str], Codes]]:
    """Yield each setting, by column, smallest first, with the positions of its scored rows."""
    names = list(subject.keys.asked)
    scored_rows = np.flatnonzero(cells["score"].notna())
    code, conditions = places(cells.iloc[scored_rows][names], names)
    conditions["size"] = conditions[names[0]].map(subject.size)
    for place, *values in conditions.sort_values(["size", *names[1:]])[names].astype(str).itertuples():
        yield dict(zip(names, values, strict=True)), scored_rows[code == place]


def _build_grid(rows: pd.DataFrame, options: BoardOptions, noise: npt.NDArray[np.float32] | None) -> _Grid:
    keys = options.subject.keys
    model, models = places(rows, list(MODEL))
    cell, _ = places(rows, list(keys.pair))
    first = rows.iloc[np.unique(cell, return_index=True)[1]]
    cluster, item = (places(first, [name])[0] for name in ("cluster", "same_item"))
    part, sample = (places(first, names)[0] for names in (options.item_of_people, options.people))
    order = np.lexsort((part, cluster))
    place = np.argsort(order)[cell]
    scores, parsed_scores = (np.full((len(order), len(models)), np.nan) for _ in range(2))
    scores[place, model], parsed_scores[place, model] = rows["score"], rows["parsed_score"]
    ratios = np.zeros(scores.shape, dtype=np.float32)
    ratios[place, model] = rows["n_answered"] / rows["n_ok"].clip(lower=1) * rows["parsed_score"].notna()
    deviations = None
    if noise is not None:
        deviations = np.zeros((noise.shape[1], *scores.shape), dtype=np.float32)
        deviations[:, place, model] = np.nan_to_num(noise).T
    return _Grid(models, scores, deviations, cluster[order], part[order], sample[order], parsed_scores, ratios, item[order])


def _sum_pairs(grid: _Grid, left: Codes, right: Codes) -> _Pairs:
    """Compute sums over shared cells. `left` and `right` (pairs,) are the models of each pair."""
    mask = (~np.isnan(grid.scores)).astype(np.float64)
    sums = sum_shared_items(grid.scores, grid.cluster, left, right)
    by_item = np.argsort(grid.item, kind="stable")
    parts = np.split(mask[by_item], np.flatnonzero(np.diff(grid.item[by_item])) + 1)
    items = sum(product(part.T, part)[left, right] > 0 for part in parts)
    return _Pairs(left, right, sums, np.asarray(items, dtype=np.int64), _estimate_pair_noise(grid, mask, left, right))


def _estimate_pair_noise(grid: _Grid, mask: Floats, left: Codes, right: Codes) -> Floats:
    """Return the noise of the pairs' differences; `mask` (cells, models) is 1 where a model has a score."""
    if grid.noise is None:
        return np.zeros(len(left))
    has_score = mask.astype(np.float32)
    spreads = np.zeros((len(left), grid.sample.max() + 1, grid.cluster[-1] + 1))
    starts = np.flatnonzero((np.diff(grid.part) != 0) | (np.diff(grid.cluster) != 0)) + 1
    for start, end in pairwise([0, *starts, len(mask)]):
        # (replicates, who has a score, whose noise)
        noise = product(has_score[start:end].T, grid.noise[:, start:end])
        part = noise[:, right, left] - noise[:, left, right]
        spreads[:, grid.sample[start], grid.cluster[start]] += np.sqrt((part**2).mean(axis=0))
    return compute_common_variance(spreads)


def _compare(grid: _Grid, options: BoardOptions, has_parsed: bool) -> pd.DataFrame:
    pairs = _sum_pairs(grid, *np.triu_indices(len(grid.models), k=1))
    shared = pairs.sums.counts.sum(axis=0) > 0
    statistics = add_model_columns(_test(grid.models, pairs, options.subject), grid.models, pairs.left, pairs.right)
    statistics["n_items"] = pairs.items
    parsed_tests = _test_parsed(grid, statistics, pairs, options.subject) if has_parsed else None
    statistics = statistics.join(pd.DataFrame(parsed_tests, statistics.index, list(_OF_PARSED.values())))
    table: pd.DataFrame = statistics[shared].sort_values([*MODEL, *OTHER], ignore_index=True)
    return table


def _test(
    models: pd.DataFrame, pairs: _Pairs, subject: BoardSubject, turned: npt.NDArray[np.bool_] | None = None
) -> pd.DataFrame:
    """Apply `compare_pairs` with the noise that people cause in all clusters."""
    correlation = subject.correlation(models["model"])[[pairs.left, pairs.right]].max(axis=0)
    total = pairs.sums.counts.sum(axis=0)
    shared = np.divide(pairs.noise * correlation, total**2, out=np.zeros(len(total)), where=total > 0)
    return compare_pairs(pairs.sums, noun=subject.keys.cluster_noun, shared=shared, turned=turned)


def _test_parsed(grid: _Grid, statistics: pd.DataFrame, pairs: _Pairs, subject: BoardSubject) -> pd.DataFrame:
    """Return the columns of _OF_PARSED, pairs as in `statistics`: the same values if all scored cells of both models were parsed.

    The noise of a cell's parsed responses is that of its score times the responses per parsed one: an unreadable response has a fixed score
    and adds no noise.
    """
    columns = statistics[list(_OF_PARSED)].rename(columns=_OF_PARSED)
    unread = (~np.isnan(grid.scores) & (grid.scores != grid.parsed)).any(axis=0)
    positions = np.flatnonzero(unread[pairs.left] | unread[pairs.right])
    if len(positions):
        noise = None if grid.noise is None else grid.noise * grid.answered
        readable = _sum_pairs(grid._replace(scores=grid.parsed, noise=noise), pairs.left[positions], pairs.right[positions])
        tests = _test(grid.models, readable, subject, statistics["turned"].to_numpy()[positions]).set_index(positions)
        columns.loc[positions] = tests[list(_OF_PARSED)].rename(columns=_OF_PARSED)
    return columns


def rank_ranges(board_rows: pd.DataFrame, pairs: pd.DataFrame, keys: Keys) -> pd.DataFrame:
    """Return `rank_low` and `rank_high` of each row of an overall board, on its index: the best and worst ranks that the tests allow.

    `pairs`: from `compare_all_pairs`, of the same scores. The ranges are the `rank_bounds` of the ranked rows of each setting, by
    their verdicts. All verdicts of a family are right with 95 % probability, and so are the relative ranks of its models. Null for unranked
    or untestable rows.
    """
    names, ranked = list(keys.asked), board_rows[board_rows["rank"].notna()]
    tests = pairs[pairs["p"].notna()]
    models, first, second = (
        pd.MultiIndex.from_frame(rows[[*names, *columns]].astype(str))
        for rows, columns in ((ranked, MODEL), (tests, MODEL), (tests, OTHER))
    )
    better, worse = models.get_indexer(first), models.get_indexer(second)
    wins = (tests["verdict"] == BETTER).to_numpy() & (better >= 0) & (worse >= 0)
    bounds = rank_bounds(better[wins], worse[wins], len(ranked))
    asked_otherwise = len(ranked) - ranked.groupby(names, observed=True)["rank"].transform("size").to_numpy()
    ranges = pd.DataFrame({"rank_low": bounds.low, "rank_high": bounds.high - asked_otherwise}, index=ranked.index)
    is_tested = np.isin(np.arange(len(ranked)), (better, worse))
    return ranges[is_tested].reindex(board_rows.index).astype("Int64")


def list_contradictions(board_rows: pd.DataFrame, pairs: pd.DataFrame, keys: Keys) -> pd.Series:
    """Return, for each row of an overall board, a note on models ranked above it that a paired test finds worse, or an empty text."""
    place = board_rows.set_index([*keys.asked, *MODEL])["rank"].to_dict()
    names = list(keys.asked)
    above: dict[tuple[str, ...], list[str]] = {}
    for row in pairs[pairs["verdict"] == BETTER].astype(str)[[*names, *MODEL, *OTHER]].itertuples(index=False, name=None):
        condition, first, second = row[: len(names)], row[len(names) : -len(OTHER)], row[-len(OTHER) :]
        rank, other_rank = place.get((*condition, *first)), place.get((*condition, *second))
        if pd.notna(rank) and pd.notna(other_rank) and rank > other_rank:
            above.setdefault((*condition, *first), []).append(second[0])
    notes = [
        f"better on shared pairs than {list_first_names(above[key], _MOST_NAMED)}, ranked above it" if key in above else ""
        for key in board_rows[[*names, *MODEL]].astype(str).itertuples(index=False, name=None)
    ]
    return pd.Series(notes, board_rows.index, dtype=object)
