"""The check that is as loud as the verdicts on models."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.stage.resources import Store
from dtef_pipeline.drift.settings import Severity
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_text import (
    NEWS,
    describe_judges,
    describe_shared_shift,
    format_moved_items,
    format_series,
    format_shift,
    has_shared_shift,
    sort_key_of_verdict,
)


def count_verdicts(rows: pa.Table) -> dict[str, int]:
    """Return how many series have each verdict, as metadata."""
    counts = Counter(rows["verdict"].to_pylist())
    return {name: counts[verdict] for name, verdict in (("drift", "drift"), ("watch", "watch"), ("not_compared", None))}


def build_drift_result(rows: pa.Table, n_checked: int, severity: Severity, subject: Subject) -> dg.AssetCheckResult:
    """Return a check's result over rows with verdicts, of `n_checked` series. Its severity is that of the worst, which comes first."""
    series = rows.filter(
        pc.field("verdict").isin(["watch", "drift"]) | pc.field("shared_first_snapshot").is_valid()
    ).to_pylist()
    series.sort(key=sort_key_of_verdict)
    levels = {getattr(severity, word) for row in series for word in (row["verdict"], row["shared_verdict"]) if word in NEWS}
    levels -= {"OFF"}
    return dg.AssetCheckResult(
        passed=not levels,
        severity=dg.AssetCheckSeverity.ERROR if "ERROR" in levels else dg.AssetCheckSeverity.WARN,
        metadata={
            "checked": n_checked,
            "drift": sum(row["verdict"] == "drift" for row in series),
            "watch": sum(row["verdict"] == "watch" for row in series),
            "shared_shifts": sum(map(has_shared_shift, series)),
            "first": dg.MetadataValue.json([describe_verdict(row, format_series(row, subject.keys)) for row in series[:10]]),
        },
    )


def describe_verdict(row: Mapping[str, Any], series: str) -> str:
    """A verdict on a series: size, start, the judges' part, other changes, and the shared shift."""
    label = f"{row['verdict'] or 'not compared'}: {series}"
    shared = f"; {describe_shared_shift(row)}" if has_shared_shift(row) else ""
    judges = f"; {words}" if (words := describe_judges(row)) else ""
    if row["verdict"] != "drift":
        return f"{label}: {row['reason']}{judges}{shared}"
    size = format_shift(row["shift"])
    bounds = f" ({row['shift_low']:.4f} to {row['shift_high']:.4f})" if row["shift_low"] is not None else ""
    since = f" since {row['first_snapshot']}"
    changes = "".join(f"; {change['before']} -> {change['after']}" for change in row.get("changes") or ())
    items = format_moved_items((row["top_changes"] or ())[:3])
    notes = "".join(f"; {line}" for line in row["shift_notes"] or ())
    return f"{label}: {size}{bounds}{since}{judges}{notes}{changes}{f'; largest changes: {items}' if items else ''}{shared}"


def read_drift(store: Store, family: str) -> pa.Table:
    """Return the verdicts on a family's models."""
    return store.warehouse.read("drift", family=family)
