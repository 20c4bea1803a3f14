"""Which rows of the rubric family the pages show, and how they are handed out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import among, in_order, time_of
from dtef_pipeline.report.stored_rows import StoredRow, StoredRows
from dtef_pipeline.rubric.aggregate import MODEL_LEVEL
from dtef_pipeline.rubric.board import latest_runs


class ByPrompt:
    """Rows of one blueprint, held as columns and handed out as mappings, one prompt at a time: a large blueprint has 100,000 of them."""

    def __init__(self, rows: pa.Table) -> None:
        """`rows` are sorted by their column prompt."""
        self._rows = rows
        self._slices: dict[str, tuple[int, int]] = {}
        start = 0
        for prompt, same in groupby(rows["prompt"].to_pylist()):
            length = sum(1 for _ in same)
            self._slices[str(prompt)] = (start, length)
            start += length

    def of(self, prompt: str) -> list[StoredRow]:
        found: list[StoredRow] = self._rows.slice(*self._slices.get(prompt, (0, 0))).to_pylist()
        return found


def snapshots_in_order(rows: StoredRows) -> list[str]:
    """All snapshots of the family, the earliest first."""
    times: dict[str, datetime | None] = {}
    for name in ("rubric_scores", "rubric_responses", "rubric_runs"):
        if "snapshot" not in rows.columns(name):
            continue
        first = "min(epoch_us(answered_at))" if "answered_at" in rows.columns(name) else "NULL"
        grouped = rows.table(f"(SELECT snapshot, {first} AS us FROM {name} GROUP BY snapshot)", ["snapshot", "us"], {})
        for snapshot, us in zip(*(grouped[column].to_pylist() for column in ("snapshot", "us")), strict=True):
            times[str(snapshot)] = time_of(us) or times.get(str(snapshot))
    return in_order(times)


def model_scores(rows: StoredRows, snapshot: str | None = None) -> pd.DataFrame:
    """The rows of scores of whole models; of one snapshot alone where it is given."""
    where = {"level": MODEL_LEVEL, **({"snapshot": snapshot} if snapshot is not None else {})}
    return rows.frame("rubric_scores", where)


def shown_runs(rows: StoredRows, scores: pd.DataFrame, order: Sequence[str], snapshot: str | None) -> dict[str, str]:
    """The snapshot of each blueprint that is shown: its latest with a score, else its latest; blueprints without a run are not in it."""
    runs: dict[str, list[str]] = {}
    for name in ("rubric_responses", "rubric_runs"):
        if {"blueprint", "snapshot"} <= rows.columns(name):
            found = rows.rows(f"(SELECT DISTINCT blueprint, snapshot FROM {name})", ["blueprint", "snapshot"], {})
            for row in found:
                runs.setdefault(str(row["blueprint"]), []).append(str(row["snapshot"]))
    if snapshot is not None:
        scored = set(scores["blueprint"]) if len(scores) else set()
        return dict.fromkeys(sorted({*scored, *(name for name, own in runs.items() if snapshot in own)}), snapshot)
    latest = {name: among(order, own)[-1] for name, own in runs.items()}
    if len(scores):
        pairs = latest_runs(scores, order)
        latest |= dict(zip(pairs["blueprint"].astype(str), pairs["snapshot"].astype(str), strict=True))
    return latest


def pairs_of(value: Any) -> Iterator[tuple[str, int]]:
    """Names and their counts, however the table holds them: a map, or a list of pairs or of structs."""
    entries = value.items() if isinstance(value, Mapping) else [] if value is None else value
    for entry in entries:
        name, count = tuple(entry.values())[:2] if isinstance(entry, Mapping) else tuple(entry)[:2]
        yield str(name), int(count)
