"""Leaderboards and breakdowns over the `scores` table.

A **cell** is one (round, segment, question) at one context level and condition: what all models are asked alike. Draws of a cell are averaged
first; of several snapshots the latest answer to each cell counts. Context levels are never mixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.cells import CELL, MODEL, BoardOptions, cells_sql, load_cells, parameters, scores_of_this_version
from dtef_pipeline.boards.intervals import ASKED, WHO, board_intervals
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.baselines.names import POPULATION_MARGINAL
from dtef_pipeline.survey.boards.noise import SamplingNoise, sampling_noise
from dtef_pipeline.survey.tables import METRICS

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
    # Sums of several threads are added in any order: equal scores are to give equal digits.
    connection.execute("SET threads = 1")
    if by == "consistency":
        return _consistency(connection, options)
    if by == "metric":
        return _metric_ranks(connection, options)
    if by not in VIEWS:
        raise ConfigError(f"view {by!r}: allowed: {', '.join(ALL_VIEWS)}")
    if not options.resamples:
        return (
            connection.execute(_board_sql(VIEWS[by], cells_sql(options)), parameters(options))
            .df()
            .assign(metric=options.metric)
        )
    cells, noise = evidence or load_evidence(connection, options)
    frame = _board_of(cells, VIEWS[by]).assign(metric=options.metric)
    names = [*VIEWS[by], *ASKED, *WHO]
    added = board_intervals(cells, noise, VIEWS[by], options, frame[frame["rank"].notna()])
    added[names] = added[names].astype(frame[names].dtypes)
    return frame.merge(added, on=names, how="left", validate="one_to_one")


def _board_of(cells: pd.DataFrame, keys: tuple[str, ...]) -> pd.DataFrame:
    """The board of cells that are loaded already."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("loaded", pa.Table.from_pandas(cells, preserve_index=False))
        return connection.execute(_board_sql(keys, "WITH cells AS (FROM loaded)")).df()


def _board_sql(keys: tuple[str, ...], cells: str) -> str:
    """`cells`: common table expressions ending in `cells`."""
    group = ", ".join([*keys, "context_level", "condition"])
    lead = "".join(f"{key}, " for key in keys)
    # Categories would be ordered as they were found.
    texts = ", ".join(f"{name}::VARCHAR AS {name}" for name in (*keys, *ASKED, *WHO))
    return f"""{cells}
    , reference AS (SELECT {CELL}, avg(score) AS marginal FROM cells WHERE model = '{POPULATION_MARGINAL}' GROUP BY ALL)
    , sizes AS (
        SELECT {group}, count(DISTINCT (round, segment, question_id)) AS board_cells,
            count(DISTINCT segment) AS board_segments,
            avg(score) FILTER (model = '{POPULATION_MARGINAL}') AS marginal_mean
        FROM cells GROUP BY {group}
    ), means AS (
        SELECT {group}, {MODEL}, avg(score) AS score, avg(score - marginal) AS vs_marginal, count(score) AS n_pairs,
            count(DISTINCT segment) FILTER (score IS NOT NULL) AS n_segments, sum(n_ok) / nullif(sum(n_answered), 0) AS parse_rate,
            {", ".join(f"sum({name})::BIGINT AS {name}" for name in _SUMS)}
        FROM cells LEFT JOIN reference USING ({CELL}) GROUP BY {group}, {MODEL}
    ), ranked AS (
        SELECT *, coalesce(marginal_mean + vs_marginal, score) AS adjusted_score, n_pairs / board_cells AS coverage,
            n_pairs > 0 AND n_segments >= least({MIN_SEGMENTS}, board_segments) AS is_ranked
        FROM means JOIN sizes USING ({group})
    ), named AS (SELECT * REPLACE ({texts}) FROM ranked)
    SELECT {lead}CASE WHEN is_ranked THEN rank() OVER (PARTITION BY {group}, is_ranked ORDER BY adjusted_score DESC) END::INTEGER AS rank,
        {MODEL}, context_level, condition, score, adjusted_score, vs_marginal, n_pairs, coverage, n_segments, parse_rate, {", ".join(_SUMS)}
    FROM named
    ORDER BY {lead}{_CONTEXT_ORDER}, condition, rank NULLS LAST, adjusted_score DESC NULLS LAST, model, model_variant
    """


def _consistency(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> pd.DataFrame:
    """How evenly a model does over the segments: the spread of its segment means, smallest first."""
    sql = f"""{cells_sql(options)}
    , segments AS (
        SELECT round, segment, context_level, condition, {MODEL}, avg(score) AS score, count(score) AS n_pairs,
            sum(n_ok) AS n_ok, sum(n_answered) AS n_answered
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
    frame = connection.execute(sql, parameters(options)).df()
    frame["metric"] = options.metric
    return frame


def _metric_ranks(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> pd.DataFrame:
    """Every model under every metric, side by side; rows in the order of the chosen metric."""
    keys = ["model", "model_variant", "context_level", "condition"]
    options = replace(options, resamples=0)
    frame = board(connection, "overall", options)[[*keys, "n_pairs", "score", "parse_rate", "metric"]]
    for metric in METRICS:
        each = board(connection, "overall", replace(options, metric=metric))[[*keys, "score", "rank"]]
        frame = frame.merge(
            each.rename(columns={"score": metric, "rank": f"{metric}_rank"}), on=keys, how="left", suffixes=("", "_")
        )
    return frame
