"""The chapters on drift of a family: verdicts on models with timelines, what judges had to do with them, the documented rule, and the judges."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.drift.models import ModelDrift
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_tables import DRIFT, DRIFT_SERIES, JUDGE_DRIFT
from dtef_pipeline.drift.verdict_text import headline, moved_judges
from dtef_pipeline.report.drift import drift
from dtef_pipeline.report.isolated import missing, wrapping_name
from dtef_pipeline.report.markup import (
    Column,
    as_is,
    estimate,
    fold,
    long_text,
    named,
    paragraph,
    section,
    signed,
    table,
    text,
    whole,
    with_intervals,
)
from dtef_pipeline.report.page import Chapter
from dtef_pipeline.report.stored_rows import StoredRows


def _flag_words(value: Any) -> str:
    return "flagged" if value is True or value == 1 else ""


_DRIFT_HOW = "Whether a model still scores as it did on the same {}s in earlier snapshots."
_JUDGE_DRIFT_HOW = (
    "Stored answers are judged again every night. Where a judge's scores of them have moved, it is the judge that has drifted, and what looks "
    "like the drift of a model that it judges may be the judge's alone."
)
_SERIES = (Column("model", "Model", named), Column("way", "Asked as", named))
_RULED = (
    Column("partition", "Where", named),
    *_SERIES,
    Column("gap", "Gap", estimate),
    Column("lowest", "Lowest", estimate),
    Column("lowest_snapshot", "in", named),
    Column("highest", "Highest", estimate),
    Column("highest_snapshot", "in", named),
    Column("n_items", "Items", whole),
)
_NETTED = (
    *_SERIES,
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
_LEFT_SERIES = (*_SERIES, Column("n_snapshots", "Snapshots", whole), Column("reason", "Why not", long_text))
_DRIFTED_JUDGES = (
    Column("judge", "Judge", named),
    Column("evaluator", "Evaluator", text),
    Column("verdict", "Verdict", text),
    Column("flagged", "Rule", _flag_words, "Whether the documented rule flags it"),
    Column("shift", "Shift", as_is, "Mean paired change since the drift began, else since the baseline; 95 % interval beneath"),
    Column("lowest", "Lowest", estimate),
    Column("highest", "Highest", estimate),
    Column("n_snapshots", "Nights", whole),
    Column("n_items", "Answers", whole, "Stored answers with a score in every night"),
    Column("latest_snapshot", "Latest night", named),
    Column("reason", "Reason", long_text),
)


def drift_chapters(rows: StoredRows, subject: Subject, places: str) -> list[Chapter]:
    """The chapter on models, without tables with what makes them; where stored answers were judged again, one on judges.

    `places`: what partitions are called, in the plural.
    """
    chapters = [Chapter("drift", "Drift", _models(rows, subject, places))]
    judges = rows.table("judge_drift", JUDGE_DRIFT.names, {"family": subject.family}, ("judge", "evaluator"))
    if len(judges):
        moved = "".join(paragraph(f"{escape(line[:1].upper() + line[1:])}.") for line in moved_judges(judges.to_pylist()))
        body = moved + _table(
            judges.to_pandas(), _DRIFTED_JUDGES, "Judges on stored answers", [("shift", "shift_low", "shift_high")]
        )
        chapters.append(
            Chapter("judge-drift", "Drift of judges", section("judge-drift", "Drift of judges", _JUDGE_DRIFT_HOW, body))
        )
    return chapters


def _models(rows: StoredRows, subject: Subject, places: str) -> str:
    how, of_family = _DRIFT_HOW.format(subject.keys.noun), {"family": subject.family}
    made = (("drift", DRIFT), ("drift_series", DRIFT_SERIES))
    if not all(set(schema.names) <= rows.columns(name) for name, schema in made):
        made_by = f"`dtef {subject.family} board --refresh` makes it from two snapshots or more of `dtef {subject.family} run`"
        return section("drift", "Drift", how, missing("No drift to show", made_by))
    checks, series = (rows.table(name, schema.names, of_family, ("model_variant", "way", "snapshot")) for name, schema in made)
    was_compared = pc.is_valid(checks["verdict"])
    if not any(was_compared.to_pylist()):
        again = f"the same `dtef {subject.family} run` on another day, with that day as --snapshot, makes something to compare"
        nothing = headline(checks, subject).rstrip(".") if len(checks) else "No drift to show"
        return section("drift", "Drift", how, missing(nothing, again))
    beneath = _net_of_judges(checks) + _flagged(rows, subject, places) + _left_out(checks.filter(pc.invert(was_compared)))
    return drift(ModelDrift(checks.filter(was_compared), series), subject, beneath)


def _net_of_judges(checks: pa.Table) -> str:
    """Judged scores that moved, and what is left of it when the judge's own move is taken off; nothing where none did."""
    found = checks.to_pandas()
    found = found[found["judges_note"].fillna("") != ""]
    found = found.assign(judges_shift=found["shift"] - found["net_shift"])
    ends = [("shift", "shift_low", "shift_high"), ("net_shift", "net_low", "net_high")]
    return _table(found, _NETTED, "Judged scores that moved, net of the judge", ends) if len(found) else ""


def _flagged(rows: StoredRows, subject: Subject, places: str) -> str:
    """The single partitions that the documented rule flags, the largest gap first."""
    found = rows.frame("drift_rule", {"family": subject.family})
    flagged = found[found["flagged"].eq(True)] if len(found) else found
    compared = int(found["gap"].notna().sum()) if len(found) else 0
    words = paragraph(f"Single {places}: {len(flagged)} flagged of {compared} compared ({len(found)} series in all).")
    if not len(flagged):
        return words
    by = ["gap", "partition", "model_variant", "way"]
    ranked = flagged.sort_values(by, ascending=[False, True, True, True], ignore_index=True)
    return words + _table(ranked, _RULED, f"{places.capitalize()} that the documented rule flags")


def _left_out(checks: pa.Table) -> str:
    """The series without a verdict, in a part that opens; nothing where there are none."""
    if not len(checks):
        return ""
    return fold(f"Not compared, and why ({len(checks):,} series)", _table(checks.to_pandas(), _LEFT_SERIES, "Not compared"))


def _table(found: pd.DataFrame, columns: Sequence[Column], caption: str, intervals: Sequence[tuple[str, str, str]] = ()) -> str:
    names = {column.name: found[column.name].map(wrapping_name) for column in columns if column.shown is named}
    shown = with_intervals(found, intervals, sign="+").assign(**names)
    data = found[["model_variant", *(column.name for column in columns)] if "model_variant" in found else list(found)]
    return table(shown, columns, caption=caption, data=data)
