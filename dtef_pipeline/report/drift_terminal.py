"""Drift on the terminal: a table of verdicts, then details per model that moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
_DETAILS = (_INTERVAL, "first_snapshot", "odds for drift", "odds needed", "snapshots")
_EXTREMES = ("lowest", "lowest_snapshot", "highest", "highest_snapshot")
_HIDDEN_FIRST = ("odds needed", "first_snapshot", "snapshots", "lowest_snapshot", "highest_snapshot", "lowest", "highest")


def format_drift(checks: pa.Table, subject: Subject, fit: Fit) -> str:
    """Format verdicts on models or partitions: the headline, the series with a verdict, what changed, and why others have none."""
    rows = sorted(rename_variant_rows(checks.to_pylist()), key=sort_key_of_verdict)
    verdicts = [row for row in rows if row["verdict"] is not None]
    # Of series without a verdict from evidence.
    silent = [row for row in rows if row["verdict"] is None or (row["verdict"] == "none" and row["log10_e"] is None)]
    headline, reasons = build_headline(rows, subject), group_reasons(Counter(row["reason"] for row in silent))
    if not verdicts and len(reasons) == 1:
        reason = reasons.pop()[0].removeprefix("not compared: ")
        headline = f"{headline} {reason[0].upper()}{reason[1:]}."
    parts = [wrap_line(headline, fit.width), *([_render_verdicts(verdicts, subject, fit)] if verdicts else [])]
    for row in verdicts:
        rule = [f"rule: {row['reason']}"] if row["verdict"] in NEWS else []
        if lines := [wrap_line(f"  {line}", fit.width, 4) for line in [*rule, *list_changes(row, subject)]]:
            parts.append("\n".join([wrap_line(f"{row['verdict']}: {format_series(row, subject.keys)}", fit.width, 2), *lines]))
    if reasons:
        counts = pd.DataFrame(reasons, columns=["reason", "n_series"])[["n_series", "reason"]]
        parts.append(render(counts, "table", fit=Fit(fit.width, ("n_series", "reason"))))
    return "\n\n".join(parts)


def _render_verdicts(rows: Sequence[Mapping[str, Any]], subject: Subject, fit: Fit) -> str:
    """Render the series with a verdict, without columns that are unknown throughout."""
    frame = pd.DataFrame(rows)
    odds = {name: frame[name].map(format_odds) for name in ("log10_e", "threshold")}
    frame = frame.assign(**odds, **{_INTERVAL: format_column_intervals(frame, "shift", _SHIFT_ENDS)}).rename(columns=_TITLES)
    required = ("verdict", "all models", *subject.keys.space, "model", "setting", "shift")
    columns = [name for name in (*required, *_DETAILS, *_EXTREMES) if name in frame and frame[name].notna().any()]
    limits = replace(fit, always_shown=[name for name in required if name in columns], hidden_first=_HIDDEN_FIRST)
    return render(frame, "table", columns=columns, ends={"shift": _SHIFT_ENDS}, fit=limits)
