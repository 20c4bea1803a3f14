"""The documented drift rule (weval methodology, 5.2): lowest against highest mean score of one model on an identical test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import among, convert_microseconds, order_in, parse_name_time, snapshot_time
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_tables import DRIFT_RULE
from dtef_pipeline.keys import MODEL
from dtef_pipeline.text.number_words import format_count

MIN_GAP, MIN_RELATIVE_GAP = 0.05, 0.10
MIN_HOURS = 23.0
MIN_ANSWERED = 0.5
"""Share of the prompts a snapshot must have a score for to be compared."""
TOO_CLOSE = "not compared: the snapshots span "
"""Prefix of the reason if only time between snapshots is missing."""
NONE_SHARED = "not compared by the rule: no prompt was scored in every snapshot"
_ROUNDING = 1e-9  # 0.35 - 0.30 is 0.04999... in floating point, and is a gap of 0.05


@dataclass(frozen=True, slots=True)
class DriftVerdict:
    """The rule applied to one series; `flagged` needs both thresholds. Scores are 0-1."""

    n_snapshots: int
    n_items: int
    lowest: float | None
    lowest_snapshot: str | None
    highest: float | None
    highest_snapshot: str | None
    gap: float | None
    flagged: bool
    reason: str

    @property
    def is_comparable(self) -> bool:
        """Whether the series can be compared: by the rule, or only pair by pair, since each prompt lacks a score in some snapshot."""
        return self.gap is not None or self.reason == NONE_SHARED


def select_answered(values: pd.DataFrame) -> pd.DataFrame:
    """Return the snapshots (columns) with a score for at least half of the items (rows).

    A snapshot without responses is no evidence about the model, and must not hide the others.
    """
    return values.loc[:, values.notna().mean() >= MIN_ANSWERED] if len(values) else values


def apply_drift_rule(values: pd.DataFrame, times: Mapping[str, datetime | None], *, temperature: float | None) -> DriftVerdict:
    """Apply the rule to one model on one test.

    `values`: shape (items, snapshots), scores 0-1, NaN if an item has none; means are over the items scored in every snapshot that has a
    score for at least half of them. `times`: when each snapshot was taken. Compared only at temperature 0, with at least two snapshots that
    span 23 hours.

    Flagged when highest - lowest >= 0.05 and >= 10 % of the lowest, both exact at the boundary.
    """
    values = select_answered(values)
    shared = values.dropna()
    labels = [str(label) for label in values.columns]
    hours = compute_hours([times.get(label) for label in labels])
    names_a_day = any(named is not None and named[1] for named in map(parse_name_time, labels))
    why_not = _find_exclusion_reason(len(labels), len(shared), hours, temperature, names_a_day)
    if why_not:
        if why_not.startswith(TOO_CLOSE) and len(shared):
            why_not = f"{why_not} ({_format_extremes(shared.mean())})"
        return DriftVerdict(len(values.columns), len(shared), None, None, None, None, None, False, why_not)
    means = shared.mean()
    low, high = str(means.idxmin()), str(means.idxmax())
    lowest, highest = float(means[low]), float(means[high])
    gap = highest - lowest
    is_flagged = is_large(lowest, gap)
    reason = _format_extremes(means) + ("" if is_flagged else ": below the thresholds 0.05 and 10 %")
    return DriftVerdict(len(values.columns), len(shared), lowest, low, highest, high, gap, is_flagged, reason)


def _format_extremes(means: pd.Series) -> str:
    """Return `0.6000 in 2026-01-03, 0.8000 in 2026-01-01`: the lowest and highest mean score."""
    low, high = str(means.idxmin()), str(means.idxmax())
    if f"{means[low]:.4f}" == f"{means[high]:.4f}":
        quantifier = "both" if len(means) == 2 else f"all {len(means)}"
        return f"the scores are equal, {means[low]:.4f} in {quantifier} of the snapshots"
    return f"{means[low]:.4f} in {low}, {means[high]:.4f} in {high}"


def compute_hours(times: Sequence[datetime | None]) -> float | None:
    """Return the hours from the first to the last time, or None if one is unknown or there is none."""
    moments = [time for time in times if time is not None]
    return (max(moments) - min(moments)).total_seconds() / 3600 if moments and len(moments) == len(times) else None


def is_large(lowest: float, gap: float) -> bool:
    """Return whether both thresholds are reached, exact at the boundary."""
    return gap >= MIN_GAP - _ROUNDING and gap >= MIN_RELATIVE_GAP * lowest - _ROUNDING


def _find_exclusion_reason(
    snapshots: int, shared: int, hours: float | None, temperature: float | None, names_a_day: bool
) -> str | None:
    if temperature != 0:
        return "not compared: temperature is " + ("not set" if temperature is None else f"{temperature:g}") + ", not 0"
    if snapshots < 2:
        return f"not compared: {format_count(snapshots, 'snapshot')} with responses to these prompts, 2 are needed"
    if hours is None:
        return "not compared: the time of a snapshot is unknown (label it with a date)"
    if hours < MIN_HOURS:
        day_note = " (a label with a date counts as 0:00 UTC of that day)" if names_a_day else ""
        # Truncated, not rounded: 22.96 hours must not read "23.0 h, 23 h needed".
        return f"{TOO_CLOSE}{math.floor(round(hours * 10, 6)) / 10:.1f} h, {MIN_HOURS:.0f} h needed{day_note}"
    if not shared:
        return NONE_SHARED
    return None


def build_rule_table(connection: duckdb.DuckDBPyConnection, subject: Subject) -> pa.Table:
    """Return a family's DRIFT_RULE. `connection`: with the tables of `subject.reads`, or of `subject.rule_tables`."""
    rule_rows = subject.rule(connection) if subject.rule else iterate_rule_rows(connection, subject)
    rows = [{**row, "family": subject.family, "is_largest_gap": False} for row in rule_rows]
    top_rows: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        if row["flagged"]:
            test = row["partition"], row["test"]
            top_rows[test] = max(top_rows.get(test, row), row, key=lambda entry: float(entry["gap"]))
    for row in top_rows.values():
        row["is_largest_gap"] = True
    return pa.Table.from_pylist(rows, DRIFT_RULE)


