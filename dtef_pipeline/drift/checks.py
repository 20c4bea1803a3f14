"""Drift checks over the `scores` table: which predictions form a series, and the rule's verdict on each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.drift.rule import drift_verdict, snapshot_time
from dtef_pipeline.identity import digest
from dtef_pipeline.tables import DRIFT_CHECKS

SEGMENT_SERIES = ("round", "segment", "model", "model_variant", "context_level", "condition")
ROUND_SERIES = ("round", "model", "model_variant", "context_level", "condition")
COLUMNS = (
    *SEGMENT_SERIES,
    "snapshot",
    "temperature",
    "prompt_id",
    "question_id",
    "draw",
    "score",
    "answered_at",
    "circular",
    "metric",
)


def drift_checks(scores: pa.Table, *, series: Sequence[str] = SEGMENT_SERIES) -> pa.Table:
    """Verdicts a (segment, model variant, context level, condition, prompt set); for `ROUND_SERIES` over all segments of a round at once.

    `scores`: rows of schema SCORES (the columns `COLUMNS` suffice). Snapshots are compared when they asked the same prompts and were
    scored by the same metric (one prompt set); circular questions are left out. In round series the column `segment` is null.
    """
    frame = scores.select(list(COLUMNS)).filter(pc.invert(pc.field("circular"))).to_pandas()
    rows: list[dict[str, Any]] = []
    for keys, group in frame.groupby(list(series), sort=True, dropna=False):
        rows.extend(_series_rows(dict(zip(series, keys, strict=True)), group))
    columns = {name: [row.get(name) for row in rows] for name in DRIFT_CHECKS.names}
    return pa.table(columns, schema=DRIFT_CHECKS)


def _series_rows(keys: dict[str, Any], group: pd.DataFrame) -> list[dict[str, Any]]:
    """A row a prompt set: snapshots that asked other prompts are another test, not drift."""
    by_snapshot = {str(label): rows for label, rows in group.groupby("snapshot", sort=True)}
    prompt_sets: dict[str, list[str]] = {}
    for label, rows in by_snapshot.items():
        prompt_sets.setdefault(digest(sorted(set(rows["metric"])), *sorted(set(rows["prompt_id"]))), []).append(label)
    return [
        _verdict_row(keys, prompt_set, {label: by_snapshot[label] for label in labels})
        for prompt_set, labels in prompt_sets.items()
    ]


def _verdict_row(keys: dict[str, Any], prompt_set: str, snapshots: dict[str, pd.DataFrame]) -> dict[str, Any]:
    values = pd.DataFrame(
        {label: rows.groupby(["prompt_id", "question_id"])["score"].mean() for label, rows in snapshots.items()}
    )
    times = {label: snapshot_time(label, _first(rows["answered_at"])) for label, rows in snapshots.items()}
    temperatures = {float(t) for rows in snapshots.values() for t in set(rows["temperature"].dropna())}
    verdict = asdict(drift_verdict(values, times, temperature=temperatures.pop() if len(temperatures) == 1 else None))
    return {**keys, **verdict, "n_prompts": verdict["n_items"], "prompt_set": prompt_set}


def _first(times: pd.Series[Any]) -> Any:
    known = times.dropna()
    return known.min().to_pydatetime() if len(known) else None


def headline(checks: pa.Table) -> str:
    """The model with the largest flagged range, and the two snapshots to compare; or that nothing was flagged."""
    rows = [row for row in checks.to_pylist() if row["flagged"]]
    if not rows:
        compared = sum(1 for row in checks.to_pylist() if row["gap"] is not None)
        return f"No drift flagged: {compared} of {len(checks)} series could be compared."
    worst = max(rows, key=lambda row: (row["gap"], row["model"]))
    where = "/".join(part for part in (worst["round"], worst["segment"]) if part)
    return (
        f"Drift flagged in {len(rows)} of {len(checks)} series. Largest: {worst['model']} on {where} at context "
        f"{worst['context_level']}, {worst['lowest']:.4f} to {worst['highest']:.4f}. Compare snapshots "
        f"{worst['lowest_snapshot']} and {worst['highest_snapshot']}."
    )
