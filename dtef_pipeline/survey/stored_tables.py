"""The tables of the survey family: the columns of each, and the folders the warehouse keeps it in."""

from __future__ import annotations

from collections.abc import Mapping

from dtef_pipeline.survey import tables
from dtef_pipeline.survey.boards.published import PUBLISHED
from dtef_pipeline.survey.boards.schemas import TESTS
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.tables import TableSpec

_ROUND, _SEGMENT, _SNAPSHOT = ("round",), ("round", "segment"), ("round", "segment", "snapshot")
TABLES: Mapping[str, TableSpec] = {
    "survey_responses": TableSpec(tables.SURVEY_RESPONSES, SPACE, _SEGMENT),
    "reference_scores": TableSpec(tables.REFERENCE_SCORES, SPACE, _SEGMENT),
    "survey_quarantine": TableSpec(tables.SURVEY_QUARANTINE, SPACE, _ROUND),
    "survey_findings": TableSpec(tables.SURVEY_FINDINGS, SPACE, _ROUND),
    "blueprints": TableSpec(tables.BLUEPRINTS, SPACE, _SEGMENT),
    "predictions": TableSpec(tables.PREDICTIONS, SPACE, _SNAPSHOT),
    "scores": TableSpec(tables.SCORES, SPACE, _SNAPSHOT),
    "segment_results": TableSpec(tables.SEGMENT_RESULTS, SPACE, _SNAPSHOT),
    "drift_checks": TableSpec(tables.DRIFT_CHECKS, SPACE, _SEGMENT),
    "model_drift": TableSpec(tables.MODEL_DRIFT),
    "drift_series": TableSpec(tables.DRIFT_SERIES),
    **{view.table: TableSpec(TESTS.get(view.table)) for view in PUBLISHED},
    "costs": TableSpec(tables.COSTS),
}
"""By name. The first of a space is the one that ingest writes: it says which partitions there are."""
