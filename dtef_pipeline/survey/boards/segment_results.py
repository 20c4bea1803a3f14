"""The table of segment results, one row per (segment, model variant, context level, snapshot): counts, means and per-question scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.boards.cells import Deviations
from dtef_pipeline.boards.intervals import clip_to_unit
from dtef_pipeline.statistics.cluster_robust import Estimates, estimate_ratios, estimate_shared_variance
from dtef_pipeline.statistics.differences import Codes, sum_by_cluster
from dtef_pipeline.survey.boards.noise import ANSWER_COLUMNS, SCORE_COLUMNS, estimate_segment_noise
from dtef_pipeline.survey.boards.survey_subject import SCORED
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.tables import METRICS, SEGMENT_RESULTS
from dtef_pipeline.tables import ANSWERED

_OF_RESULT = ", ".join((*KEYS.space, "snapshot", *KEYS.described, *KEYS.series, "targets", "metric"))
_OF_INTERVAL = ("score_low", "score_high")
_ANSWERED_SQL = ", ".join(f"'{status}'" for status in ANSWERED)

_SQL = f"""
WITH targeted AS (
    SELECT scores.*, targets FROM scores, (VALUES ('clean'), ('all')) AS t(targets) WHERE targets = 'all' OR NOT circular
),
per_question AS (
    SELECT {_OF_RESULT}, question_id, min(question_order) AS question_order, avg(score) AS score, count(score) AS n_scored,
        list(place ORDER BY place) AS places
    FROM targeted GROUP BY {_OF_RESULT}, question_id
),
questions AS (
    SELECT {_OF_RESULT}, list(struct_pack(question_id, score, n_scored) ORDER BY question_order, question_id) AS questions,
        list(places ORDER BY question_order, question_id) AS answers
    FROM per_question GROUP BY {_OF_RESULT}
),
means AS (
    SELECT {_OF_RESULT}, count(*) AS n_total, count(score) AS n_scored,
        count(*) FILTER (status = 'ok') / nullif(count(*) FILTER (status IN ({_ANSWERED_SQL})), 0) AS parse_rate,
        avg(score) AS score, {", ".join(f"avg({m}) AS {m}" for m in METRICS)}
    FROM targeted GROUP BY {_OF_RESULT}
)
SELECT {", ".join(name for name in SEGMENT_RESULTS.names if name not in _OF_INTERVAL)}, answers
FROM means JOIN questions USING ({_OF_RESULT})
ORDER BY targets DESC, context_level, model, model_variant, snapshot, condition
"""


ANSWER_AND_BATTERY_COLUMNS = (*ANSWER_COLUMNS, "battery")
"""Columns of `survey_responses` that are needed."""


def compute_segment_results(scores: pa.Table, survey: pa.Table) -> pa.Table:
    """Aggregate `scores` rows (any number of segments and snapshots) into `segment_results` rows.

    `survey`: the columns ANSWER_AND_BATTERY_COLUMNS of their `survey_responses`; a question without a row is its own battery, with unknown
    respondents. Means are over predictions, including draws; metric means are over parsed predictions only, `score` is over the predictions
    that the published policy scores. Context levels, conditions and snapshots are never mixed. Every group occurs twice, for `targets`
    clean and all. The interval is that of boards: for other batteries of this kind and other respondents, who answer all questions. It does
    not depend on the rows of other segments.
    """
    # One thread: sums of several are added in any order, and equal scores are to give equal digits.
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.register("scores", scores.append_column("place", pa.array(np.arange(len(scores)))))
        rows: pa.Table = connection.sql(_SQL).to_arrow_table()
    for name, values in zip(_OF_INTERVAL, _compute_segment_intervals(rows, scores, survey), strict=True):
        rows = rows.append_column(name, pa.array(values, from_pandas=True))
    return rows.select(SEGMENT_RESULTS.names).cast(SEGMENT_RESULTS)


def _compute_segment_intervals(rows: pa.Table, scores: pa.Table, survey: pa.Table) -> tuple[npt.NDArray[Any], ...]:
    """Return the interval ends of each row's score, by segment."""
    low, high = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    score_rows = scores.select(SCORE_COLUMNS).combine_chunks()
    survey_rows = survey.select(ANSWER_AND_BATTERY_COLUMNS).combine_chunks()
    score_places, survey_places = _group_by_segment(scores), _group_by_segment(survey)
    place = np.zeros(len(scores), dtype=np.int64)
    for segment, places in sorted(_group_by_segment(rows).items()):
        segment_rows = survey_rows.take(pa.array(survey_places.get(segment, []), pa.int64()))
        noise = estimate_segment_noise(score_rows.take(pa.array(score_places[segment])), segment_rows)
        place[score_places[segment]] = np.arange(len(noise))
        means = _average_segment(rows.take(pa.array(places)), segment_rows, noise, place)
        low[places], high[places] = clip_to_unit(means)
    return low, high


def _group_by_segment(table: pa.Table) -> Mapping[tuple[str, str], npt.NDArray[np.intp]]:
    """Return the row places of each (round, segment)."""
    frame = table.select(list(KEYS.space)).to_pandas()
    return dict(frame.groupby(list(KEYS.space), sort=True).indices)


def _average_segment(rows: pa.Table, survey: pa.Table, noise: Deviations, place: Codes) -> Estimates:
    """Return the mean score of each row of a segment. `noise` is that of the scores in the rows' `answers`, each at its `place`."""
    lists = rows["questions"].combine_chunks()
    flat, answers = lists.flatten(), rows["answers"].combine_chunks().flatten()
    questions = flat.field("question_id")
    batteries = survey["battery"].take(pc.index_in(questions, survey[KEYS.item].combine_chunks())).combine_chunks()
    cluster, names = pd.factorize(pc.coalesce(batteries, questions).to_pandas(), sort=True)
    column = np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy())
    n_scored = flat.field("n_scored").to_numpy()
    total = np.nan_to_num(flat.field("score").to_numpy(zero_copy_only=False)) * n_scored
    shape = (len(names), len(lists))
    sums, counts = (sum_by_cluster(cluster, column, values, shape) for values in (total, n_scored))
    first = np.append(0, np.cumsum(answers.value_lengths().to_numpy())[:-1])
    moves = np.add.reduceat(noise[place[answers.flatten().to_numpy()]], first, axis=0)
    same_people = np.zeros(len(column), dtype=np.int64)
    correlation = SCORED.correlation(rows["model"].to_pandas())
    people_variance = estimate_shared_variance(moves, column, cluster, same_people, len(lists), correlation)
    with np.errstate(divide="ignore", invalid="ignore"):
        return estimate_ratios(sums, counts, shared=np.nan_to_num(people_variance / counts.sum(axis=0) ** 2))
