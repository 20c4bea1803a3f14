"""Drift on the pages of the qa family: whether models still answer as they did, and whether judges still judge as they did."""

from __future__ import annotations

from typing import Any

import duckdb

from dtef_pipeline.drift.checks import headline
from dtef_pipeline.drift.models import ModelDrift
from dtef_pipeline.qa.report.beside_boards import isolated_names
from dtef_pipeline.qa.report.boards_part import MADE_BY_RUN
from dtef_pipeline.qa.report.terms import QA_NAMES
from dtef_pipeline.qa.result_tables import QA_DRIFT_SERIES, QA_MODEL_DRIFT
from dtef_pipeline.report.drift import drift
from dtef_pipeline.report.isolated import missing
from dtef_pipeline.report.markup import Column, as_is, estimate, long_text, named, section, table, text, whole, with_intervals
from dtef_pipeline.report.page import Chapter
from dtef_pipeline.report.stored_rows import StoredRows

_NO_DRIFT_HOW = "Whether a model still answers the same items as it did in earlier snapshots."
_JUDGE_DRIFT_HOW = (
    "Stored answers are judged again every night. Where a judge's scores of them have moved, it is the judge that has drifted, and what looks "
    "like the drift of a model that it judges may be the judge's alone."
)
_SERIES_ORDER = ("model_variant", "condition", "metric", "measured_by")


def _ruled(value: Any) -> str:
    return "flagged" if value is True or value == 1 else ""


_JUDGE_TABLE = (
    Column("judge_model", "Judge", named),
    Column("evaluator", "Evaluator", text),
    Column("verdict", "Verdict", text),
    Column("flagged", "Rule", _ruled, "Whether the documented rule flags it"),
    Column("shift", "Shift", as_is, "Mean paired change since the drift began, else since the baseline; 95 % interval beneath"),
    Column("lowest", "Lowest", estimate),
    Column("highest", "Highest", estimate),
    Column("n_snapshots", "Nights", whole),
    Column("n_items", "Answers", whole, "Stored answers with a score in every night"),
    Column("latest_snapshot", "Latest night", named),
    Column("reason", "Reason", long_text),
)


def drift_chapters(rows: StoredRows, connection: duckdb.DuckDBPyConnection) -> list[Chapter]:
    """The chapter on models, and where stored answers were judged again, one on judges."""
    judges = rows.frame("qa_judge_drift")
    chapters = [Chapter("drift", "Drift", _models(rows, connection))]
    if len(judges):
        shown = with_intervals(judges, [("shift", "shift_low", "shift_high")], sign="+")
        body = table(isolated_names(shown, _JUDGE_TABLE), _JUDGE_TABLE, caption="Judges on stored answers", data=judges)
        chapters.append(
            Chapter("judge-drift", "Drift of judges", section("judge-drift", "Drift of judges", _JUDGE_DRIFT_HOW, body))
        )
    return chapters


def _models(rows: StoredRows, connection: duckdb.DuckDBPyConnection) -> str:
    made = {"qa_model_drift": QA_MODEL_DRIFT, "qa_drift_series": QA_DRIFT_SERIES}
    if not all(set(schema.names) <= rows.columns(name) for name, schema in made.items()):
        return section("drift", "Drift", _NO_DRIFT_HOW, missing("No drift to show", MADE_BY_RUN))
    checks, series = (rows.table(name, schema.names, {}, (*_SERIES_ORDER, "snapshot")) for name, schema in made.items())
    if all(verdict is None for verdict in checks["verdict"].to_pylist()):
        again = "the same `dtef qa run` on another day, with that day as --snapshot, makes something to compare"
        nothing = headline(checks, QA_NAMES.subject).rstrip(".") if len(checks) else "No drift to show"
        return section("drift", "Drift", _NO_DRIFT_HOW, missing(nothing, again))
    return drift(connection, ModelDrift(checks, series), QA_NAMES)
