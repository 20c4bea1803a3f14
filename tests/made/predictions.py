"""`predictions` and `blueprints` that fit rows of `scores`, written by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dtef_pipeline.survey.tables import BLUEPRINTS, PREDICTIONS


def predictions_of(scores: pa.Table, responses: Sequence[str]) -> pa.Table:
    """One row per row of `scores`, with its response."""
    rows = [{**row, "response": response} for row, response in zip(scores.to_pylist(), responses, strict=True)]
    return pa.Table.from_pylist(rows, schema=PREDICTIONS)


def blueprints_of(scores: pa.Table) -> pa.Table:
    """The prompt of each row of `scores`, once."""
    rows = {
        row["prompt_id"]: {**row, "system": "Be exact.", "user": f"Group: {row['segment']}\n\n{row['question_id']}?"}
        for row in scores.to_pylist()
    }
    return pa.Table.from_pylist(list(rows.values()), schema=BLUEPRINTS)
