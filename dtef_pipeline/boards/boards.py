"""Leaderboards and breakdowns over the `scores` table.

A **cell** is one (round, segment, question) at one context level and condition: what all models are asked alike. Draws of a cell are averaged
first; of several snapshots the latest answer to each cell counts. Context levels are never mixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.cells import (
    CELL,
    MODEL,
    BoardOptions,
    identify,
    load_cells,
    scores_by_metric,
    scores_of_this_version,
)
from dtef_pipeline.boards.comparisons import context_size
from dtef_pipeline.boards.intervals import ASKED, WHO, board_intervals
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.baselines.names import POPULATION_MARGINAL
from dtef_pipeline.survey.boards.noise import SamplingNoise, sampling_noise
from dtef_pipeline.survey.tables import METRICS

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
VIEWS: Mapping[str, tuple[str, ...]] = {
    "overall": (),
    "round": ("round",),
    "segment": ("segment", "attribute", "value"),
    "attribute": ("attribute",),
    "question": ("round", "question_id"),
}
"""What a breakdown groups by; `consistency` and `metric` are views of their own."""
ALL_VIEWS = (*VIEWS, "consistency", "metric")
MIN_SEGMENTS = 10
"""Segments a model must have a score in to be ranked (weval methodology 5.3), or all there are if fewer."""

_SUMS = ("n_total", "n_unparseable", "n_wrong_length", "n_refused", "n_error", "n_missing", "n_budget")
_NUMBERS = ("score", "adjusted_score", "vs_marginal", "n_pairs", "coverage", "n_segments")
_PAIR = ("round", "segment", "question_id")
_CONTEXT_ORDER = "CASE context_level WHEN 'all' THEN 2147483647 ELSE context_level::INTEGER END"


class Evidence(NamedTuple):
    """What intervals are made of: the cells of the options, and the noise of their scores (None: not known)."""

    cells: pd.DataFrame
    noise: SamplingNoise | None


def load_evidence(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> Evidence:
    """For several boards of the same options: loaded once, given to each."""
    cells = load_cells(connection, options)
    return Evidence(cells, sampling_noise(connection, cells, options))


@scores_of_this_version()
def board(
    connection: duckdb.DuckDBPyConnection, by: str, options: BoardOptions, evidence: Evidence | None = None
) -> pd.DataFrame:
    """A leaderboard: rows ranked within each group and context level, best first.

    `connection` has a `scores` view. Columns: the group's keys, `rank`, `model`, `model_variant`, `context_level`, `condition`, `score`
    (mean over the model's scored cells, 0-1, higher is better), `adjusted_score` (the population marginal's mean plus the model's mean
    advantage over it on the cells both have: what models of different coverage are ranked by), `vs_marginal` (that advantage), `n_pairs`
    (cells behind `score`), `coverage` (of the group's cells), `parse_rate`, counts by status. With `resamples` also `intervals.COLUMNS`, for
    which the connection may have `survey_responses` and `reference_scores`; `evidence`: what `load_evidence` made of the same options.
    Raises ConfigError for an unknown view.
    """
    if by == "metric":
        return _metric_ranks(connection, options, evidence)
    if by != "consistency" and by not in VIEWS:
        raise ConfigError(f"view {by!r}: allowed: {', '.join(ALL_VIEWS)}")
    cells = evidence.cells if evidence else load_cells(connection, options)
    if by == "consistency":
        return _consistency(cells, options)
    frame = _board_of(cells, VIEWS[by]).assign(metric=options.metric)
    if not options.resamples:
        return frame
    noise = evidence.noise if evidence else sampling_noise(connection, cells, options)
    names = [*VIEWS[by], *ASKED, *WHO]
    added = board_intervals(cells, noise, VIEWS[by], options, frame[frame["rank"].notna()])
    added[names] = added[names].astype(frame[names].dtypes)
    return frame.merge(added, on=names, how="left", validate="one_to_one")


class _Places(NamedTuple):
    """Where cells stand in a board, as numbers from 0."""

    row: Codes  # (cells,): the row of the board that each belongs to
    rows: pd.DataFrame  # keys of the board's rows
    group: Codes  # (rows,): what is ranked together
    cell: Codes  # (cells,): equal for all models that were asked the same
    pair: Codes  # (cells,): round, segment and question
    segment: Codes  # (cells,)
    is_marginal: npt.NDArray[np.bool_]  # (cells,)


def _places(cells: pd.DataFrame, keys: Sequence[str]) -> _Places:
    row, rows = identify(cells, [*keys, *ASKED, *WHO])
    group, _ = identify(rows, [*keys, *ASKED])
    asked, pair, segment = (identify(cells, names)[0] for names in (CELL.split(", "), _PAIR, ["segment"]))
    return _Places(row, rows, group, asked, pair, segment, (cells["model"] == POPULATION_MARGINAL).to_numpy())


def _board_of(cells: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The board of `cells` (as of `load_cells`) without intervals."""
    places = _places(cells, keys)
    sums = {
        name: _total(places.row, cells[name].to_numpy(np.float64), len(places.rows)) for name in ("n_ok", "n_answered", *_SUMS)
    }
    answered = sums["n_answered"]
    frame = places.rows.astype(str).assign(
        **_ranked(places, cells["score"].to_numpy(np.float64)),
        parse_rate=np.divide(sums["n_ok"], answered, out=np.full(len(answered), np.nan), where=answered > 0),
        **{name: sums[name].astype(np.int64) for name in _SUMS},
        size=places.rows["context_level"].astype(str).map(context_size).astype(np.float64),
    )
    order = [*keys, "size", "condition", "rank", "adjusted_score", *WHO]
    frame = frame.sort_values(order, ascending=[name != "adjusted_score" for name in order], ignore_index=True)
    return frame[[*keys, "rank", *WHO, *ASKED, *_NUMBERS, "parse_rate", *_SUMS]]


def _ranked(places: _Places, score: Floats) -> dict[str, Floats | Codes | pd.Series]:
    """Means, coverage and ranks of a board's rows under scores (cells,), NaN: none."""
    rows, groups = len(places.rows), int(places.group.max(initial=-1)) + 1
    scored = np.isfinite(score)
    marginal = _mean(places.cell, np.where(places.is_marginal, score, np.nan), len(score))
    of_cell = places.group[places.row]
    means, gained = _mean(places.row, score, rows), _mean(places.row, score - marginal[places.cell], rows)
    of_marginal = _mean(of_cell, np.where(places.is_marginal, score, np.nan), groups)[places.group]
    adjusted = of_marginal + gained
    adjusted = np.where(np.isnan(adjusted), means, adjusted)
    n_pairs = np.bincount(places.row[scored], minlength=rows)
    n_segments = _distinct(places.row[scored], places.segment[scored], rows)
    segments = _distinct(of_cell, places.segment, groups)[places.group]
    is_ranked = (n_pairs > 0) & (n_segments >= np.minimum(MIN_SEGMENTS, segments))
    rank = pd.Series(np.where(is_ranked, adjusted, np.nan)).groupby(places.group).rank(method="min", ascending=False)
    return {
        "rank": rank.astype("Int32" if rank.isna().any() else "int32"),
        "score": means,
        "adjusted_score": adjusted,
        "vs_marginal": gained,
        "n_pairs": n_pairs,
        "coverage": n_pairs / _distinct(of_cell, places.pair, groups)[places.group],
        "n_segments": n_segments,
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


def _consistency(cells: pd.DataFrame, options: BoardOptions) -> pd.DataFrame:
    """How evenly a model does over the segments: the spread of its segment means, smallest first."""
    names = ["round", "segment", *ASKED, *WHO]
    # Categories would be ordered as they were found.
    texts = ", ".join(f"{name}::VARCHAR AS {name}" for name in names)
    sql = f"""WITH segments AS (
        SELECT {texts}, avg(score) AS score, count(score) AS n_pairs, sum(n_ok) AS n_ok, sum(n_answered) AS n_answered
        FROM cells GROUP BY ALL HAVING count(score) > 0
    ), spread AS (
        SELECT {MODEL}, context_level, condition, avg(score) AS score, stddev_samp(score) AS segment_sd, min(score) AS lowest,
            arg_min(segment, score) AS lowest_segment, max(score) AS highest, arg_max(segment, score) AS highest_segment,
            count(*) AS n_segments, sum(n_pairs)::BIGINT AS n_pairs, sum(n_ok) / nullif(sum(n_answered), 0) AS parse_rate
        FROM segments GROUP BY ALL
    )
    SELECT CASE WHEN segment_sd IS NOT NULL
        THEN rank() OVER (PARTITION BY context_level, condition, segment_sd IS NULL ORDER BY segment_sd) END::INTEGER AS rank, *
    FROM spread ORDER BY {_CONTEXT_ORDER}, condition, rank NULLS LAST, model, model_variant
    """
    with duckdb.connect() as connection:
        # Sums of several threads are added in any order: equal scores are to give equal digits.
        connection.execute("SET threads = 1")
        loaded = cells[[*names, "score", "n_ok", "n_answered"]]
        connection.register("cells", pa.Table.from_pandas(loaded, preserve_index=False))
        return connection.execute(sql).df().assign(metric=options.metric)


def _metric_ranks(connection: duckdb.DuckDBPyConnection, options: BoardOptions, evidence: Evidence | None) -> pd.DataFrame:
    """Every model under every metric, side by side; rows in the order of the chosen metric."""
    keys = [*WHO, *ASKED]
    frame = board(connection, "overall", replace(options, resamples=0), evidence)
    frame = frame[[*keys, "n_pairs", "score", "parse_rate", "metric"]]
    for metric, ranks in _ranks_by_metric(connection, options):
        each = ranks.rename(columns={"score": metric, "rank": f"{metric}_rank"})
        frame = frame.merge(each, on=keys, how="left", suffixes=("", "_"))
    return frame


def _ranks_by_metric(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each metric with the keys of the overall board's rows, `score` and `rank` under it."""
    names = [*WHO, *ASKED, "score", "rank"]
    if options.cells == "shared":  # which cells these are depends on the metric
        for metric in METRICS:
            yield metric, board(connection, "overall", replace(options, metric=metric, resamples=0))[names]
        return
    cells = scores_by_metric(connection, options)
    places = _places(cells, ())
    rows = places.rows.astype(str)
    for metric in METRICS:
        yield metric, rows.assign(**_ranked(places, cells[metric].to_numpy(np.float64)))[names]
