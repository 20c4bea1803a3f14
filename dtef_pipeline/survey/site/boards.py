"""The boards and tests that pages show: the stored tables or, if missing, the same computed from the scores."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.boards.boards import load_evidence
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.boards.cuts import select_cut
from dtef_pipeline.survey.boards.board_rows import compute_board
from dtef_pipeline.survey.boards.survey_boards import BREAKDOWNS, PUBLISHED
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.site.survey_labels import map_variant_names

Boards = Mapping[str, pd.DataFrame]
"""Rows by the name of their view."""


def load_boards(connection: duckdb.DuckDBPyConnection) -> Boards:
    """Return every published view, without questions that define a segment, with `name`, the model's name on pages.

    Boards that are not stored are computed, and tests are then empty, because boards and tests are stored together.
    """
    options = SurveyBoardOptions()
    lacking = [v.name for v in PUBLISHED if not has_table(connection, v.table) and (not v.needs or v.name == "comparisons")]
    evidence = load_evidence(connection, options) if lacking else None
    frames = {
        v.name: compute_board(connection, v.name, options, evidence)
        if v.name in lacking
        else _read_table(connection, v.table, v.name)
        for v in PUBLISHED
    }
    names = map_variant_names(frames["overall"]) if len(frames["overall"]) else {}
    return {name: _rename_models(frame, names) for name, frame in frames.items()}


def _read_table(connection: duckdb.DuckDBPyConnection, table: str, name: str) -> pd.DataFrame:
    if not has_table(connection, table):
        return pd.DataFrame()
    family = " AND family = 'survey'" if table == "comparisons" else ""
    frame = connection.execute(f"SELECT * FROM {table} WHERE targets = 'clean'{family}").df()
    return select_cut(frame, name, KEYS.groups) if table == BREAKDOWNS else frame


def _rename_models(frame: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    if "model_variant" not in frame:
        return frame
    variants = frame["model_variant"].astype(str)
    model_names = variants.map(names).fillna(frame["model"].astype(str))
    return frame.assign(name=model_names, is_reference=variants.map(is_computed).astype(bool))
