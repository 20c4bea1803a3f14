"""The texts of changed questions, by their ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

from dtef_pipeline.boards.cells import has_table


def list_moved_rounds(checks: pa.Table) -> list[str]:
    """Return the rounds of the questions in `top_changes`, sorted."""
    return sorted({round_id for row in checks.to_pylist() for round_id, _ in _list_changed_questions(row)})


def add_moved_texts(checks: pa.Table, connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return the rows of DRIFT_CHECKS or DRIFT with `text` filled in `top_changes`, null for a question whose survey is missing.

    `connection` has a view `survey_responses` of the rounds of `list_moved_rounds`.
    """
    rows = checks.to_pylist()
    questions = sorted({question for row in rows for question in _list_changed_questions(row)})
    if not questions or not has_table(connection, "survey_responses"):
        return checks
    text_rows = connection.execute(
        """SELECT round, question_id, min(question_text) FROM survey_responses
        SEMI JOIN (SELECT unnest($rounds) AS round, unnest($ids) AS question_id) USING (round, question_id) GROUP BY ALL""",
        {"rounds": [round_id for round_id, _ in questions], "ids": [question for _, question in questions]},
    ).fetchall()
    texts = {(round_id, question): text for round_id, question, text in text_rows}
    for row in rows:
        for move, question in zip(row["top_changes"] or (), _list_changed_questions(row), strict=True):
            move["text"] = texts.get(question)
    return pa.Table.from_pylist(rows, checks.schema)


def _list_changed_questions(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return round and id of each question."""
    return [tuple(move["item"].split("/", 1)) for move in row["top_changes"] or ()]
