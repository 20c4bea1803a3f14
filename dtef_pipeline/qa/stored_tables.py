"""The tables of the qa family: the columns of each, and the folders the warehouse keeps it in."""

from __future__ import annotations

from collections.abc import Mapping

from dtef_pipeline.boards.used_calls import Calls, FamilyCalls, calls_by_key
from dtef_pipeline.qa import result_tables, tables
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.tables import TableSpec

_BY_QA_ADD = "dtef qa run {options} {models} --max-calls 0 --from ingest"
_BY_QA_RUN = "dtef qa run {options} {models} --max-calls 0"
_BY_QA_ROLL_UP = "dtef qa board --refresh"
_BY_QA_ANCHORS = "dtef anchors --family qa {options}"
RESULTS_OF_PARTS = tuple(result_tables.QA_ROLLED_UP)
"""The tables that follow from the scores of all parts."""
_OF_PART, _OF_PART_SNAPSHOT = ("suite", "part"), ("suite", "part", "snapshot")
QA_TABLES: Mapping[str, TableSpec] = {
    "qa_items": TableSpec(tables.QA_ITEMS, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_examples": TableSpec(tables.QA_EXAMPLES, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_findings": TableSpec(tables.QA_FINDINGS, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_documents": TableSpec(tables.QA_DOCUMENTS, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_vectors": TableSpec(tables.QA_VECTORS, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_lookups": TableSpec(tables.QA_LOOKUPS, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_prompts": TableSpec(tables.QA_PROMPTS, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_context": TableSpec(tables.QA_CONTEXT, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_retrieval": TableSpec(tables.QA_RETRIEVAL, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_responses": TableSpec(tables.QA_RESPONSES, QA_SPACE, _OF_PART_SNAPSHOT, _BY_QA_RUN),
    "qa_judgements": TableSpec(tables.QA_JUDGEMENTS, QA_SPACE, _OF_PART_SNAPSHOT, _BY_QA_RUN),
    "qa_executions": TableSpec(tables.QA_EXECUTIONS, QA_SPACE, _OF_PART_SNAPSHOT, _BY_QA_RUN),
    "qa_citations": TableSpec(tables.QA_CITATIONS, QA_SPACE, _OF_PART_SNAPSHOT, _BY_QA_RUN),
    "qa_scores": TableSpec(tables.QA_SCORES, QA_SPACE, _OF_PART_SNAPSHOT, _BY_QA_RUN),
    "qa_anchor_items": TableSpec(result_tables.QA_ANCHOR_ITEMS, remake=_BY_QA_ANCHORS),
    "qa_anchors": TableSpec(result_tables.QA_ANCHORS, levels=("snapshot",), remake=_BY_QA_ANCHORS),
    **{name: TableSpec(schema, remake=_BY_QA_ROLL_UP) for name, schema in result_tables.QA_ROLLED_UP.items()},
}
"""By name. The first of the space is the one that ingest writes: it says which partitions there are."""
_ASKED_OF_JUDGES = {"role": "'judge'", "model": "judge_model", "variant": "judge_variant", "purpose": "evaluator"}
QA_CALL_TABLES = FamilyCalls(
    QA_SPACE,
    (calls_by_key("qa_responses"), Calls("qa_judgements", **_ASKED_OF_JUDGES), Calls("qa_anchors", **_ASKED_OF_JUDGES)),
    "evaluator",
    shown_by=("role", "suite", "evaluator", "model"),
)
