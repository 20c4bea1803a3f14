"""What a reader of drift checks should know first, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from dtef_pipeline.drift.rule import MIN_HOURS, TOO_CLOSE
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_text import early_series, night_headline, series_words, shift_words


def headline(checks: pa.Table, subject: Subject) -> str:
    """What a reader should know first: the largest drift (model, direction, size, since when), else what to watch, else what was compared.

    The largest is by its shift; among series to watch by the range that the rule looks at.
    """
    rows = checks.to_pylist()
    if not rows:
        return "No language model was asked; baselines do not drift."
    return " ".join([_headline(rows, subject), *night_headline(rows, subject)])


def _headline(rows: Sequence[dict[str, Any]], subject: Subject) -> str:
    drifted = [row for row in rows if row["verdict"] == "drift"]
    watched = [row for row in rows if row["verdict"] == "watch"]
    if drifted:
        worst = max(drifted, key=lambda row: (abs(row["shift"]), row["model"]))
        return (
            f"Drift in {len(drifted)} of {len(rows)} series. Largest: {series_words(worst, subject.keys)}, {shift_words(worst['shift'])} "
            f"since {worst['first_snapshot']}." + (f" {len(watched)} more to watch." if watched else "")
        )
    if watched:
        worst = max(watched, key=lambda row: (row["gap"] or 0, row["model"]))
        ranged = worst["reason"].partition(";")[0]
        return f"{_none(rows)}; {len(watched)} of {len(rows)} series to watch. Largest: {series_words(worst, subject.keys)}: {ranged}."
    compared = sum(row["verdict"] is not None for row in rows)
    if not compared:
        close = sum(row["reason"].startswith(TOO_CLOSE) for row in rows)
        why = f": {close} of them asked the same again, but after less than {MIN_HOURS:.0f} hours" if close else ""
        return f"Nothing could be compared yet ({len(rows)} series){why}."
    return f"{_none(rows)}: {compared} of {len(rows)} series could be compared."


def _none(rows: Sequence[dict[str, Any]]) -> str:
    """That no series drifted; or that it is too early to tell, of some or of all that could be compared."""
    early = early_series(rows)
    if not early:
        return "No drift"
    words = " and ".join(sorted(set(early)))
    if len(early) == sum(row["verdict"] is not None for row in rows):
        return f"{words[0].upper()}{words[1:]}"
    return f"No drift in {sum(row['log10_e'] is not None for row in rows)} series, and {len(early)} {words}"
