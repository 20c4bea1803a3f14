"""Rows of `reference_scores`, written by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dtef_pipeline.tables import METRICS, REFERENCE_SCORES


def reference_row(**given: Any) -> dict[str, Any]:
    """One row; a number for a reference stands for every metric."""
    row: dict[str, Any] = {
        "round": "S1",
        "segment": "country:kenya",
        "question_id": "q0",
        "n": 40,
        "gini": 0.6,
        "shrinkage": 0.5,
        "ceiling": 0.9,
        "uniform": 0.6,
        "others": 0.8,
        "population": 0.82,
        **given,
    }
    row.setdefault("cluster", row["question_id"])
    for name in ("ceiling", "uniform", "others", "population"):
        if isinstance(row[name], float):
            row[name] = dict.fromkeys(METRICS, row[name])
    return row


def references_table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([reference_row(**row) for row in rows], schema=REFERENCE_SCORES)
