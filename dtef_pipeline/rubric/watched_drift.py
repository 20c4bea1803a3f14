"""What is watched for drift of rubrics: hybrid scores of prompts, night by night, beside the documented rule.

An item is a prompt of a blueprint with one of its system prompts; its value is the hybrid score of its cell. A series is a model variant under
one set of judges. Items are compared within one run label alone: an edited test, another judge or another policy makes other items.
"""

from __future__ import annotations

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.drift.anchored import JudgeDrift, night_times
from dtef_pipeline.drift.models import ModelDrift
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.watched import first_times, of_whole_models, watched_models
from dtef_pipeline.keys import Keys
from dtef_pipeline.rubric.anchor_rows import judge_drifts, net_of_judges
from dtef_pipeline.rubric.documented_drift import documented_drift
from dtef_pipeline.rubric.published_boards import rubric_snapshot_order
from dtef_pipeline.rubric.roll_up_tables import RUBRIC_DRIFT, RUBRIC_DRIFT_SERIES, RUBRIC_MODEL_DRIFT
from dtef_pipeline.tables import in_schema

DRIFT_READS = ("rubric_scores", "rubric_runs", "rubric_responses")
"""The tables that drift is told by."""
WATCHED_KEYS = Keys(
    space=("blueprint", "system"),
    item="prompt",
    noun="prompt",
    asked=("judges",),
    cluster="cluster",
    score_again="score those blueprints again with `dtef rubric run`",
)
_JUDGED_BY = "coalesce(nullif(array_to_string(judges, ', '), ''), 'functions alone')"
_WATCHED_SCORES = f"""
    CREATE OR REPLACE TEMP TABLE scores AS
    SELECT cells.blueprint::VARCHAR AS blueprint, system_index::VARCHAR AS system, prompt, {_JUDGED_BY} AS judges, model, model_variant,
        cells.snapshot::VARCHAR AS snapshot, temperature, hybrid AS score, CASE WHEN hybrid IS NULL THEN 'error' ELSE 'ok' END AS status,
        'hybrid' AS metric, prompt AS prompt_id, run_label AS truth_id, first_answered AS answered_at
    FROM rubric_scores AS cells JOIN rubric_runs AS runs ON cells.blueprint = runs.blueprint AND cells.snapshot = runs.snapshot
        LEFT JOIN first_answers ON cells.blueprint::VARCHAR = first_answers.blueprint AND cells.snapshot::VARCHAR = first_answers.snapshot
    WHERE level = 'cell'
"""
_WATCHED_SERVED = f"""
    CREATE OR REPLACE TEMP TABLE predictions AS
    SELECT DISTINCT responses.blueprint::VARCHAR AS blueprint, {_JUDGED_BY} AS judges, model, model_variant,
        responses.snapshot::VARCHAR AS snapshot, served_model, fingerprint
    FROM rubric_responses AS responses JOIN rubric_runs AS runs
        ON responses.blueprint = runs.blueprint AND responses.snapshot = runs.snapshot
"""
_FIRST_ANSWERS = """
    CREATE OR REPLACE TEMP TABLE first_answers AS
    SELECT blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot, min(answered_at) AS first_answered
    FROM rubric_responses GROUP BY ALL
"""


WATCHED = of_whole_models(
    WATCHED_KEYS,
    RUBRIC_MODEL_DRIFT,
    RUBRIC_DRIFT_SERIES,
    truth="rubric",
    truths="rubrics, judges or policies",
    way="judged by {judges}",
    unlike="had other prompts or another run label: test, judges or policy",
)
"""Scores of rubrics. A blueprint has too few prompts for a verdict of its own."""


def documented_drift_table(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """RUBRIC_DRIFT: the documented rule on every run label and variant at temperature 0. `connection` has the tables of DRIFT_READS."""
    cells = connection.execute("SELECT * EXCLUDE (reasons) FROM rubric_scores WHERE level = 'cell'").df()
    runs = connection.execute(
        "SELECT blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot, run_label FROM rubric_runs"
    ).df()
    times = first_times(connection, "rubric_responses", ("blueprint",))
    return in_schema(documented_drift(cells, runs, times, rubric_snapshot_order(connection)), RUBRIC_DRIFT)


def watched_drift(connection: duckdb.DuckDBPyConnection, options: WatchOptions | None = None) -> ModelDrift:
    """The project's evidence: one row per model variant and set of judges, and its timeline. `connection` has the tables of DRIFT_READS."""
    return watched_models(connection, WATCHED, (_FIRST_ANSWERS, _WATCHED_SCORES, _WATCHED_SERVED), options)


def net_drift(checks: pa.Table, anchored: pd.DataFrame, options: WatchOptions | None = None) -> pa.Table:
    """RUBRIC_MODEL_DRIFT with what is the judges' part of each model's shift; as it was where no anchors were judged.

    `anchored`: the rows of `rubric_anchors`, which judges were shown again in these nights.
    """
    if not len(anchored):
        return checks
    options, nights = options or WatchOptions(), night_times(anchored["snapshot"].astype(str).unique().tolist())
    judged: dict[str | None, list[JudgeDrift]] = {}
    rows = []
    for row in checks.to_pylist():
        since = options.since_of(row["model"], row["model_variant"])
        if since not in judged:
            judged[since] = judge_drifts(anchored, nights, options.beside(row["model"], row["model_variant"]))
        own = [one for one in judged[since] if one.judge in row["judges"].split(", ")]
        net = net_of_judges(row, own)
        told = {"cause": net.cause, "judges_shift": net.judges_shift, "net_shift": net.net_shift, "told_of_judges": net.text}
        rows.append({**row, **told})
    return pa.Table.from_pylist(rows, checks.schema)
