"""Drift on the pages of the qa family: whether models still answer as they did, and whether judges still judge as they did."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.qa.report.beside_boards import isolated_names
from dtef_pipeline.qa.report.boards_part import MADE_BY_RUN
from dtef_pipeline.qa.watched_scores import QA_WATCHED
from dtef_pipeline.report.drift_chapter import RULED, WatchedSeries, drift_chapter, flagged_partitions, not_compared
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
_SERIES = ("model_variant", "way")
_WATCHED_ANSWERS = WatchedSeries(
    subject=QA_WATCHED,
    how="Whether a model still answers the same items as it did in earlier snapshots.",
    made_by=MADE_BY_RUN,
    run="dtef qa run",
)


def _ruled(value: Any) -> str:
    return "flagged" if value is True or value == 1 else ""


_JUDGE_TABLE = (
    Column("judge", "Judge", named),
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
    Column("way", "Asked as", named),
)
_NETTED_TABLE = (
    *_SERIES_TOLD,
    Column("shift", "Shift", as_is, "Of the model; 95 % interval beneath"),
    Column("judges_shift", "Of the judge", signed, "Between the same snapshots, on stored answers that it was shown again"),
    Column(
        "net_shift",
        "Net of the judge",
        as_is,
        "Shift of the model less that of the judge, if all answers were judged afresh; 95 % interval, of both, beneath",
    ),
    Column("judges_note", "What was done", long_text),
)
_LEFT_TABLE = (*_SERIES_TOLD, Column("n_snapshots", "Snapshots", whole), Column("reason", "Why not", long_text))


def drift_chapters(rows: StoredRows) -> list[Chapter]:
    """The chapter on models, and where stored answers were judged again, one on judges."""
    judges = rows.frame("judge_drift", {"family": "qa"})
    chapters = [_models(rows)]
    if len(judges):
        shown = with_intervals(judges, [("shift", "shift_low", "shift_high")], sign="+")
        body = table(isolated_names(shown, _JUDGE_TABLE), _JUDGE_TABLE, caption="Judges on stored answers", data=judges)
        chapters.append(
            Chapter("judge-drift", "Drift of judges", section("judge-drift", "Drift of judges", _JUDGE_DRIFT_HOW, body))
        )
    return chapters


def _models(rows: StoredRows) -> Chapter:
    def beneath(checks: pa.Table, left: pd.DataFrame) -> str:
        reasons = not_compared(isolated_names(left, _LEFT_TABLE), _LEFT_TABLE, left[[*_SERIES, "reason"]])
        return (
            _net_of_judges(checks)
            + flagged_partitions(rows, QA_WATCHED, "parts", lambda found: isolated_names(found, RULED))
            + reasons
        )

    return drift_chapter(rows, _WATCHED_ANSWERS, beneath)


def _net_of_judges(checks: pa.Table) -> str:
    """Judged scores that moved, and what is left of it when the judge's own move is taken off; nothing where none did."""
    found = checks.filter(pc.is_valid(checks["judges_note"])).to_pandas()
    if not len(found):
        return ""
    found = found.assign(judges_shift=found["shift"] - found["net_shift"])
    shown = with_intervals(found, [("shift", "shift_low", "shift_high"), ("net_shift", "net_low", "net_high")], sign="+")
    data = found[
        [
            *_SERIES,
            "shift",
            "shift_low",
            "shift_high",
            "judges_shift",
            "net_shift",
            "net_low",
            "net_high",
            "judges_note",
        ]
    ]
    return table(
        isolated_names(shown, _NETTED_TABLE), _NETTED_TABLE, caption="Judged scores that moved, net of the judge", data=data
    )
