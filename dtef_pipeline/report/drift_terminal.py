"""Drift on the terminal: a table of verdicts, then details per model that moved."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd
import pyarrow as pa

from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_text import (
    NEWS,
    build_headline,
    format_odds,
    format_series,
    group_reasons,
    list_changes,
    sort_key_of_verdict,
)
from dtef_pipeline.report.terminal import Fit, format_column_intervals, rename_variant_rows, render, wrap_line

_INTERVAL = "95 % interval"
_TITLES = {"shared_verdict": "all models", "log10_e": "odds for drift", "threshold": "odds needed", "n_snapshots": "snapshots"}
_SHIFT_ENDS = ("shift_low", "shift_high")
_SHIFT = ("shift", *_SHIFT_ENDS, _INTERVAL, "first_snapshot", "odds for drift", "odds needed", "snapshots")
_EXTREMES = ("lowest", "lowest_snapshot", "highest", "highest_snapshot")


def format_drift(checks: pa.Table, subject: Subject, fit: Fit) -> str:
    """Format verdicts on models or partitions: the headline, the series with a verdict, what changed, and why others have none."""
    rows, verdicts = _sort_rows(checks), build_verdict_frame(checks, subject)
    # Of series without a verdict from evidence.
    silent = [row for row in rows if row["verdict"] is None or (row["verdict"] == "none" and row["log10_e"] is None)]
    headline, reasons = build_headline(rows, subject), group_reasons(Counter(row["reason"] for row in silent))
    if verdicts.empty and len(reasons) == 1:
        reason = reasons.pop()[0].removeprefix("not compared: ")
        headline = f"{headline} {reason[0].upper()}{reason[1:]}."
    parts = [wrap_line(headline, fit.width)]
    if not verdicts.empty:
        columns = [name for name in map(str, verdicts) if name not in _SHIFT_ENDS]
        parts.append(render(verdicts, "table", columns=columns, ends={"shift": _SHIFT_ENDS}, fit=fit))
    for row in rows:
        rule = [f"rule: {row['reason']}"] if row["verdict"] in NEWS else []
        if lines := [wrap_line(f"  {line}", fit.width, 4) for line in [*rule, *list_changes(row, subject)]]:
            parts.append("\n".join([wrap_line(f"{row['verdict']}: {format_series(row, subject.keys)}", fit.width, 2), *lines]))
    if reasons:
        counts = pd.DataFrame(reasons, columns=["reason", "n_series"])[["n_series", "reason"]]
        parts.append(render(counts, "table", fit=Fit(fit.width, ("n_series", "reason"))))
    return "\n\n".join(parts)


def _sort_rows(checks: pa.Table) -> list[dict[str, Any]]:
    return sorted(rename_variant_rows(checks.to_pylist()), key=sort_key_of_verdict)


def build_verdict_frame(checks: pa.Table, subject: Subject) -> pd.DataFrame:
    """Return the series with a verdict as people see them, without columns that are unknown throughout; empty if there are none."""
    frame = pd.DataFrame([row for row in _sort_rows(checks) if row["verdict"] is not None])
    if frame.empty:
        return frame
    odds = {name: frame[name].map(format_odds) for name in ("log10_e", "threshold")}
    frame = frame.assign(**odds, **{_INTERVAL: format_column_intervals(frame, "shift", _SHIFT_ENDS)}).rename(columns=_TITLES)
    names = ("verdict", "all models", *subject.keys.space, "model", "setting", *_SHIFT, *_EXTREMES)
    return frame[[name for name in names if name in frame and frame[name].notna().any()]]
