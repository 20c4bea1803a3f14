"""Drift on the pages of the games family: whether players play the same games as well as they did."""

from __future__ import annotations

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.games.report.terms import GAMES_NAMES
from dtef_pipeline.games.tables import GAMES_DRIFT_SERIES, GAMES_MODEL_DRIFT
from dtef_pipeline.report.drift_chapter import WatchedSeries, drift_chapter, flagged_alone, not_compared
from dtef_pipeline.report.markup import Column, estimate, long_text, table, text, whole
from dtef_pipeline.report.page import Chapter
from dtef_pipeline.report.stored_rows import StoredRows

GAMES_DRIFT_SHOWN = ("games_drift", "games_model_drift", "games_drift_series")
"""The tables that the chapter is made of."""
_DRIFTED_PLAY_BY = ("model_variant", "persona", "opponent", "metric")
_WATCHED_PLAY = WatchedSeries(
    checks=("games_model_drift", GAMES_MODEL_DRIFT),
    series=("games_drift_series", GAMES_DRIFT_SERIES),
    order=_DRIFTED_PLAY_BY,
    names=GAMES_NAMES,
    how="Whether a player plays the same games as well as it did in earlier snapshots.",
    made_by="`dtef games board --refresh` compares the snapshots of `dtef games run`",
    run="dtef games run",
)
_PLAYED_TOLD = (
    Column("model", "Model", text),
    Column("persona", "Persona", text),
    Column("opponent", "Opponent", text),
    Column("metric", "Metric", text),
)
_RULED_SCENARIOS = (
    Column("scenario", "Scenario", text),
    Column("version", "Version", whole),
    *_PLAYED_TOLD,
    Column("gap", "Gap", estimate),
    Column("lowest", "Lowest", estimate),
    Column("lowest_snapshot", "in", text),
    Column("highest", "Highest", estimate),
    Column("highest_snapshot", "in", text),
    Column("n_items", "Items", whole),
)
_UNCOMPARED_PLAY = (*_PLAYED_TOLD, Column("n_snapshots", "Snapshots", whole), Column("reason", "Why not", long_text))


def games_drift_chapter(rows: StoredRows, connection: duckdb.DuckDBPyConnection) -> Chapter:
    """The chapter: verdicts on players with timelines, then the scenarios that the documented rule flags; without tables what makes them."""

    def beneath(_: pa.Table, left: pd.DataFrame) -> str:
        return _flagged_scenarios(rows) + not_compared(left, _UNCOMPARED_PLAY, left[["model", *_DRIFTED_PLAY_BY, "reason"]])

    return drift_chapter(rows, connection, _WATCHED_PLAY, beneath)


def _flagged_scenarios(rows: StoredRows) -> str:
    """The single scenarios that the documented rule flags, the largest gap first."""
    told, flagged = flagged_alone(rows.frame("games_drift"), "scenarios")
    if not len(flagged):
        return told
    named = flagged.assign(scenario=flagged["league"] + "/" + flagged["scenario"])
    named = named.sort_values(["gap", "scenario", *_DRIFTED_PLAY_BY], ascending=[False] + [True] * 5, ignore_index=True)
    return told + table(named, _RULED_SCENARIOS, caption="Scenarios that the documented rule flags", data=named)
