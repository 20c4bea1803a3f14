"""Drift on the terminal: a table of verdicts, then for each model that moved what changed with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from dtef_pipeline.drift.checks import headline
from dtef_pipeline.drift.verdict_text import by_verdict, change_words, moved_words, odds, place_words, shift_interval
from dtef_pipeline.report.terminal import named_apart, render
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.drift import SUBJECT

_WHERE = ["round", "segment", "model", "context_level", "condition"]
_RULE = ["lowest", "lowest_snapshot", "highest", "highest_snapshot"]
_NEWS = ("drift", "watch")


def drift_text(checks: pa.Table) -> str:
    """Rows of MODEL_DRIFT or DRIFT_CHECKS for people: the headline, the series with a verdict, what changed, and why others have none."""
    rows = sorted(_named(checks), key=by_verdict(SUBJECT.keys))
    compared = [row for row in rows if row["verdict"] is not None]
    parts = [
        headline(checks, SUBJECT),
        _verdicts(compared),
        *(words for row in compared if (words := _details(row))),
        _left_out(rows),
    ]
    return "\n\n".join(part for part in parts if part)


def _named(checks: pa.Table) -> list[dict[str, Any]]:
    """The rows, models of several variants called by their variant."""
    rows = checks.to_pylist()
    names = named_apart(pd.DataFrame({name: [row[name] for row in rows] for name in ("model", "model_variant")}))["model"]
    return [{**row, "model": name} for row, name in zip(rows, names, strict=True)]


def _verdicts(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    usual = {BlueprintOptions().condition}
    where = [name for name in _WHERE if rows[0].get(name) is not None]
    where = [name for name in where if name != "condition" or {row["condition"] for row in rows} != usual]
    frame = pd.DataFrame([{name: row[name] for name in ("verdict", *where, "n_snapshots", *_RULE)} for row in rows])
    shifts = [
        {
            "shift": None if row["shift"] is None else f"{row['shift']:+.4f}",
            "95 % interval": shift_interval(row),
            "since": row["first_snapshot"],
            "odds for drift": odds(row["log10_e"]),
            "odds needed": odds(row["threshold"]),
        }
        for row in rows
    ]
    frame = pd.concat([frame[["verdict", *where]], pd.DataFrame(shifts), frame[["n_snapshots", *_RULE]]], axis=1)
    return render(frame.rename(columns={"n_snapshots": "snapshots"}), "table")


def _details(row: Mapping[str, Any]) -> str:
    """What changed, and for a model that moved which questions did; nothing where nothing did."""
    changes = row.get("changes") or []
    if not changes and row["verdict"] not in _NEWS:
        return ""
    return "\n".join([_title(row), *(f"  {line}" for line in _lines(row, changes))])


def _title(row: Mapping[str, Any]) -> str:
    return f"{row['verdict']}: {row['model']}{place_words(row, SUBJECT.keys)}, context {row['context_level']}"


def _lines(row: Mapping[str, Any], changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from (change_words(change, SUBJECT) for change in changes)
    if row["verdict"] in _NEWS:
        yield f"rule: {row['reason']}"
        if row["moved"]:
            yield f"questions that moved most: {moved_words(row['moved'], SUBJECT)}"


def _left_out(rows: Sequence[Mapping[str, Any]]) -> str:
    silent = [row for row in rows if row["verdict"] is None or (row["verdict"] == "none" and row["log10_e"] is None)]
    reasons = pd.Series([row["reason"] for row in silent], dtype=str, name="reason")
    if not len(reasons):
        return ""
    counts = reasons.value_counts(sort=True).rename_axis("reason").reset_index(name="n_series")
    return render(counts, "table", columns=["n_series", "reason"])
