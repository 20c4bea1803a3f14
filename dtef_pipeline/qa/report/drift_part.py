"""Drift on the pages of the qa family: whether models still answer as they did, and whether judges still judge as they did."""

from __future__ import annotations

from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.qa.report.beside_boards import isolated_names
from dtef_pipeline.qa.report.boards_part import MADE_BY_RUN
from dtef_pipeline.qa.report.terms import QA_NAMES
from dtef_pipeline.qa.result_tables import QA_DRIFT_SERIES, QA_MODEL_DRIFT
from dtef_pipeline.report.drift_chapter import WatchedSeries, drift_chapter, flagged_alone, not_compared
from dtef_pipeline.report.markup import (
    Column,
    as_is,
    estimate,
    long_text,
    named,
    section,
    signed,
    table,
    text,
    whole,
    with_intervals,
)
from dtef_pipeline.report.page import Chapter
from dtef_pipeline.report.stored_rows import StoredRows

_JUDGE_DRIFT_HOW = (
    "Stored answers are judged again every night. Where a judge's scores of them have moved, it is the judge that has drifted, and what looks "
    "like the drift of a model that it judges may be the judge's alone."
)
_SERIES_ORDER = ("model_variant", "condition", "metric", "measured_by")
_WATCHED_ANSWERS = WatchedSeries(
    checks=("qa_model_drift", QA_MODEL_DRIFT),
    series=("qa_drift_series", QA_DRIFT_SERIES),
    order=_SERIES_ORDER,
    names=QA_NAMES,
    how="Whether a model still answers the same items as it did in earlier snapshots.",
    made_by=MADE_BY_RUN,
    run="dtef qa run",
)


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
_SERIES_TOLD = (
    Column("model", "Model", named),
    Column("condition", "Asked as", named),
    Column("metric", "Metric", text),
    Column("measured_by", "Measured by", named),
)
_RULE_TABLE = (
    Column("suite", "Suite", named),
    Column("part", "Part", named),
    *_SERIES_TOLD,
    Column("gap", "Gap", estimate),
    Column("lowest", "Lowest", estimate),
    Column("lowest_snapshot", "in", named),
    Column("highest", "Highest", estimate),
    Column("highest_snapshot", "in", named),
    Column("n_items", "Items", whole),
)
_NETTED_TABLE = (
    *_SERIES_TOLD[:3],
    Column("shift", "Shift", as_is, "Of the model; 95 % interval beneath"),
    Column("judges_shift", "Of the judge", signed, "Between the same snapshots, on stored answers that it was shown again"),
    Column(
        "net_shift",
        "Net of the judge",
        as_is,
        "Shift of the model less that of the judge, if all answers were judged afresh; 95 % interval, of both, beneath",
    ),
    Column("told_of_judges", "What was done", long_text),
)
_LEFT_TABLE = (*_SERIES_TOLD, Column("n_snapshots", "Snapshots", whole), Column("reason", "Why not", long_text))


def drift_chapters(rows: StoredRows, connection: duckdb.DuckDBPyConnection) -> list[Chapter]:
    """The chapter on models, and where stored answers were judged again, one on judges."""
    judges = rows.frame("qa_judge_drift")
    chapters = [_models(rows, connection)]
    if len(judges):
        shown = with_intervals(judges, [("shift", "shift_low", "shift_high")], sign="+")
        body = table(isolated_names(shown, _JUDGE_TABLE), _JUDGE_TABLE, caption="Judges on stored answers", data=judges)
        chapters.append(
            Chapter("judge-drift", "Drift of judges", section("judge-drift", "Drift of judges", _JUDGE_DRIFT_HOW, body))
        )
    return chapters


def _models(rows: StoredRows, connection: duckdb.DuckDBPyConnection) -> Chapter:
    def beneath(checks: pa.Table, left: pd.DataFrame) -> str:
        reasons = not_compared(isolated_names(left, _LEFT_TABLE), _LEFT_TABLE, left[[*_SERIES_ORDER, "reason"]])
        return _net_of_judges(checks) + _flagged_parts(rows) + reasons

    return drift_chapter(rows, connection, _WATCHED_ANSWERS, beneath)


def _net_of_judges(checks: pa.Table) -> str:
    """Judged scores that moved, and what is left of it when the judge's own move is taken off; nothing where none did."""
    found = checks.filter(pc.is_valid(checks["told_of_judges"])).to_pandas()
    if not len(found):
        return ""
    shown = with_intervals(found, [("shift", "shift_low", "shift_high"), ("net_shift", "net_low", "net_high")], sign="+")
    data = found[
        [
            *_SERIES_ORDER,
            "shift",
            "shift_low",
            "shift_high",
            "judges_shift",
            "net_shift",
            "net_low",
            "net_high",
            "told_of_judges",
        ]
    ]
    return table(
        isolated_names(shown, _NETTED_TABLE), _NETTED_TABLE, caption="Judged scores that moved, net of the judge", data=data
    )


def _flagged_parts(rows: StoredRows) -> str:
    """The single parts that the documented rule flags, the largest gap first."""
    told, flagged = flagged_alone(rows.frame("qa_drift"), "parts")
    if not len(flagged):
        return told
    flagged = flagged.sort_values(
        ["gap", "suite", "part", "model_variant"], ascending=[False, True, True, True], ignore_index=True
    )
    return told + table(
        isolated_names(flagged, _RULE_TABLE), _RULE_TABLE, caption="Parts that the documented rule flags", data=flagged
    )
