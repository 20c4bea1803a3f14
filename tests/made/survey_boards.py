"""Boards of made scores, as a roll-up stores them."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.survey.boards.board_rows import compute_board
from dtef_pipeline.survey.boards.survey_boards import BREAKDOWNS, BY_NAME
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.tables import BLUEPRINTS, PREDICTIONS


def predictions_of(scores: pa.Table, responses: Sequence[str]) -> pa.Table:
    """One row per row of `scores`, with its response."""
    rows = [{**row, "response": response} for row, response in zip(scores.to_pylist(), responses, strict=True)]
    return pa.Table.from_pylist(rows, schema=PREDICTIONS)


def blueprints_of(scores: pa.Table) -> pa.Table:
    """The prompt of each row of `scores`, once."""
    rows = {
        row["prompt_id"]: {**row, "system": "Be exact.", "user": f"Group: {row['segment']}\n\n{row['question_id']}?"}
        for row in scores.to_pylist()
    }
    return pa.Table.from_pylist(list(rows.values()), schema=BLUEPRINTS)


BOARDS_OF_PAGES = ("overall", "segment", "attribute", "question")


def store_boards(connection: duckdb.DuckDBPyConnection, names: Sequence[str] = BOARDS_OF_PAGES) -> None:
    """Make the tables of these boards, without intervals, which take most of the time."""
    options = SurveyBoardOptions(intervals=False)
    frames = {name: compute_board(connection, name, options).assign(targets="clean", cut=name) for name in names}
    for table in {BY_NAME[name].table for name in names}:
        rows = pd.concat([frame for name, frame in frames.items() if BY_NAME[name].table == table], ignore_index=True)
        connection.register(table, rows if table == BREAKDOWNS else rows.drop(columns="cut"))
