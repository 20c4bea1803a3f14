"""Rows of `qa_scores` for tests and benchmarks: only what a test is about is given, the rest is filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.qa.tables import QA_JUDGEMENTS, QA_RESPONSES, QA_SCORES
from resources.warehouse import TABLES, Warehouse
from tests.made.usual_rows import make_usual_row

FIRST_DAY = datetime(2026, 1, 1, 2, tzinfo=UTC)


def score_row(score: float | None = None, **given: Any) -> dict[str, Any]:
    """A row of `qa_scores`. A score of None with the status `unparseable` is published as 0; without a cluster the item is one by itself."""
    row = make_usual_row("qa_scores", **{"answered_at": FIRST_DAY, **given})
    if "status" not in given and score is None:
        row["status"] = "error"
    row.setdefault("model_variant", f"{row['model']}[temperature=0]")
    row.setdefault("cluster", row["item_id"])
    is_ok = row["status"] == "ok"
    return {
        **row,
        "value": score if is_ok else None,
        "score": 0.0 if row["status"] == "unparseable" else score if is_ok else None,
    }


def night(number: int) -> dict[str, Any]:
    """The snapshot of a night, from 0, and its time."""
    time = FIRST_DAY + timedelta(days=number)
    return {"snapshot": time.date().isoformat(), "answered_at": time}


def table_of(rows: Iterable[Mapping[str, Any]], schema: pa.Schema = QA_SCORES) -> pa.Table:
    """The rows with null in every column that they lack."""
    return pa.Table.from_pylist(list(rows), schema)


def connected(
    scores: Iterable[Mapping[str, Any]] | pa.Table = (),
    responses: Iterable[Mapping[str, Any]] | None = None,
    judgements: Iterable[Mapping[str, Any]] | None = None,
) -> duckdb.DuckDBPyConnection:
    """A connection with `qa_scores` and, where they are given, `qa_responses` and `qa_judgements`."""
    connection = duckdb.connect(config={"threads": 1})
    connection.register("qa_scores", scores if isinstance(scores, pa.Table) else table_of(scores))
    if responses is not None:
        connection.register("qa_responses", table_of(responses, QA_RESPONSES))
    if judgements is not None:
        connection.register("qa_judgements", table_of(judgements, QA_JUDGEMENTS))
    return connection


def keep_in(folder: Path, tables: Mapping[str, Iterable[Mapping[str, Any]]]) -> Warehouse:
    """Rows of tables of the qa family in the folders of their parts and snapshots, as a run would leave them."""
    house = Warehouse(folder)
    for name, rows in tables.items():
        spec = TABLES[name]
        assert spec.schema is not None
        write_parts(house, name, table_of(rows, spec.schema))
    return house


def write_parts(house: Warehouse, name: str, whole: pa.Table) -> None:
    """Write the rows of a table in the folders of its levels."""
    levels = list(TABLES[name].levels)
    for values in whole.select(levels).group_by(levels).aggregate([]).to_pylist():
        part = whole
        for level, value in values.items():
            part = part.filter(pc.equal(part[level], value))
        house.write(name, part, **values)
