"""Drift on the terminal: a table of verdicts, then details per model that moved."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_text import (
    NEWS,
    build_headline,
    describe_scope_lines,
    format_change,
    format_moved_items,
    format_odds,
    format_series,
    group_reasons,
    has_shared_shift,
    sort_key_of_verdict,
)
from dtef_pipeline.report.row_reader import count_decimals, format_decimals
from dtef_pipeline.report.terminal import Fit, rename_variant_rows, render, wrap_line

_EXTREMES = ["lowest", "lowest_snapshot", "highest", "highest_snapshot"]


def format_drift(checks: pa.Table, subject: Subject, fit: Fit) -> str:
    """Format verdicts on models or partitions: the headline, the series with a verdict, what changed, and why others have none."""
    rows = _sort_rows(checks)
    verdict_rows = [row for row in rows if row["verdict"] is not None]
    details = (_format_details(row, subject, fit.width) for row in verdict_rows)
    verdicts = render(build_verdict_frame(checks, subject), "table", ends={}, fit=fit) if verdict_rows else ""
    # Of series without a verdict from evidence.
    silent = [row for row in rows if row["verdict"] is None or (row["verdict"] == "none" and row["log10_e"] is None)]
    headline, reasons = build_headline(checks, subject), group_reasons(Counter(row["reason"] for row in silent))
    if not verdict_rows and len(reasons) == 1:
        reason = reasons.pop()[0].removeprefix("not compared: ")
        headline = f"{headline} {reason[0].upper()}{reason[1:]}."
    parts = [wrap_line(headline, fit.width), verdicts, *details]
    if reasons:
        counts = pd.DataFrame(reasons, columns=["reason", "n_series"])[["n_series", "reason"]]
        parts.append(render(counts, "table", fit=Fit(fit.width, ("n_series", "reason"))))
    return "\n\n".join(part for part in parts if part)


def _sort_rows(checks: pa.Table) -> list[dict[str, Any]]:
    return sorted(rename_variant_rows(checks.to_pylist()), key=sort_key_of_verdict)


def build_verdict_frame(checks: pa.Table, subject: Subject) -> pd.DataFrame:
    """Return the series with a verdict as people see them; empty if there are none."""
    rows = [row for row in _sort_rows(checks) if row["verdict"] is not None]
    if not rows:
        return pd.DataFrame()
    where = [name for name in (*subject.keys.space, "model", "setting") if rows[0].get(name) is not None]
    extremes = [name for name in _EXTREMES if name in rows[0]]
    frame = pd.DataFrame(
        {
            "verdict": row["verdict"],
            "all models": row["shared_verdict"],
            **{name: row[name] for name in where},
            **_format_shift(row),
            "first_snapshot": row["first_snapshot"],
            "odds for drift": format_odds(row["log10_e"]),
            "odds needed": format_odds(row["threshold"]),
            "snapshots": row["n_snapshots"],
            **{name: row[name] for name in extremes},
        }
        for row in rows
    )
    return frame.drop(columns="all models") if frame["all models"].isna().all() else frame


def _format_shift(row: Mapping[str, Any]) -> dict[str, str | None]:
    """Format the shift and its interval with the digits that the interval supports, or None if they are unknown."""
    shift, low, high = (math.nan if row[name] is None else row[name] for name in ("shift", "shift_low", "shift_high"))
    if math.isnan(shift):
        return {"shift": None, "95 % interval": None}
    places = count_decimals(shift, low, high)
    is_known = not (math.isnan(low) or math.isnan(high))
    interval = f"{format_decimals(low, places, sign='+')} to {format_decimals(high, places, sign='+')}" if is_known else None
    return {"shift": format_decimals(shift, places, sign="+"), "95 % interval": interval}


def _format_details(row: Mapping[str, Any], subject: Subject, width: int | None) -> str:
    """List what changed, and the items that changed for models with drift; empty without changes."""
    changes = row.get("changes") or []
    if not changes and row["verdict"] not in NEWS and not has_shared_shift(row):
        return ""
    lines = (wrap_line(f"  {line}", width, 4) for line in _format_lines(row, changes, subject))
    return "\n".join([wrap_line(f"{row['verdict']}: {format_series(row, subject.keys)}", width, 2), *lines])


def _format_lines(row: Mapping[str, Any], changes: Sequence[Mapping[str, Any]], subject: Subject) -> Iterator[str]:
    yield from describe_scope_lines(row)
    yield from (format_change(change, subject) for change in changes)
    if row["verdict"] in NEWS:
        yield f"rule: {row['reason']}"
        if row["top_changes"]:
            yield f"{subject.keys.noun}s that moved most: {format_moved_items(row['top_changes'])}"
