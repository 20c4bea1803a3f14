"""Where the page's numbers come from: the published tables where they exist, else computed from the scores."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pandas as pd

from dtef_pipeline.boards.boards import load_evidence
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.boards.cuts import of_cut
from dtef_pipeline.drift.models import ModelDrift, model_drift
from dtef_pipeline.drift.verdict_tables import DRIFT, DRIFT_SERIES
from dtef_pipeline.report.terminal import named_apart
from dtef_pipeline.survey.boards.published import BREAKDOWNS, PUBLISHED
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.boards.views import view
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.keys import KEYS

Boards = Mapping[str, pd.DataFrame]
"""Boards by view."""
_ON_PAGE = {view.name: view.table for view in PUBLISHED if view.is_board and view.on_page}


def published(connection: duckdb.DuckDBPyConnection, table: str, view: str = "") -> pd.DataFrame:
    """Rows of a published table without circular questions, models called apart; an empty frame when there is no such table.

    `view`: whose rows, of a table of several.
    """
    if not has_table(connection, table):
        return pd.DataFrame()
    frame = connection.execute(f"SELECT * FROM {table} WHERE targets = 'clean'").df()
    if table == BREAKDOWNS:
        frame = of_cut(frame, view, KEYS.groups)
    return named_apart(frame) if len(frame) else frame


def boards(connection: duckdb.DuckDBPyConnection) -> Boards:
    """Every board that the page shows."""
    options = SurveyBoardOptions()
    evidence = None if all(has_table(connection, table) for table in _ON_PAGE.values()) else load_evidence(connection, options)
    return {
        by: published(connection, table, by)
        if has_table(connection, table)
        else named_apart(view(connection, by, options, evidence))
        for by, table in _ON_PAGE.items()
    }


def published_drift(connection: duckdb.DuckDBPyConnection) -> ModelDrift:
    """The published tables where they exist, else the same computed from the scores."""
    if has_table(connection, "drift") and has_table(connection, "drift_series"):
        of_family = f"WHERE family = '{SUBJECT.family}'"
        checks, series = (
            connection.sql(f"SELECT {', '.join(schema.names)} FROM {name} {of_family}").to_arrow_table()
            for name, schema in (("drift", DRIFT), ("drift_series", DRIFT_SERIES))
        )
        if len(checks):
            return ModelDrift(checks, series)
    return model_drift(connection, SUBJECT)
