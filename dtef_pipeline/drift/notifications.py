"""Messages on drift: a verdict is sent when it differs from the last one that arrived, and again until it has arrived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import among
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_text import NEWS, build_headline, describe_judges, format_series, is_night_shift

NOT_COMPARED = "not compared"
_FIELDS = (
    "model",
    "model_variant",
    "way",
    "verdict",
    "night_verdict",
    "shift",
    "shift_low",
    "shift_high",
    "first_snapshot",
    "changes",
)
_MOST_JUDGED = 3
"""Series of which the text says what part the judges have in the shift."""
_SENT_VERDICTS = ("sent", "night_sent")
"""Columns with the verdicts that were sent last."""


def copy_sent_verdicts(checks: pa.Table, earlier: pa.Table) -> pa.Table:
    """`checks` with the verdicts that were sent of the same series before, as far as `earlier` has them."""
    verdicts = {(row["model_variant"], row["way"]): row for row in earlier.to_pylist()}
    series = zip(checks["model_variant"].to_pylist(), checks["way"].to_pylist(), strict=True)
    return _set_sent(checks, [verdicts.get(key, {}) for key in series])


def find_unsent(checks: pa.Table, tell: Sequence[str] = NEWS) -> pa.Table:
    """The series whose verdict, or that of their night, differs from the one that was sent last.

    `tell`: the verdicts to send; others count as none. A shift of all models in a night is sent under any choice.
    """
    rows = checks.to_pylist()
    return checks.filter(
        pa.array([_list_due(row, tell) != {name: row[name] or "none" for name in _SENT_VERDICTS} for row in rows], pa.bool_())
    )


def mark_sent(checks: pa.Table, tell: Sequence[str] = NEWS) -> pa.Table:
    """`checks` once all of `find_unsent` has arrived. That all is well counts as sent only where another verdict was sent before."""
    rows = checks.to_pylist()
    return _set_sent(
        checks,
        [{name: now if row[name] or now != "none" else None for name, now in _list_due(row, tell).items()} for row in rows],
    )


def message(checks: pa.Table, subject: Subject, tell: Sequence[str] = NEWS, *, order: Sequence[str] = ()) -> dict[str, Any]:
    """The news of `checks` as one JSON document. Scores are fractions. `order`: all snapshots in their order in time."""
    latest = among(order, filter(None, checks["latest_snapshot"].to_pylist()))
    text, series = [build_headline(checks, subject)], []
    for row in find_unsent(checks, tell).to_pylist():
        news = {name: row[name] for name in _FIELDS}
        series.append({**news, "verdict": _list_due(row, tell)["sent"], "was": row["sent"] or "none"})
        if (judges := describe_judges(row)) and len(text) <= _MOST_JUDGED:
            text.append(f"{format_series(row, subject.keys)}: {judges}.")
    return {"snapshot": latest[-1] if latest else None, "text": " ".join(text), "series": series}


def _list_due(row: Mapping[str, Any], tell: Sequence[str]) -> dict[str, str]:
    """By column of what was sent, the verdict that the receiver should know now."""
    verdict = row["verdict"] if row["verdict"] in tell else "none"
    if row["verdict"] is None and row["sent"] not in (None, "none"):
        verdict = NOT_COMPARED
    night = row["night_verdict"] if is_night_shift(row) or row["night_verdict"] in tell else "none"
    return {"sent": verdict, "night_sent": night}


def _set_sent(checks: pa.Table, verdicts: Sequence[Mapping[str, str | None]]) -> pa.Table:
    for name in _SENT_VERDICTS:
        column = pa.array([row.get(name) for row in verdicts], pa.string())
        checks = checks.set_column(checks.schema.get_field_index(name), checks.schema.field(name), column)
    return checks
