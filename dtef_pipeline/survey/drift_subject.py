"""The drift of surveys: key columns, tables and texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import duckdb

from dtef_pipeline.asking.models import COMPUTED_SQL
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.survey.answer_scales.batteries import load_question_clusters
from dtef_pipeline.survey.attributes import NON_ANSWER_SQL
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.changes import add_moved_texts
from dtef_pipeline.survey.identity import make_round_order
from dtef_pipeline.survey.keys import KEYS

_USUAL_CONDITION = BlueprintOptions().condition
_RULED_SEGMENTS = """
    SELECT round || '/' || segment AS partition, '' AS test, * EXCLUDE (round, segment)
    FROM drift_checks ORDER BY partition, model, model_variant, setting
"""


def describe_setting(row: Mapping[str, Any]) -> str:
    """Return `context 0`, with the condition unless it is the default."""
    unusual = "" if row["condition"] == _USUAL_CONDITION else f", condition {row['condition']}"
    return f"context {row['context_level']}{unusual}"


def load_segment_rulings(connection: duckdb.DuckDBPyConnection) -> Iterator[dict[str, Any]]:
    """Yield the `drift_checks` results of each segment."""
    if has_table(connection, "drift_checks"):
        yield from connection.sql(_RULED_SEGMENTS).to_arrow_table().to_pylist()


SUBJECT = Subject(
    family="survey",
    keys=KEYS,
    describe_setting=describe_setting,
    truth="survey",
    truths="survey answers",
    reads=("scores", "predictions", "survey_responses"),
    rule=load_segment_rulings,
    rule_tables=("drift_checks",),
    computed_sql=COMPUTED_SQL,
    in_order=make_round_order,
    clusters=load_question_clusters,
    add_texts=add_moved_texts,
    left_out_sql=NON_ANSWER_SQL,
)
