"""One row per (segment, model variant, context level, snapshot): counts, means and per-question scores."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.statistics.differences import Floats, cluster_sums
from dtef_pipeline.statistics.resampling import Resampling, interval
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.tables import METRICS, SEGMENT_RESULTS
from dtef_pipeline.tables import ANSWERED, STATUSES

_OF_RESULT = ", ".join((*KEYS.space, "snapshot", *KEYS.described, *KEYS.series, "targets", "metric"))
_ASKED = (*KEYS.pair, "battery")
_ANSWERED_SQL = ", ".join(f"'{status}'" for status in ANSWERED)

COUNTS_SQL = ", ".join(
    [
        "count(*) AS n_total",
        "count(score) AS n_scored",
        *(f"count(*) FILTER (status = '{status}') AS n_{status}" for status in STATUSES),
        f"count(*) FILTER (status = 'ok') / nullif(count(*) FILTER (status IN ({_ANSWERED_SQL})), 0) AS parse_rate",
    ]
)

_SQL = f"""
WITH targeted AS (
    SELECT scores.*, targets FROM scores, (VALUES ('clean'), ('all')) AS t(targets) WHERE targets = 'all' OR NOT circular
),
per_question AS (
    SELECT {_OF_RESULT}, question_id, min(question_order) AS question_order, avg(score) AS score, count(score) AS n_scored
    FROM targeted GROUP BY {_OF_RESULT}, question_id
),
questions AS (
    SELECT {_OF_RESULT}, list(struct_pack(question_id, score, n_scored) ORDER BY question_order, question_id) AS questions
    FROM per_question GROUP BY {_OF_RESULT}
),
means AS (
    SELECT {_OF_RESULT}, {COUNTS_SQL}, avg(score) AS score, {", ".join(f"avg({m}) AS {m}" for m in METRICS)}
    FROM targeted GROUP BY {_OF_RESULT}
)
SELECT {", ".join(name for name in SEGMENT_RESULTS.names if name not in ("score_low", "score_high"))}
FROM means JOIN questions USING ({_OF_RESULT})
ORDER BY targets DESC, context_level, model, model_variant, snapshot, condition
"""


def segment_results(scores: pa.Table, survey: pa.Table) -> pa.Table:
    """Aggregate `scores` rows (any number of segments and snapshots) into `segment_results` rows.

    `survey`: the columns `Keys.pair` and `battery` of their `survey_responses`; a question that has no row is a battery of its own.

    Means are over predictions, draws included; metric means over parsed predictions alone; `score` over those the published policy
    scores. Context levels, conditions and snapshots are never mixed. Every group stands twice, for `targets` clean and all. The interval is
    the bootstrap of the segment's batteries of questions: it holds for questions like these, asked of this segment.
    """
    # One thread: sums of several are added in any order, and equal scores are to give equal digits.
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.register("scores", scores)
        rows: pa.Table = connection.sql(_SQL).to_arrow_table()
    low, high = _intervals(rows, survey)
    return (
        rows.append_column("score_low", low)
        .append_column("score_high", high)
        .select(SEGMENT_RESULTS.names)
        .cast(SEGMENT_RESULTS)
    )


def _intervals(rows: pa.Table, survey: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Ends of the interval of each row's score; those of a segment are resampled together, and apart from other segments."""
    batteries: dict[tuple[str, str], dict[str, str]] = {}
    for round_id, segment, question, battery in zip(*(survey[name].to_pylist() for name in _ASKED), strict=True):
        batteries.setdefault((round_id, segment), {})[question] = battery
    groups = rows.select(list(KEYS.space)).to_pandas()
    low, high = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    for at, places in sorted(groups.groupby(list(KEYS.space), sort=True).indices.items()):
        sums, counts = _battery_sums(rows["questions"].take(pa.array(places)), batteries.get(at, {}))
        if len(sums):
            ends = interval(Resampling(len(sums)).ratios(sums, counts))
            low[places], high[places] = np.maximum(ends[0], 0), np.minimum(ends[1], 1)
    return pa.array(low, from_pandas=True), pa.array(high, from_pandas=True)


def _battery_sums(questions: pa.ChunkedArray, battery: Mapping[str, str]) -> tuple[Floats, Floats]:
    """Sums of scores and how many were scored, each (batteries, rows), of a column of `questions` lists."""
    lists = questions.combine_chunks()
    flat = lists.flatten()
    own = [battery.get(name, name) for name in flat.field("question_id").to_pylist()]
    asked, names = pd.factorize(np.array(own, dtype=object), sort=True)
    column = np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy())
    scored = flat.field("n_scored").to_numpy()
    total = np.nan_to_num(flat.field("score").to_numpy(zero_copy_only=False)) * scored
    shape = (len(names), len(lists))
    return cluster_sums(asked, column, total, shape), cluster_sums(asked, column, scored, shape)
