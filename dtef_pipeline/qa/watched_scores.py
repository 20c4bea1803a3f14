"""What is watched for drift of the qa family: scores of items, night by night, beside the documented rule.

A series is a model variant in one condition under one metric and measure, over all parts. An edited item, another expected answer, another
version of a scorer or another judge makes other items.
"""

from __future__ import annotations

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.drift.models import ModelDrift
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.watched import documented_rule, of_whole_models, watched_models
from dtef_pipeline.keys import MODEL, Keys
from dtef_pipeline.qa.latest_scores import qa_snapshot_order
from dtef_pipeline.qa.result_tables import QA_DRIFT, QA_DRIFT_SERIES, QA_MODEL_DRIFT
from dtef_pipeline.qa.tables import OF_ONE_PART
from dtef_pipeline.tables import in_schema

QA_DRIFT_READS = ("qa_scores", "qa_responses")
"""The tables that drift is told by."""
QA_WATCHED_KEYS = Keys(
    space=("suite", "part"),
    item="item_id",
    noun="item",
    asked=("condition", "metric", "measured_by"),
    cluster="cluster",
    score_again="score those parts again with `dtef qa run`",
)
_WATCHED_ITEM_SCORES = """
    CREATE OR REPLACE TEMP TABLE scores AS
    SELECT suite::VARCHAR AS suite, part::VARCHAR AS part, item_id, condition, coalesce(metric, '') AS metric,
        coalesce(measured_by, '') AS measured_by, model, model_variant, snapshot::VARCHAR AS snapshot, temperature, draw, score, status,
        prompt_id, truth_id, answered_at
    FROM qa_scores
"""
_SERVED = """
    CREATE OR REPLACE TEMP TABLE predictions AS
    SELECT DISTINCT served.suite, scores.condition, metric, measured_by, scores.model, scores.model_variant, scores.snapshot, served_model,
        fingerprint
    FROM (SELECT DISTINCT suite, condition, metric, measured_by, model, model_variant, snapshot FROM scores) AS scores JOIN (
        SELECT DISTINCT suite::VARCHAR AS suite, condition, model, model_variant, snapshot::VARCHAR AS snapshot, served_model, fingerprint
        FROM qa_responses
    ) AS served USING (suite, condition, model, model_variant, snapshot)
"""
_RULED_BY = (*(column.name for column in OF_ONE_PART), *MODEL, *QA_WATCHED_KEYS.asked)
_ITEM_MEANS = f"""
    SELECT {", ".join(_RULED_BY)}, item_id || chr(31) || coalesce(prompt_id, '') || chr(31) || coalesce(truth_id, '') AS item, snapshot,
        avg(score) AS score, max(temperature) AS temperature, count(temperature) = count(*) AS is_set
    FROM scores GROUP BY ALL ORDER BY ALL
"""


QA_WATCHED = of_whole_models(
    QA_WATCHED_KEYS,
    QA_MODEL_DRIFT,
    QA_DRIFT_SERIES,
    truth="expected answer",
    truths="expected answers",
    way="{condition}, {metric} by {measured_by}",
    unlike="asked other items",
)
"""Scores of items. A part may have too few items for a verdict of its own."""


def qa_drift_rule(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """QA_DRIFT: the documented rule on every part and series at temperature 0. `connection` has the tables of QA_DRIFT_READS."""
    connection.execute("SET threads = 1")
    connection.execute(_WATCHED_ITEM_SCORES)
    rows = documented_rule(connection, _ITEM_MEANS, _RULED_BY, ("suite", "part"), qa_snapshot_order(connection))
    return in_schema(pd.DataFrame(list(rows), columns=QA_DRIFT.names), QA_DRIFT)


def qa_watched_drift(connection: duckdb.DuckDBPyConnection, options: WatchOptions | None = None) -> ModelDrift:
    """The project's evidence: QA_MODEL_DRIFT and its timeline QA_DRIFT_SERIES. `connection` has the tables of QA_DRIFT_READS."""
    return watched_models(connection, QA_WATCHED, (_WATCHED_ITEM_SCORES, _SERVED), options)
