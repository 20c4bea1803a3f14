"""Drift on the pages of the games family: whether players play the same games as well as they did."""

from __future__ import annotations

import duckdb
import pandas as pd
import pyarrow.compute as pc

from dtef_pipeline.drift.checks import headline
from dtef_pipeline.drift.models import ModelDrift
from dtef_pipeline.games.drift_tables import GAMES_DRIFT_SERIES, GAMES_MODEL_DRIFT
from dtef_pipeline.games.report.terms import GAMES_NAMES
from dtef_pipeline.report.drift import drift
from dtef_pipeline.report.isolated import missing
from dtef_pipeline.report.markup import Column, estimate, fold, long_text, paragraph, section, table, text, whole
from dtef_pipeline.report.page import Chapter
from dtef_pipeline.report.stored_rows import StoredRows

GAMES_DRIFT_SHOWN = ("games_drift", "games_model_drift", "games_drift_series")
"""The tables that the chapter is made of."""
_NO_PLAY_DRIFT_HOW = "Whether a player plays the same games as well as it did in earlier snapshots."
_MADE_BY_GAMES_ROLL_UP = "`dtef games rollup` compares the snapshots of `dtef games run`"
_DRIFTED_PLAY_BY = ("model_variant", "persona", "opponent", "metric")
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
    return Chapter("drift", "Drift", _players(rows, connection))


def _players(rows: StoredRows, connection: duckdb.DuckDBPyConnection) -> str:
    made = {"games_model_drift": GAMES_MODEL_DRIFT, "games_drift_series": GAMES_DRIFT_SERIES}
    if not all(set(schema.names) <= rows.columns(name) for name, schema in made.items()):
        return section("drift", "Drift", _NO_PLAY_DRIFT_HOW, missing("No drift to show", _MADE_BY_GAMES_ROLL_UP))
    checks, series = (rows.table(name, schema.names, {}, (*_DRIFTED_PLAY_BY, "snapshot")) for name, schema in made.items())
    was_compared = pc.is_valid(checks["verdict"])
    if not any(was_compared.to_pylist()):
        again = "the same `dtef games run` on another day, with that day as --snapshot, makes something to compare"
        nothing = headline(checks, GAMES_NAMES.subject).rstrip(".") if len(checks) else "No drift to show"
        return section("drift", "Drift", _NO_PLAY_DRIFT_HOW, missing(nothing, again))
    left = checks.filter(pc.invert(was_compared)).to_pandas()
    found = ModelDrift(checks.filter(was_compared), series)
    return drift(connection, found, GAMES_NAMES, _flagged_scenarios(rows) + _left_out(left))


def _flagged_scenarios(rows: StoredRows) -> str:
    """The single scenarios that the documented rule flags, the largest gap first."""
    found = rows.frame("games_drift")
    flagged = found[found["flagged"].eq(True)] if "flagged" in found else found.head(0)
    compared = int(found["gap"].notna().sum()) if "gap" in found else 0
    told = paragraph(f"Single scenarios: {len(flagged)} flagged of {compared} compared ({len(found)} series in all).")
    if not len(flagged):
        return told
    named = flagged.assign(scenario=flagged["league"] + "/" + flagged["scenario"])
    named = named.sort_values(["gap", "scenario", *_DRIFTED_PLAY_BY], ascending=[False] + [True] * 5, ignore_index=True)
    return told + table(named, _RULED_SCENARIOS, caption="Scenarios that the documented rule flags", data=named)


def _left_out(left: pd.DataFrame) -> str:
    """The series without a verdict, in a part that opens."""
    if not len(left):
        return ""
    shown = table(left, _UNCOMPARED_PLAY, caption="Not compared", data=left[["model", *_DRIFTED_PLAY_BY, "reason"]])
    return fold(f"Not compared, and why ({len(left):,} series)", shown)
