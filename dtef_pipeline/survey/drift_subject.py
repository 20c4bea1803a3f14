"""What is watched for drift of surveys: their key columns, tables and words."""

from __future__ import annotations

from dtef_pipeline.asking.models import COMPUTED_SQL
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.survey.attributes import NON_ANSWER_SQL
from dtef_pipeline.survey.boards.linked import question_clusters
from dtef_pipeline.survey.identity import round_order
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.tables import DRIFT_CHECKS, DRIFT_SERIES, MODEL_DRIFT

SUBJECT = Subject(
    keys=KEYS,
    checks=DRIFT_CHECKS,
    models=MODEL_DRIFT,
    timeline=DRIFT_SERIES,
    computed=COMPUTED_SQL,
    apart=NON_ANSWER_SQL,
    in_order=round_order,
    truth="survey",
    truths="survey answers",
    clusters=question_clusters,
    way="context {context_level}",
)
