"""The cells that every statistic is made of, as columns.

A **cell** is one (round, segment, question) at one context level and condition; a row is a cell as one model variant answered it, its draws
averaged. A **cluster** is a question: the same text and options in whatever segment or round. What is said of questions in general must not
count the fifty segments that answered one of them as fifty questions.
"""

from __future__ import annotations

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.aggregation.boards import BoardOptions, cells_sql, parameters

KEYS = (
    *("round", "segment", "question_id", "context_level", "condition"),
    *("attribute", "value", "cluster", "snapshot", "model", "model_variant"),
)
"""Categorical columns of `load_cells`."""
REFERENCES = ("ceiling", "uniform", "others", "population")


def load_cells(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> pd.DataFrame:
    """One row a (cell, model variant), in an order that does not depend on how the files lie.

    `connection` has a `scores` view, and `reference_scores` or not. Columns: KEYS; `score` (under the policy, 0-1, higher is better; null:
    unscored), `parsed_score` (over parsed draws alone), `l2_corrected`, `rps_corrected` (lower is better, can be below 0), `n_total`, `n_ok`,
    `n_answered` (draws); `n` (respondents), `gini`, and under the board's metric `ceiling`, `uniform`, `others`, `population`: null without
    `reference_scores`, whose round must be ingested again.
    """
    connection.execute("SET threads = 1")
    known = connection.execute("SELECT count(*) FROM duckdb_views() WHERE view_name = 'reference_scores'").fetchall()[0][0]
    reference = f"""
        SELECT round, segment, question_id, cluster, n, gini, {", ".join(f"{name}.{options.metric} AS {name}" for name in REFERENCES)}
        FROM reference_scores"""
    unknown = f"""
        SELECT DISTINCT round, segment, question_id, NULL::VARCHAR AS cluster, NULL::INTEGER AS n,
            {", ".join(f"NULL::DOUBLE AS {name}" for name in ("gini", *REFERENCES))} FROM cells"""
    rows = connection.execute(
        f"""
        {cells_sql(options)}, reference AS ({reference if known else unknown})
        SELECT round, segment, question_id, context_level, condition, attribute, value, snapshot, model, model_variant,
            coalesce(cluster, round || '/' || question_id) AS cluster,
            score, parsed_score, l2_corrected, rps_corrected, n_total, n_ok, n_answered, reference.n, gini, {", ".join(REFERENCES)}
        FROM cells LEFT JOIN reference USING (round, segment, question_id)
        ORDER BY model, model_variant, condition, context_level, round, segment, question_id
        """,
        parameters(options),
    ).to_arrow_table()
    frame: pd.DataFrame = _categorical(rows).to_pandas()
    return frame


def _categorical(rows: pa.Table) -> pa.Table:
    for name in KEYS:
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, name, rows.column(place).combine_chunks().dictionary_encode())
    return rows
