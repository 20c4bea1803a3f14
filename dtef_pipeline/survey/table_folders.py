"""The tables of the survey family: their columns and their folders in the warehouse."""

from __future__ import annotations

from collections.abc import Mapping

from dtef_pipeline.boards.family_calls import FamilyCalls, calls_by_key
from dtef_pipeline.survey import tables
from dtef_pipeline.survey.boards.schemas import TESTS
from dtef_pipeline.survey.boards.survey_boards import PUBLISHED
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.tables import TableSpec

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
