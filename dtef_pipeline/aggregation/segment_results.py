"""One row a (segment, model variant, context level, snapshot): counts, means and per-question scores."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from dtef_pipeline.tables import ANSWERED, METRICS, SEGMENT_RESULTS, STATUSES

_KEYS = "round, segment, snapshot, attribute, value, model, model_variant, context_level, condition, targets, metric"
_ANSWERED = ", ".join(f"'{status}'" for status in ANSWERED)

COUNTS_SQL = ", ".join(
    [
        "count(*) AS n_total",
        "count(score) AS n_scored",
        *(f"count(*) FILTER (status = '{status}') AS n_{status}" for status in STATUSES),
        f"count(*) FILTER (status = 'ok') / nullif(count(*) FILTER (status IN ({_ANSWERED})), 0) AS parse_rate",
    ]
)

_SQL = f"""
WITH targeted AS (
    SELECT scores.*, targets FROM scores, (VALUES ('clean'), ('all')) AS t(targets) WHERE targets = 'all' OR NOT circular
),
per_question AS (
    SELECT {_KEYS}, question_id, min(question_order) AS question_order, avg(score) AS score, count(score) AS n_scored
    FROM targeted GROUP BY {_KEYS}, question_id
),
questions AS (
    SELECT {_KEYS}, list(struct_pack(question_id, score, n_scored) ORDER BY question_order, question_id) AS questions
    FROM per_question GROUP BY {_KEYS}
),
means AS (
    SELECT {_KEYS}, {COUNTS_SQL}, avg(score) AS score, {", ".join(f"avg({m}) AS {m}" for m in METRICS)}
    FROM targeted GROUP BY {_KEYS}
)
SELECT {", ".join(SEGMENT_RESULTS.names)} FROM means JOIN questions USING ({_KEYS})
ORDER BY targets DESC, context_level, model, model_variant, snapshot, condition
"""


def segment_results(scores: pa.Table) -> pa.Table:
    """Aggregate `scores` rows (any number of segments and snapshots) into `segment_results` rows.

    Means are over predictions, draws included; metric means over parsed predictions alone; `score` over those the published policy
    scores. Context levels, conditions and snapshots are never mixed. Every group stands twice, for `targets` clean and all.
    """
    # One thread: sums of several are added in any order, and equal scores are to give equal digits.
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("scores", scores)
        rows: pa.Table = connection.sql(_SQL).to_arrow_table()
        return rows.cast(SEGMENT_RESULTS)
