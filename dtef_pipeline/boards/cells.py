"""The cells that every statistic is made of, as columns.

A **cell** is one (round, segment, question) at one context level and condition; a row is a cell as one model variant answered it, its draws
averaged. A **cluster** is a question: the same text and options in whatever segment or round. What is said of questions in general must not
count the fifty segments that answered one of them as fifty questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.statistics.resampling import RESAMPLES, SEED
from dtef_pipeline.survey.scoring.policy import CREDITS
from dtef_pipeline.survey.tables import CORRECTED, DISTANCES, METRICS
from dtef_pipeline.tables import ANSWERED, STATUSES

KEYS = (
    *("round", "segment", "question_id", "context_level", "condition"),
    *("attribute", "value", "cluster", "snapshot", "model", "model_variant"),
)
"""Categorical columns of `load_cells`."""
TARGETS, CELLS = ("clean", "all"), ("own", "shared")
CELL = "round, segment, question_id, context_level, condition"
MODEL = "model, model_variant"
COUNTED = ("n_total", "n_ok", "n_answered", *(f"n_{status}" for status in STATUSES if status != "ok"))
"""Counts of draws: all, parsed, answered, and by status."""
REFERENCES = ("ceiling", "uniform", "others", "population")


@dataclass(frozen=True, slots=True)
class BoardOptions:
    """Which scores a board is made of. Raises ConfigError naming the option, what arrived and what is allowed.

    `targets`: `clean` leaves circular questions out, `all` keeps them as the published figures do. `cells`: `own` takes each model's own
    cells (`coverage` says how many of the board's), `shared` only the cells that every model of the board has a score for.
    `resamples`: of the bootstrap behind the intervals, drawn from `seed`; 0: no intervals.
    """

    metric: str = "js"
    targets: str = "clean"
    cells: str = "own"
    rounds: tuple[str, ...] = ()
    context_level: str | None = None
    condition: str | None = None
    snapshot: str | None = None
    resamples: int = RESAMPLES
    seed: int = SEED

    def __post_init__(self) -> None:
        for name, allowed in (("metric", METRICS), ("targets", TARGETS), ("cells", CELLS)):
            if getattr(self, name) not in allowed:
                raise ConfigError(f"{name} {getattr(self, name)!r}: allowed: {', '.join(allowed)}")
        for name, least in (("resamples", 0), ("seed", 0)):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < least:
                raise ConfigError(f"{name} {getattr(self, name)!r}: allowed: a whole number of {least} or more")


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
    , variants AS (SELECT context_level, condition, count(DISTINCT ({MODEL})) AS models FROM own WHERE score IS NOT NULL GROUP BY ALL)
    , shared AS (
        SELECT {CELL} FROM own WHERE score IS NOT NULL GROUP BY {CELL}
        HAVING count(*) = (SELECT models FROM variants v WHERE v.context_level = own.context_level AND v.condition = own.condition)
    )
    , cells AS (SELECT own.* FROM own SEMI JOIN shared USING ({CELL}))"""
    return f"""
    WITH own AS (
        SELECT {CELL}, {MODEL}, snapshot, any_value(attribute) AS attribute, any_value(value) AS value,
            avg({policy_sql(options.metric)}) AS score, avg({policy_sql(options.metric)}) FILTER (status = 'ok') AS parsed_score,
            {", ".join(f"avg({name}) AS {name}" for name in CORRECTED)},
            count(*) AS n_total, count(*) FILTER (status = 'ok') AS n_ok, count(*) FILTER (status IN ({answered})) AS n_answered,
            {", ".join(f"count(*) FILTER (status = '{status}') AS n_{status}" for status in STATUSES if status != "ok")}
        FROM scores WHERE {_where(options)} GROUP BY {CELL}, {MODEL}, snapshot
        QUALIFY row_number() OVER (
            PARTITION BY {CELL}, {MODEL} ORDER BY avg({policy_sql(options.metric)}) IS NULL, snapshot = 'base', snapshot DESC
        ) = 1
    ){shared if options.cells == "shared" else ", cells AS (FROM own)"}
    """


@contextmanager
def scores_of_this_version() -> Iterator[None]:
    """For functions that query `scores`: files written before a column was there are a WarehouseError that says how to mend them."""
    try:
        yield
    except duckdb.Error as error:
        lacking = [name for name in (*CORRECTED, "truth_id") if f'"{name}"' in str(error)]
        if not lacking:
            raise
        raise WarehouseError(
            f"some scores were made by an earlier version and have no column {lacking[0]}: score those rounds again with "
            "`dtef run --ingest --round ROUND` (answers are replayed, no model is asked for what it has answered)"
        ) from error


def has_table(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Whether the connection has a table, view or registered frame of that name."""
    found = connection.execute("SELECT count(*) FROM information_schema.tables WHERE table_name = ?", [name]).fetchall()
    return bool(found[0][0])


@scores_of_this_version()
def load_cells(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> pd.DataFrame:
    """One row a (cell, model variant), in an order that does not depend on how the files lie.

    `connection` has a `scores` view, and `reference_scores` or not. Columns: KEYS; `score` (under the policy, 0-1, higher is better; null:
    unscored), `parsed_score` (over parsed draws alone), `l2_corrected`, `rps_corrected` (lower is better, can be below 0), COUNTED; `n`
    (respondents), `gini`, and under the board's metric `ceiling`, `uniform`, `others`, `population`: null without `reference_scores`, whose
    round must be ingested again.
    """
    connection.execute("SET threads = 1")
    known = has_table(connection, "reference_scores")
    reference = f"""
        SELECT round, segment, question_id, cluster, n, gini, {", ".join(f"{name}.{options.metric} AS {name}" for name in REFERENCES)}
        FROM reference_scores"""
    unknown = f"""
        SELECT DISTINCT round, segment, question_id, NULL::VARCHAR AS cluster, NULL::INTEGER AS n,
            {", ".join(f"NULL::DOUBLE AS {name}" for name in ("gini", *REFERENCES))} FROM cells"""
    query = f"""
        {cells_sql(options)}, reference AS ({reference if known else unknown})
        SELECT round, segment, question_id, context_level, condition, attribute, value, snapshot, model, model_variant,
            coalesce(cluster, round || '/' || question_id) AS cluster,
            score, parsed_score, l2_corrected, rps_corrected, {", ".join(COUNTED)}, reference.n, gini, {", ".join(REFERENCES)}
        FROM cells LEFT JOIN reference USING (round, segment, question_id)
        ORDER BY model, model_variant, condition, context_level, round, segment, question_id
        """
    rows: pa.Table = connection.sql(query, params=parameters(options)).to_arrow_table()
    frame: pd.DataFrame = _categorical(rows).to_pandas()
    return frame


@scores_of_this_version()
def scores_by_metric(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> pd.DataFrame:
    """The `score` of `load_cells` under every metric at once, a column each; its other columns are those that say what and who a row is.

    One row a (cell, model variant), whatever `options.cells` and `options.metric` say. Under each metric the latest snapshot with a score
    counts.
    """
    connection.execute("SET threads = 1")
    asked = f"{CELL}, {MODEL}"
    drawn = ", ".join(f"avg({policy_sql(metric)}) AS {metric}" for metric in METRICS)
    latest = ", ".join(
        f"arg_max({metric}, CASE snapshot WHEN 'base' THEN '' ELSE snapshot END) AS {metric}" for metric in METRICS
    )
    query = f"""
        WITH of_snapshots AS (SELECT {asked}, snapshot, {drawn} FROM scores WHERE {_where(options)} GROUP BY {asked}, snapshot)
        SELECT {asked}, {latest} FROM of_snapshots GROUP BY {asked}
        ORDER BY model, model_variant, condition, context_level, round, segment, question_id
        """
    rows: pa.Table = connection.sql(query, params=parameters(options)).to_arrow_table()
    frame: pd.DataFrame = _categorical(rows).to_pandas()
    return frame


def _categorical(rows: pa.Table) -> pa.Table:
    for name in set(KEYS) & set(rows.column_names):
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, name, rows.column(place).combine_chunks().dictionary_encode())
    return rows


def identify(cells: pd.DataFrame, columns: Sequence[str]) -> tuple[npt.NDArray[np.int64], pd.DataFrame]:
    """Which of the distinct combinations of categorical columns each row has, and the combinations, in the order of their categories."""
    key, size = np.zeros(len(cells), dtype=np.int64), 1
    for name in columns:
        many = max(len(cells[name].cat.categories), 1)
        if size * many > np.iinfo(np.int64).max // 2:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            size = len(cells)
        key, size = key * many + cells[name].cat.codes.to_numpy(dtype=np.int64), size * many
    _, first, code = np.unique(key, return_index=True, return_inverse=True)
    return code.astype(np.int64), cells.iloc[first][list(columns)].reset_index(drop=True)
