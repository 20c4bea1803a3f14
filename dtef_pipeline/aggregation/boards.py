"""Leaderboards and breakdowns over the `scores` table.

A **cell** is one (round, segment, question) at one context level and condition: what all models are asked alike. Draws of a cell are averaged
first; of several snapshots the latest answer to each cell counts. Context levels are never mixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import duckdb
import pandas as pd

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.prediction.baselines import POPULATION_MARGINAL
from dtef_pipeline.scoring.policy import CREDITS
from dtef_pipeline.tables import ANSWERED, CORRECTED, DISTANCES, METRICS, STATUSES

VIEWS: Mapping[str, tuple[str, ...]] = {
    "overall": (),
    "round": ("round",),
    "segment": ("segment", "attribute", "value"),
    "attribute": ("attribute",),
    "question": ("round", "question_id"),
}
"""What a breakdown groups by; `consistency` and `metric` are views of their own."""
ALL_VIEWS = (*VIEWS, "consistency", "metric")
TARGETS, CELLS = ("clean", "all"), ("own", "shared")
MIN_SEGMENTS = 10
"""Segments a model must have a score in to be ranked (weval methodology 5.3), or all there are if fewer."""

_CELL = "round, segment, question_id, context_level, condition"
_MODEL = "model, model_variant"
_SUMS = ("n_total", "n_unparseable", "n_wrong_length", "n_refused", "n_error", "n_missing", "n_budget")
_CONTEXT_ORDER = "CASE context_level WHEN 'all' THEN 2147483647 ELSE context_level::INTEGER END"


@dataclass(frozen=True, slots=True)
class BoardOptions:
    """Which scores a board is made of. Raises ConfigError naming the option, what arrived and what is allowed.

    `targets`: `clean` leaves circular questions out, `all` keeps them as the published figures do. `cells`: `own` takes each model's own
    cells (`coverage` says how many of the board's), `shared` only the cells that every model of the board has a score for.
    """

    metric: str = "js"
    targets: str = "clean"
    cells: str = "own"
    rounds: tuple[str, ...] = ()
    context_level: str | None = None
    condition: str | None = None
    snapshot: str | None = None

    def __post_init__(self) -> None:
        for name, allowed in (("metric", METRICS), ("targets", TARGETS), ("cells", CELLS)):
            if getattr(self, name) not in allowed:
                raise ConfigError(f"{name} {getattr(self, name)!r}: allowed: {', '.join(allowed)}")


def board(connection: duckdb.DuckDBPyConnection, by: str, options: BoardOptions) -> pd.DataFrame:
    """A leaderboard: rows ranked within each group and context level, best first.

    `connection` has a `scores` view. Columns: the group's keys, `rank`, `model`, `model_variant`, `context_level`, `condition`, `score`
    (mean over the model's scored cells, 0-1, higher is better), `adjusted_score` (the population marginal's mean plus the model's mean
    advantage over it on the cells both have: what models of different coverage are ranked by), `vs_marginal` (that advantage), `n_pairs`
    (cells behind `score`), `coverage` (of the group's cells), `parse_rate`, counts by status. Raises ConfigError for an unknown view.
    """
    # Sums of several threads are added in any order: equal scores are to give equal digits.
    connection.execute("SET threads = 1")
    if by == "consistency":
        return _consistency(connection, options)
    if by == "metric":
        return _metric_ranks(connection, options)
    if by not in VIEWS:
        raise ConfigError(f"view {by!r}: allowed: {', '.join(ALL_VIEWS)}")
    frame = connection.execute(_board_sql(VIEWS[by], options), parameters(options)).df()
    frame["metric"] = options.metric
    return frame


def policy_sql(metric: str) -> str:
    """The published policy under a metric, as an SQL expression over `scores` columns."""
    similarity = f"1 - {metric}" if metric in DISTANCES else metric
    fixed = " ".join(f"WHEN '{credit.status}' THEN {credit.score}" for credit in CREDITS if credit.score is not None)
    return f"CASE status WHEN 'ok' THEN {similarity} {fixed} END"


def _where(options: BoardOptions) -> str:
    conditions = [
        "list_contains($rounds, round)" if options.rounds else None,
        "context_level = $context_level" if options.context_level is not None else None,
        "condition = $condition" if options.condition is not None else None,
        "snapshot = $snapshot" if options.snapshot is not None else None,
        "NOT circular" if options.targets == "clean" else None,
    ]
    return " AND ".join(condition for condition in conditions if condition) or "true"


def parameters(options: BoardOptions) -> dict[str, object]:
    named = {
        "rounds": list(options.rounds),
        "context_level": options.context_level,
        "condition": options.condition,
        "snapshot": options.snapshot,
    }
    return {name: value for name, value in named.items() if value}


def cells_sql(options: BoardOptions) -> str:
    """Common table expressions ending in `cells`: one row a (cell, model variant)."""
    answered = ", ".join(f"'{status}'" for status in ANSWERED)
    shared = f"""
    , variants AS (SELECT context_level, condition, count(DISTINCT ({_MODEL})) AS models FROM own WHERE score IS NOT NULL GROUP BY ALL)
    , shared AS (
        SELECT {_CELL} FROM own WHERE score IS NOT NULL GROUP BY {_CELL}
        HAVING count(*) = (SELECT models FROM variants v WHERE v.context_level = own.context_level AND v.condition = own.condition)
    )
    , cells AS (SELECT own.* FROM own SEMI JOIN shared USING ({_CELL}))"""
    return f"""
    WITH own AS (
        SELECT {_CELL}, {_MODEL}, snapshot, any_value(attribute) AS attribute, any_value(value) AS value,
            avg({policy_sql(options.metric)}) AS score, avg({policy_sql(options.metric)}) FILTER (status = 'ok') AS parsed_score,
            {", ".join(f"avg({name}) AS {name}" for name in CORRECTED)},
            count(*) AS n_total, count(*) FILTER (status = 'ok') AS n_ok, count(*) FILTER (status IN ({answered})) AS n_answered,
            {", ".join(f"count(*) FILTER (status = '{status}') AS n_{status}" for status in STATUSES if status != "ok")}
        FROM scores WHERE {_where(options)} GROUP BY {_CELL}, {_MODEL}, snapshot
        QUALIFY row_number() OVER (
            PARTITION BY {_CELL}, {_MODEL} ORDER BY avg({policy_sql(options.metric)}) IS NULL, snapshot = 'base', snapshot DESC
        ) = 1
    ){shared if options.cells == "shared" else ", cells AS (FROM own)"}
    """


def _board_sql(keys: tuple[str, ...], options: BoardOptions) -> str:
    group = ", ".join([*keys, "context_level", "condition"])
    lead = "".join(f"{key}, " for key in keys)
    return f"""{cells_sql(options)}
    , reference AS (SELECT {_CELL}, avg(score) AS marginal FROM cells WHERE model = '{POPULATION_MARGINAL}' GROUP BY ALL)
    , sizes AS (
        SELECT {group}, count(DISTINCT (round, segment, question_id)) AS board_cells,
            count(DISTINCT segment) AS board_segments,
            avg(score) FILTER (model = '{POPULATION_MARGINAL}') AS marginal_mean
        FROM cells GROUP BY {group}
    ), means AS (
        SELECT {group}, {_MODEL}, avg(score) AS score, avg(score - marginal) AS vs_marginal, count(score) AS n_pairs,
            count(DISTINCT segment) FILTER (score IS NOT NULL) AS n_segments, sum(n_ok) / nullif(sum(n_answered), 0) AS parse_rate,
            {", ".join(f"sum({name})::BIGINT AS {name}" for name in _SUMS)}
        FROM cells LEFT JOIN reference USING ({_CELL}) GROUP BY {group}, {_MODEL}
    ), ranked AS (
        SELECT *, coalesce(marginal_mean + vs_marginal, score) AS adjusted_score, n_pairs / board_cells AS coverage,
            n_pairs > 0 AND n_segments >= least({MIN_SEGMENTS}, board_segments) AS is_ranked
        FROM means JOIN sizes USING ({group})
    )
    SELECT {lead}CASE WHEN is_ranked THEN rank() OVER (PARTITION BY {group}, is_ranked ORDER BY adjusted_score DESC) END::INTEGER AS rank,
        {_MODEL}, context_level, condition, score, adjusted_score, vs_marginal, n_pairs, coverage, n_segments, parse_rate, {", ".join(_SUMS)}
    FROM ranked
    ORDER BY {lead}{_CONTEXT_ORDER}, condition, rank NULLS LAST, adjusted_score DESC NULLS LAST, model, model_variant
    """


def _consistency(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> pd.DataFrame:
    """How evenly a model does over the segments: the spread of its segment means, smallest first."""
    sql = f"""{cells_sql(options)}
    , segments AS (
        SELECT round, segment, context_level, condition, {_MODEL}, avg(score) AS score, count(score) AS n_pairs,
            sum(n_ok) AS n_ok, sum(n_answered) AS n_answered
        FROM cells GROUP BY ALL HAVING count(score) > 0
    ), spread AS (
        SELECT {_MODEL}, context_level, condition, avg(score) AS score, stddev_samp(score) AS segment_sd, min(score) AS lowest,
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
    frame = board(connection, "overall", options)[[*keys, "n_pairs", "score", "parse_rate", "metric"]]
    for metric in METRICS:
        each = board(connection, "overall", replace(options, metric=metric))[[*keys, "score", "rank"]]
        frame = frame.merge(
            each.rename(columns={"score": metric, "rank": f"{metric}_rank"}), on=keys, how="left", suffixes=("", "_")
        )
    return frame
