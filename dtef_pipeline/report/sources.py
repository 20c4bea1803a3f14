"""Where the page's numbers come from: the published tables where they exist, else computed from the scores."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pandas as pd

from dtef_pipeline.aggregation.boards import BoardOptions, board, load_evidence
from dtef_pipeline.report.text import named_apart

Boards = Mapping[str, pd.DataFrame]
"""Boards by view."""
_PUBLISHED = {
    "overall": "leaderboard",
    "segment": "breakdown_segment",
    "attribute": "breakdown_attribute",
    "question": "breakdown_question",
    "consistency": "consistency",
    "metric": "metric_ranks",
}


def has(connection: duckdb.DuckDBPyConnection, view: str) -> bool:
    return bool(connection.execute("SELECT count(*) FROM duckdb_views() WHERE view_name = ?", [view]).fetchall()[0][0])


def published(connection: duckdb.DuckDBPyConnection, view: str) -> pd.DataFrame:
    """Rows of a published table without circular questions, models called apart; an empty frame when there is no such table."""
    if not has(connection, view):
        return pd.DataFrame()
    frame = connection.execute(f"SELECT * FROM {view} WHERE targets = 'clean'").df()
    return named_apart(frame) if len(frame) else frame


def boards(connection: duckdb.DuckDBPyConnection) -> Boards:
    """Every board that the page shows."""
    options = BoardOptions()
    evidence = None if all(has(connection, view) for view in _PUBLISHED.values()) else load_evidence(connection, options)
    return {
        by: published(connection, view) if has(connection, view) else named_apart(board(connection, by, options, evidence))
        for by, view in _PUBLISHED.items()
    }
