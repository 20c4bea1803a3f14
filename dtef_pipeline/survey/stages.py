"""Stages of the survey family that need only tables and settings: the scores of predictions, and the results of a segment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.models import COMPUTED
from dtef_pipeline.boards.family_calls import FamilyCalls, calls_by_key
from dtef_pipeline.family.stage import Check, Inputs, Stage, Tables, make_uniqueness_check
from dtef_pipeline.preference.pairing import MetricSource, PairedSource
from dtef_pipeline.survey import tables
from dtef_pipeline.survey.boards.schemas import TESTS
from dtef_pipeline.survey.boards.segment_results import ANSWER_AND_BATTERY_COLUMNS, compute_segment_results
from dtef_pipeline.survey.boards.survey_boards import PUBLISHED
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.scoring.score import score_predictions
from dtef_pipeline.survey.settings import SURVEY_STAGE_SETTINGS, SurveySettings
from dtef_pipeline.tables import ANSWERED, READ_ENOUGH, TableSpec

_BY_RUN = "dtef run {options} --from-store"
_BY_INGEST = f"{_BY_RUN} --from ingest"
_ROUND, _SEGMENT, _SNAPSHOT = ("round",), ("round", "segment"), ("round", "segment", "snapshot")
SURVEY_TABLES: Mapping[str, TableSpec] = {
    "survey_responses": TableSpec(tables.SURVEY_RESPONSES, SPACE, _SEGMENT, _BY_INGEST),
    "reference_scores": TableSpec(tables.REFERENCE_SCORES, SPACE, _SEGMENT, _BY_INGEST),
    "survey_quarantine": TableSpec(tables.SURVEY_QUARANTINE, SPACE, _ROUND, _BY_INGEST),
    "survey_findings": TableSpec(tables.SURVEY_FINDINGS, SPACE, _ROUND, _BY_INGEST),
    "blueprints": TableSpec(tables.BLUEPRINTS, SPACE, _SEGMENT, _BY_RUN),
    "predictions": TableSpec(tables.PREDICTIONS, SPACE, _SNAPSHOT, _BY_RUN),
    "scores": TableSpec(tables.SCORES, SPACE, _SNAPSHOT, _BY_RUN),
    "segment_results": TableSpec(tables.SEGMENT_RESULTS, SPACE, _SNAPSHOT, _BY_RUN),
    "drift_checks": TableSpec(tables.DRIFT_CHECKS, SPACE, _SEGMENT, _BY_RUN),
    **{view.table: TableSpec(TESTS.get(view.table)) for view in PUBLISHED if view.table != "comparisons"},
    "question_batteries": TableSpec(tables.QUESTION_BATTERIES),
}
"""By name. The first of a space is the one that ingest writes: it says which partitions there are."""
SURVEY_CALL_TABLES = FamilyCalls(
    SPACE, (calls_by_key("predictions", purpose="condition", setting="context_level"),), "condition", summed_by=("model",)
)


def score_segment(inputs: Inputs, settings: SurveySettings) -> Tables:
    """Return the scores of a segment's predictions."""
    survey = inputs.read("survey_responses")
    predictions = inputs.read("predictions") if settings.only_snapshot else inputs.rows("predictions")
    # An older snapshot may hold questions that the survey no longer has: there is nothing left to score them against.
    rows = predictions.filter(pc.is_in(predictions["question_id"], survey["question_id"].combine_chunks()))
    return {"scores": score_predictions(rows, survey, metric=settings.metric)}


def _score_counts(tables: Tables) -> Mapping[str, Any]:
    rows = tables["scores"]
    answers = rows.filter(pc.is_in(rows["status"], pa.array(ANSWERED)))
    is_baseline = pc.starts_with(rows["model_variant"], COMPUTED)
    means = {
        f"mean_{name}{suffix}": pc.mean(part[name]).as_py()
        for suffix, part in (("", rows.filter(pc.invert(is_baseline))), ("_baselines", rows.filter(is_baseline)))
        for name in ("score", "l2_corrected")
    }
    read = pc.mean(pc.cast(pc.equal(answers["status"], "ok"), pa.float64())).as_py()
    return {
        "snapshots": ", ".join(pc.unique(rows["snapshot"]).to_pylist()),
        "scored": len(rows) - rows["score"].null_count,
        "unscored": rows["score"].null_count,
        **{name: mean for name, mean in {"parse_rate": read, **means}.items() if mean is not None},
    }


def _list_barely_parsed_models(_: Inputs, rows: pa.Table) -> Iterator[str]:
    frame = rows.to_pandas()
    frame = frame[frame["status"].isin(ANSWERED)]
    rates = (frame["status"] == "ok").groupby(frame["model"]).mean()
    for model, rate in rates[rates < READ_ENOUGH].items():
        yield f"{model}: {rate:.1%} parsed"