def iterate_rule_rows(connection: duckdb.DuckDBPyConnection, subject: Subject) -> Iterator[dict[str, Any]]:
    """Yield the documented rule's result for every series of a partition at temperature 0. Draws are averaged."""
    connection.execute("SET threads = 1")
    for statement in subject.statements:
        connection.execute(statement)
    space, series = subject.keys.space, (*subject.keys.space, "test", *MODEL, *subject.keys.asked)
    times, order = query_first_times(connection, "scores", space), order_in(connection, "scores")
    means = connection.execute(
        f"""SELECT {", ".join(series)}, concat_ws(chr(31), {subject.keys.item}, coalesce(prompt_id, ''), coalesce(truth_id, '')) AS of_item,
            snapshot, avg(score) AS score, max(temperature) AS temperature, count(temperature) = count(*) AS is_set
        FROM scores GROUP BY ALL ORDER BY ALL"""
    ).df()
    for values, rows in means.groupby(list(series), sort=True):
        if not rows["is_set"].all() or (rows["temperature"] != 0).any():
            continue
        named = dict(zip(series, values, strict=True))
        grid = rows.pivot_table(values="score", index="of_item", columns="snapshot", dropna=False)
        labels = among(order, map(str, grid.columns))
        partition = tuple(str(named[level]) for level in space)
        label_times = {label: times.get((*partition, label)) for label in labels}
        verdict = apply_drift_rule(grid[labels], label_times, temperature=0.0)
        yield {"partition": "/".join(partition), "test": named["test"], **subject.series_columns(named), **asdict(verdict)}


def query_first_times(
    connection: duckdb.DuckDBPyConnection, table: str, levels: Sequence[str]
) -> dict[tuple[str, ...], datetime | None]:
    """Return each partition's time by (value of each level, label): the label's date, else the first `answered_at`."""
    named = ", ".join(f"{name}::VARCHAR" for name in (*levels, "snapshot"))
    rows = connection.execute(f"SELECT {named}, epoch_us(min(answered_at)) FROM {table} GROUP BY ALL").fetchall()
    return {tuple(key): snapshot_time(key[-1], convert_microseconds(us)) for *key, us in rows}
