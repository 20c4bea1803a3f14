"""The tables of the rubric family: the columns of each, and the folders the warehouse keeps it in."""

from __future__ import annotations

from collections.abc import Mapping

from dtef_pipeline.boards.used_calls import Calls, FamilyCalls
from dtef_pipeline.rubric import roll_up_tables, tables
from dtef_pipeline.rubric.anonymise import ANALYST_IDS
from dtef_pipeline.rubric.human_labels import RUBRIC_LABELS
from dtef_pipeline.rubric.roll_up_tables import RUBRIC_ANCHORS
from dtef_pipeline.rubric.space import RUBRIC_SPACE
from dtef_pipeline.tables import TableSpec

RESULTS_OF_ALL = ("rubric_board", *roll_up_tables.RUBRIC_ROLLED_UP, *roll_up_tables.RUBRIC_CORRECTIONS)
"""The tables that follow from the scores of all blueprints."""
_BY_ADD = "dtef rubric run {options} {models} --max-calls 0 --from ingest"
_BY_RUBRIC_RUN = "dtef rubric run {options} {models} --max-calls 0"
_BY_ROLL_UP = "dtef rubric board --refresh"
_BY_DRAW, _BY_IMPORT = "dtef export labels SHEET", "dtef import labels SHEET"
_BY_ANCHORS = "dtef anchors --family rubric {options}"
_OF_BLUEPRINT, _OF_SNAPSHOT = ("blueprint",), ("blueprint", "snapshot")
RUBRIC_TABLES: Mapping[str, TableSpec] = {
    "rubric_blueprints": TableSpec(tables.RUBRIC_BLUEPRINTS, RUBRIC_SPACE, _OF_BLUEPRINT, _BY_ADD),
    "rubric_prompts": TableSpec(tables.RUBRIC_PROMPTS, RUBRIC_SPACE, _OF_BLUEPRINT, _BY_ADD),
    "rubric_criteria": TableSpec(tables.RUBRIC_CRITERIA, RUBRIC_SPACE, _OF_BLUEPRINT, _BY_ADD),
    "rubric_extractions": TableSpec(
        tables.RUBRIC_EXTRACTIONS,
        RUBRIC_SPACE,
        _OF_BLUEPRINT,
        "dtef rubric run {options} {models} --max-calls 0",
    ),
    "rubric_findings": TableSpec(tables.RUBRIC_FINDINGS, RUBRIC_SPACE, _OF_BLUEPRINT, _BY_ADD),
    "rubric_responses": TableSpec(tables.RUBRIC_RESPONSES, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "rubric_judgements": TableSpec(tables.RUBRIC_JUDGEMENTS, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "rubric_embeddings": TableSpec(tables.RUBRIC_EMBEDDINGS, RUBRIC_SPACE, _OF_BLUEPRINT, _BY_RUBRIC_RUN),
    "rubric_similarities": TableSpec(tables.RUBRIC_SIMILARITIES, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "rubric_points": TableSpec(tables.RUBRIC_POINTS, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "rubric_scores": TableSpec(tables.RUBRIC_SCORES, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "rubric_runs": TableSpec(tables.RUBRIC_RUNS, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "rubric_summaries": TableSpec(roll_up_tables.RUBRIC_SUMMARIES, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "rubric_grades": TableSpec(roll_up_tables.RUBRIC_GRADES, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "analyst_ids": TableSpec(ANALYST_IDS, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "rubric_label_draws": TableSpec(roll_up_tables.RUBRIC_LABEL_DRAWS, remake=_BY_DRAW),
    "rubric_label_items": TableSpec(roll_up_tables.RUBRIC_LABEL_ITEMS, remake=_BY_DRAW),
    "rubric_labels": TableSpec(RUBRIC_LABELS, remake=_BY_IMPORT),
    "rubric_anchor_items": TableSpec(roll_up_tables.RUBRIC_ANCHOR_ITEMS, remake=_BY_ANCHORS),
    "rubric_anchors": TableSpec(RUBRIC_ANCHORS, levels=("snapshot",), remake=_BY_ANCHORS),
    **{name: TableSpec(schema, remake=_BY_ROLL_UP) for name, schema in roll_up_tables.RUBRIC_CORRECTIONS.items()},
    **{
        name: TableSpec(schema, remake=_BY_ROLL_UP)
        for name, schema in {"rubric_board": tables.RUBRIC_BOARD, **roll_up_tables.RUBRIC_ROLLED_UP}.items()
    },
}
"""By name. The first of the space is the one that ingest writes: it says which partitions there are."""
_ASKED_OF_ANALYSTS = {"role": "'analyst'", "model": "analyst", "variant": "analyst_variant"}
RUBRIC_CALL_TABLES = FamilyCalls(
    RUBRIC_SPACE,
    (
        Calls("rubric_responses", replies="turns", status="status", error="error"),
        Calls("rubric_judgements", role="'judge'", model="judge_model", variant="judge_variant", status="reason"),
        Calls("rubric_summaries", **_ASKED_OF_ANALYSTS),
        Calls("rubric_extractions", **_ASKED_OF_ANALYSTS, snapshot="NULL"),
    ),
    embeds=True,
)
