"""The rows of points that are computed from responses."""

from __future__ import annotations

import json

import pyarrow as pa

from dtef_pipeline.rubric.functions import prepare_function
from dtef_pipeline.rubric.point_rows import build_point_rows
from dtef_pipeline.rubric.tables import RUBRIC_CRITERIA, RUBRIC_JUDGEMENTS, RUBRIC_RESPONSES


def test_the_words_of_a_response_in_an_explanation_can_be_stored() -> None:
    """The name of a called tool is decoded from JSON: half a character in it made the table of all responses fail."""
    text = 'TOOL_CALL {"name": "\\ud800"}'
    key = {"prompt": "p", "model": "m", "model_variant": "m", "temperature": 0.0, "system_index": 0, "draw": 0}
    response = {**key, "status": "ok", "text": text, "transcript": [{"role": "assistant", "text": text}]}
    criterion = {
        "prompt": "p",
        "block": "should",
        "path": None,
        "position": 0,
        "kind": "function",
        "fn": "tool_called",
        "args": json.dumps("search"),
        "criterion_id": "c",
        "weight": 1.0,
        "source": "s",
    }
    rows = build_point_rows(
        pa.Table.from_pylist([response], schema=RUBRIC_RESPONSES),
        pa.Table.from_pylist([criterion], schema=RUBRIC_CRITERIA),
        RUBRIC_JUDGEMENTS.empty_table(),
        prepare_function,
    )
    assert rows["explanation"].to_pylist() == ["called \ufffd"]