SCORES_STAGE = Stage(
    "scores",
    """How close each prediction is: one row per prediction, with how its response was read and every metric.

    `status` is `ok` if the response could be read, else it says why not. Metrics are null unless it is `ok`; `score` follows the published
    policy (0 for an unreadable response, 0.1 for one of the wrong length, null for a failed call). `l2_corrected` and `rps_corrected` are
    errors minus the sampling error of a segment of this size: lower is better, below 0 by chance. Scoring makes no requests.""",
    score_segment,
    after=("predictions",),
    settings=SURVEY_STAGE_SETTINGS["scores"],
    version="5",
    follows=True,
    is_exclusive=True,
    snapshot=lambda settings: settings.only_snapshot,
    checks=(
        make_uniqueness_check(
            "scores", ("prompt_id", "question_id", "context_level", "condition", "model_variant", "draw", "snapshot")
        ),
        Check(
            "survey_responses_are_readable",
            "Warns of models with fewer than 90 % readable responses.",
            "scores",
            ("model", "status"),
            _list_barely_parsed_models,
        ),
    ),
    preview=("question_id", "model", "context_level", "status", "score", "js"),
    counted_columns=("status",),
    metadata=_score_counts,
    verb="score",
)


def aggregate_segments(inputs: Sequence[Inputs], settings: SurveySettings) -> Mapping[str, Tables]:
    """Return the results of segments by partition. A single query for many costs as much as one for each."""
    scores = pa.concat_tables([source.read("scores") for source in inputs])
    survey_rows = pa.concat_tables([source.read("survey_responses", list(ANSWER_AND_BATTERY_COLUMNS)) for source in inputs])
    rows = compute_segment_results(scores, survey_rows)
    key_levels = {source.key: source.levels for source in inputs}
    return {
        key: {
            "segment_results": rows.filter(
                (pc.field(SPACE.first) == levels[SPACE.first]) & (pc.field(SPACE.last) == levels[SPACE.last])
            )
        }
        for key, levels in key_levels.items()
    }


def aggregate_segment(inputs: Inputs, settings: SurveySettings) -> Tables:
    """Return the results of one segment."""
    return aggregate_segments([inputs], settings)[inputs.key]


def _summarise_best_results(tables: Tables) -> Mapping[str, Any]:
    rows = tables["segment_results"]
    clean = rows.filter(pc.equal(rows["targets"], "clean")).sort_by([("score", "descending")])
    columns = ["model", "context_level", "snapshot", "n_total", "n_scored", "parse_rate", "score", "score_low", "score_high"]
    return {
        "snapshots": ", ".join(pc.unique(rows["snapshot"]).to_pylist()),
        "models": len(pc.unique(rows["model"])),
        "preview": clean.select(columns).slice(0, 12),
    }


RESULTS_STAGE = Stage(
    "segment_results",
    """Results of each model on this segment: one row per (model variant, context level, snapshot), with counts, means and 95 % intervals.

    Every group occurs twice: `targets = clean` leaves out questions that define the segment, `all` keeps them as the published figures do.
    `parse_rate` is the share of readable responses; `questions` is the mean score of each target question.""",
    aggregate_segment,
    make_together=aggregate_segments,
    after=("scores",),
    settings=SURVEY_STAGE_SETTINGS["segment_results"],
    version="6",
    follows=True,
    is_exclusive=True,
    snapshot=lambda settings: settings.only_snapshot,
    checks=(
        make_uniqueness_check(
            "segment_results", ("model_variant", "model", "context_level", "condition", "targets", "snapshot")
        ),
    ),
    metadata=_summarise_best_results,
    verb="aggregate",
)


_SURVEY_METRICS = MetricSource(
    ("leaderboard",),
    """
    SELECT 'all' AS partition, model_variant AS player, 'higher' AS direction,
           metric || ' [context ' || context_level || ', ' || condition || ']' AS metric, score AS value, score_low AS low, score_high AS high,
           n_pairs AS n
    FROM leaderboard WHERE targets = 'clean'
    """,
)
SURVEY_PAIRED = PairedSource(
    ("predictions", "blueprints"),
    """
    SELECT r.round AS first, r.segment AS second,
           r.round || '/' || r.segment || '/' || r.question_id || ' [' || r.context_level || ', ' || r.condition || ']' AS item_id,
           r.model, r.served_model, r.model_variant AS player, r.draw, r.snapshot,
           [{'role': 'system', 'text': p.system}, {'role': 'user', 'text': p.user}] AS messages,
           r.response AS text, [r.request_key] AS request_keys
    FROM predictions r
    JOIN blueprints p USING (round, segment, question_id, context_level, condition, prompt_id)
    WHERE r.call_status = 'answered' AND r.response IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY r.request_key ORDER BY r.question_id, p.reading) = 1
    """,
    (_SURVEY_METRICS,),
)
