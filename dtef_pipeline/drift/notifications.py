"""Verdicts on drift for another system: each is sent once, when it differs from the last one that was sent, and again until it has arrived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import among
from dtef_pipeline.drift.headline import headline
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_text import NEWS, all_moved, beside_judges
from dtef_pipeline.keys import Keys

VERSION = 1
"""Of the message: raised when a field goes or changes its meaning."""
NOT_COMPARED = "not compared"
_FIELDS = (
    "verdict",
    "night_verdict",
    "was",
    "direction",
    "shift",
    "low",
    "high",
    "first_snapshot",
    "drifts_in",
    "control",
    "apart_shift",
    "night_shift",
    "night_first_snapshot",
    "changes",
    "moved",
)
_BESIDE_JUDGES = ("net_shift", "judges_shift", "told_of_judges")
"""Fields of families whose scores are judged."""
_TOLD_AT_MOST = 3
"""Series of which the text says what the judge has to do with them."""
_COLUMN = {"was": "told", "low": "shift_low", "high": "shift_high"}


def carry_over(checks: pa.Table, earlier: pa.Table, keys: Keys) -> pa.Table:
    """`checks` with the verdicts that were sent of the same series before (columns `told`, `night_told`).

    Both of schema MODEL_DRIFT; `earlier` may be empty, or lack the verdict on the night, which then was not sent.
    """
    series = list(keys.variant_series)
    for column in ("told", "night_told"):
        known = earlier.to_pylist() if column in earlier.column_names else []
        sent = {tuple(row[name] for name in series): row[column] for row in known}
        checks = _with(checks, column, [sent.get(tuple(row.values())) for row in checks.select(series).to_pylist()])
    return checks


def unsent(checks: pa.Table, tell: Sequence[str] = NEWS) -> pa.Table:
    """The series whose verdict, or that on their night, differs from the one that was sent last.

    `tell`: the verdicts to send; others count as none. That all models moved together is sent under any choice.

    A series that cannot be compared has no verdict to send, unless one was sent before: then it is reported as not compared any more.
    """
    news = [
        _to_tell(row, tell) != (row["told"] or "none") or _night_to_tell(row, tell) != (row["night_told"] or "none")
        for row in checks.to_pylist()
    ]
    return checks.filter(pa.array(news, pa.bool_()))


def after_sending(checks: pa.Table, tell: Sequence[str] = NEWS) -> pa.Table:
    """`checks` once all of `unsent` has arrived."""
    for column, of in (("told", _to_tell), ("night_told", _night_to_tell)):
        now = [of(row, tell) for row in checks.to_pylist()]
        # That all is well is news only where another verdict was sent before.
        known = checks[column].to_pylist()
        said = [one if before or one != "none" else None for one, before in zip(now, known, strict=True)]
        checks = _with(checks, column, said)
    return checks


def message(checks: pa.Table, subject: Subject, tell: Sequence[str] = NEWS, *, order: Sequence[str] = ()) -> dict[str, Any]:
    """The news of `checks` as one JSON document. Scores are fractions; `was` is the verdict that was sent last.

    `order`: the labels of all snapshots in their order in time.
    """
    latest = among(order, filter(None, checks["latest_snapshot"].to_pylist()))
    rows = [{**row, "verdict": _to_tell(row, tell)} for row in unsent(checks, tell).to_pylist()]
    fields = (*subject.keys.series, *_FIELDS, *(field for field in _BESIDE_JUDGES if field in checks.column_names))
    news = [{field: row[_COLUMN.get(field, field)] for field in fields} for row in rows]
    ended = [_ended(row, subject) for row in rows if _is_over(row)]
    judged = [f"{row['model']}{subject.at(row)}: {told}." for row in rows if (told := beside_judges(row))]
    return {
        "version": VERSION,
        "event": "drift",
        "snapshot": latest[-1] if latest else None,
        "text": " ".join([headline(checks, subject), *judged[:_TOLD_AT_MOST], *ended]),
        "series": [{**one, "was": one["was"] or "none"} for one in news],
    }


def _is_over(row: Mapping[str, Any]) -> bool:
    return row["verdict"] not in NEWS and row["told"] not in (None, "none")


def _ended(row: Mapping[str, Any], subject: Subject) -> str:
    """What is over, for receivers that show the text alone."""
    now = "not compared any more" if row["verdict"] == NOT_COMPARED else "no longer so"
    return f"{row['model']}{subject.at(row)}, told as {row['told']}: {now}."


def _to_tell(row: Mapping[str, Any], tell: Sequence[str]) -> str:
    if row["verdict"] is None:
        return "none" if row["told"] in (None, "none") else NOT_COMPARED
    return row["verdict"] if row["verdict"] in tell else "none"


def _night_to_tell(row: Mapping[str, Any], tell: Sequence[str]) -> str:
    """That all models moved is told under any choice: no single one has a `drift` that would tell it."""
    return row["night_verdict"] if all_moved(row) or row["night_verdict"] in tell else "none"


def _with(checks: pa.Table, column: str, told: Sequence[str | None]) -> pa.Table:
    return checks.set_column(checks.schema.get_field_index(column), checks.schema.field(column), pa.array(told, pa.string()))
