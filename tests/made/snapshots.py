"""Rows of `scores` for a few nights, written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import duckdb
import pyarrow as pa

from dtef_pipeline.drift.models import compute_model_drift
from dtef_pipeline.drift.settings import WatchOptions
from dtef_pipeline.drift.verdict_tables import DRIFT, DRIFT_SERIES
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.tables import PREDICTIONS
from tests.made.scores import scores_table


def label(night: int) -> str:
    """Night 0 is the first of January."""
    return (date(2026, 1, 1) + timedelta(night)).isoformat()


def nights(
    means: Sequence[float], *, first: int = 0, questions: int = 10, model: str = "m", **given: Any
) -> list[dict[str, Any]]:
    """One night per mean: question i scores the mean plus .01 i, less their average, and `given` says what else a row has."""
    return [
        {
            "snapshot": label(first + night),
            "question_id": f"q{i}",
            "model": model,
            "model_variant": f"{model}[temperature=0]",
            "score": mean + 0.01 * (i - (questions - 1) / 2),
            "truth_id": "t",
            **given,
        }
        for night, mean in enumerate(means)
        for i in range(questions)
    ]


Rows = list[dict[str, Any]]
STEADY = [0.8, 0.801, 0.799, 0.8, 0.8]
"""A baseline."""


def found(rows: Rows, *, served: Rows | None = None, rounds: Sequence[str] = (), **options: Any) -> tuple[Rows, Rows]:
    """The rows of verdicts, with what they are made of, and of `series`."""
    with duckdb.connect() as connection:
        connection.register("scores", scores_table(rows))
        if served is not None:
            connection.register("predictions", pa.Table.from_pylist(served, schema=PREDICTIONS))
        drift = compute_model_drift(connection, SUBJECT, WatchOptions(**options), only=rounds)
        left = [name for (name,) in connection.execute("SHOW TABLES").fetchall()]
        assert set(left) <= {"scores", "predictions"}, "nothing is left in the connection"
    assert drift.checks.schema == DRIFT
    assert drift.series.schema == DRIFT_SERIES
    return [dict(row) for row in drift.rows], drift.series.to_pylist()


def beside(rows: Rows) -> Rows:
    """The same, asked of another model that does not move."""
    answered = ({**row, "model": "steady", "model_variant": "steady"} for row in rows)
    return [{**row, "status": "ok", "score": 0.7, "js": 0.7} for row in answered]


def check(rows: Rows, **given: Any) -> dict[str, Any]:
    """The row of `checks` of the only model of the rows, beside one that does not move."""
    checks, _ = found([*rows, *beside(rows)], **given)
    (only,) = (row for row in checks if row["model"] != "steady")
    return only


def whats(row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {change["kind"]: change for change in row["changes"]}


def predictions(rows: Rows, **told: Any) -> Rows:
    """What served the rows; values may be functions of the snapshot."""
    keys = ("snapshot", "question_id", "model", "model_variant")
    usual = {"round": "S1", "segment": "country:kenya", "context_level": "0", "condition": "distribution/attribute-label"}
    said = [{name: tell(row["snapshot"]) for name, tell in told.items()} for row in rows]
    return [{**usual, **{name: row[name] for name in keys}, **one} for row, one in zip(rows, said, strict=True)]
