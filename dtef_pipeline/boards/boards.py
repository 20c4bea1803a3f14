"""Leaderboards and breakdowns over the `scores` table.

A **pair** is one item of one partition. A **cell** is a pair asked in one way, with its draws averaged; of several snapshots the latest response
to each cell counts. Ways of asking are never mixed, so that `n_pairs`, the number of cells behind a score, counts one per pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.boards.cells import BoardOptions, identify, load_cells, scores_by_metric, scores_of_this_version
from dtef_pipeline.boards.intervals import board_intervals
from dtef_pipeline.boards.scored import Codes, Noise, Scored
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.ranks import ranks
from dtef_pipeline.statistics.resampling import Floats

BY_METRIC = "metric"
"""The view of all metrics side by side; the others are the groups of the keys."""
_SUMMED = ("n_total", "n_unparseable", "n_wrong_length", "n_refused", "n_error", "n_missing", "n_budget")


class BoardEvidence(NamedTuple):
    """What intervals are made of: the cells of the options, and the noise of their scores (None: not known)."""

    cells: pd.DataFrame
    noise: Noise | None


def load_evidence(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> BoardEvidence:
    """For several boards of the same options: loaded once, given to each."""
    cells = load_cells(connection, options)
    with scores_of_this_version(options.subject.keys):
        return BoardEvidence(cells, options.subject.noise(connection, cells, options))


def board(
    connection: duckdb.DuckDBPyConnection, by: str, options: BoardOptions, evidence: BoardEvidence | None = None
) -> pd.DataFrame:
    """A leaderboard: rows ranked within each group and way of asking, best first; `by` is a group of the keys or BY_METRIC.

    `connection` has a `scores` view. Columns: the group's keys, `rank`, `model`, `model_variant`, the ways of asking, `score` (mean over the
    model's scored cells, 0-1, higher is better), `adjusted_score` (the mean of the subject's marginal over the cells that have one plus the
    model's mean advantage over it on the cells both have: what models are ranked by), `vs_marginal` (that advantage), `n_pairs` (cells behind
    `score`), `coverage` (of the group's cells), the subject's `parts`, `parse_rate`, counts by status. With `resamples` also the subject's
    `columns`, for which the connection may have other tables; `evidence`: what `load_evidence` made of the same options. Raises ConfigError
    for an unknown view.
    """
    groups = options.subject.keys.groups
    if by == BY_METRIC:
        return _metric_ranks(connection, options, evidence)
    if by not in groups:
        raise ConfigError(f"view {by!r}: allowed: {', '.join((*groups, BY_METRIC))}")
    cells = evidence.cells if evidence else load_cells(connection, options)
    frame = _board_of(cells, groups[by], options.subject).assign(metric=options.metric)
    if not options.resamples:
        return frame
    with scores_of_this_version(options.subject.keys):
        noise = evidence.noise if evidence else options.subject.noise(connection, cells, options)
    names = [*groups[by], *options.subject.keys.asked, *MODEL]
    added = board_intervals(cells, noise, groups[by], options, frame[frame["rank"].notna()])
    added[names] = added[names].astype(frame[names].dtypes)
    return frame.merge(added, on=names, how="left", validate="one_to_one")


class _Places(NamedTuple):
    """Where cells stand in a board, as numbers from 0."""

    row: Codes  # (cells,): the row of the board that each belongs to
    rows: pd.DataFrame  # keys of the board's rows
    group: Codes  # (rows,): what is ranked together
    cell: Codes  # (cells,): equal for all models that were asked the same
    pair: Codes  # (cells,): item and partition
    part: Codes  # (cells,): value of the space's second level
    is_marginal: npt.NDArray[np.bool_]  # (cells,)


def _places(cells: pd.DataFrame, group_by: Sequence[str], subject: Scored) -> _Places:
    keys = subject.keys
    row, rows = identify(cells, [*group_by, *keys.asked, *MODEL])
    group, _ = identify(rows, [*group_by, *keys.asked])
    asked, pair, part = (identify(cells, names)[0] for names in (keys.cell, keys.pair, keys.space[1:]))
    return _Places(row, rows, group, asked, pair, part, (cells["model"] == subject.marginal).to_numpy())


def _board_of(cells: pd.DataFrame, group_by: Sequence[str], subject: Scored) -> pd.DataFrame:
    """The board of `cells` (as of `load_cells`) without intervals."""
    places, asked = _places(cells, group_by, subject), subject.keys.asked
    sums = {
        name: _total(places.row, cells[name].to_numpy(np.float64), len(places.rows))
        for name in ("n_ok", "n_answered", *_SUMMED)
    }
    answered = sums["n_answered"]
    frame = places.rows.astype(str).assign(
        **_ranked(places, cells["score"].to_numpy(np.float64), subject),
        parse_rate=np.divide(sums["n_ok"], answered, out=np.full(len(answered), np.nan), where=answered > 0),
        **{name: sums[name].astype(np.int64) for name in _SUMMED},
        size=places.rows[asked[0]].astype(str).map(subject.size).astype(np.float64),
    )
    frame = frame.sort_values([*group_by, "size", *asked[1:], "rank", "place", *MODEL], ignore_index=True)
    numbers = ("score", "adjusted_score", "vs_marginal", "n_pairs", "coverage", subject.parts, "parse_rate")
    return frame[[*group_by, "rank", *MODEL, *asked, *numbers, *_SUMMED]]


def _ranked(places: _Places, score: Floats, subject: Scored) -> dict[str, Floats | Codes | pd.Series]:
    """Means, coverage and ranks of a board's rows under scores (cells,), NaN: none; `place` is the rank if all were ranked."""
    rows, groups = len(places.rows), int(places.group.max(initial=-1)) + 1
    scored = np.isfinite(score)
    marginal = _mean(places.cell, np.where(places.is_marginal, score, np.nan), len(score))
    of_cell = places.group[places.row]
    means, gained = _mean(places.row, score, rows), _mean(places.row, score - marginal[places.cell], rows)
    of_marginal = _mean(of_cell, np.where(places.is_marginal, score, np.nan), groups)[places.group]
    adjusted = of_marginal + gained
    adjusted = np.where(np.isnan(adjusted), means, adjusted)
    n_pairs = np.bincount(places.row[scored], minlength=rows)
    n_parts = _distinct(places.row[scored], places.part[scored], rows)
    parts = _distinct(of_cell, places.part, groups)[places.group]
    is_ranked = (n_pairs > 0) & (n_parts >= np.minimum(subject.ranked_from, parts))
    rank = pd.Series(ranks(np.where(is_ranked, adjusted, np.nan), places.group))
    return {
        "rank": rank.astype("Int32" if rank.isna().any() else "int32"),
        "place": ranks(adjusted, places.group),
        "score": means,
        "adjusted_score": adjusted,
        "vs_marginal": gained,
        "n_pairs": n_pairs,
        "coverage": n_pairs / _distinct(of_cell, places.pair, groups)[places.group],
        subject.parts: n_parts,
    }


def _total(of: Codes, values: Floats, size: int) -> Floats:
    """(size,) sums, each added in the order of the values: equal values give equal digits."""
    return np.asarray(np.bincount(of, weights=values, minlength=size), dtype=np.float64)


def _mean(of: Codes, values: Floats, size: int) -> Floats:
    """(size,) means of the values that are known, NaN where none is."""
    known = np.isfinite(values)
    count = np.bincount(of[known], minlength=size)
    mean = np.divide(_total(of[known], values[known], size), count, out=np.full(size, np.nan), where=count > 0)
    return np.asarray(mean)


def _distinct(of: Codes, what: Codes, size: int) -> Codes:
    """(size,) how many different values of `what` each has."""
    many = int(what.max(initial=0)) + 1
    return np.bincount(pd.unique(of * many + what) // many, minlength=size)


def _metric_ranks(connection: duckdb.DuckDBPyConnection, options: BoardOptions, evidence: BoardEvidence | None) -> pd.DataFrame:
    """Every model under every metric, side by side; rows in the order of the chosen metric."""
    keys = [*MODEL, *options.subject.keys.asked]
    cells = evidence.cells if evidence else load_cells(connection, options)
    frame = _board_of(cells, (), options.subject).assign(metric=options.metric)
    frame = frame[[*keys, "n_pairs", "score", "parse_rate", "metric"]]
    for metric, ranked in _ranks_by_metric(connection, options):
        each = ranked.rename(columns={"score": metric, "rank": f"{metric}_rank"})
        frame = frame.merge(each, on=keys, how="left", suffixes=("", "_"))
    return frame


def _ranks_by_metric(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each metric with the keys of the overall board's rows, `score` and `rank` under it."""
    subject = options.subject
    names = [*MODEL, *subject.keys.asked, "score", "rank"]
    if options.cells == "shared":  # which cells these are depends on the metric
        for metric in subject.metrics:
            yield metric, _board_of(load_cells(connection, replace(options, metric=metric)), (), subject)[names]
        return
    cells = scores_by_metric(connection, options)
    places = _places(cells, (), subject)
    rows = places.rows.astype(str)
    for metric in subject.metrics:
        yield metric, rows.assign(**_ranked(places, cells[metric].to_numpy(np.float64), subject))[names]
