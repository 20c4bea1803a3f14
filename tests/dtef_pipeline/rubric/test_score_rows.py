"""The scores of a snapshot from the tables as they are stored."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dtef_pipeline.asking.embeddings import hash_text
from dtef_pipeline.rubric.hybrid import OFFLINE_EMBEDDER, ScoringPolicy
from dtef_pipeline.rubric.score_rows import score_tables
from dtef_pipeline.rubric.tables import RUBRIC_CRITERIA, RUBRIC_POINTS, RUBRIC_PROMPTS, RUBRIC_RESPONSES, RUBRIC_SCORES
from tests.dtef_pipeline.rubric.scored_rows import RESPONSE_ROW

CRITERION = {"block": "should", "path": None, "position": 0, "weight": 1.0}
VECTORS = {"yes": [1.0, 0.0], "maybe": [0.6, 0.8]}


def test_stored_tables_are_scored_and_a_blank_response_counts_its_criteria_as_unscored() -> None:
    asked = [
        {**RESPONSE_ROW, "status": "ok", "text": "maybe"},
        {**RESPONSE_ROW, "draw": 1, "status": "ok", "text": "yes"},
        {**RESPONSE_ROW, "prompt": "q", "status": "empty", "text": None},
    ]
    prompts = [
        {"blueprint": "b", "prompt": "p", "weight": 1.0, "ideal": "yes"},
        {"blueprint": "b", "prompt": "q", "weight": 2.0, "ideal": None},
    ]
    criteria = [{"blueprint": "b", "prompt": prompt, **CRITERION} for prompt in "pq"]
    points = [{**RESPONSE_ROW, **CRITERION, "draw": draw, "score": 0.5, "low": 0.5, "high": 0.5} for draw in (0, 1)]
    embeddings = [
        {"embedder": OFFLINE_EMBEDDER, "text_hash": hash_text(text), "vector": vector} for text, vector in VECTORS.items()
    ]
    made = score_tables(
        pa.Table.from_pylist(asked, schema=RUBRIC_RESPONSES),
        pa.Table.from_pylist(prompts, schema=RUBRIC_PROMPTS),
        pa.Table.from_pylist(criteria, schema=RUBRIC_CRITERIA),
        pa.Table.from_pylist(points, schema=RUBRIC_POINTS),
        pa.Table.from_pylist(embeddings),
        ScoringPolicy(),
    )
    assert made["rubric_scores"].schema == RUBRIC_SCORES
    p, q, variant, model = made["rubric_scores"].to_pylist()
    assert (p["similarity"], p["hybrid"]) == (pytest.approx(0.8), pytest.approx(0.35 * 0.8 + 0.65 * 0.5))
    similarities = made["rubric_similarities"].to_pylist()
    assert [(row["place"], row["response_similarities"]) for row in similarities] == [
        (0, pytest.approx([1, 0.6])),
        (1, pytest.approx([0.6, 1])),
    ]
    assert [row["ideal_similarity"] for row in similarities] == pytest.approx([0.6, 1])
    assert (q["hybrid"], q["n_planned"], q["n_unscored"]) == (None, 1, 1)
    assert (variant["n_planned"], variant["n_scored"], model["hybrid"]) == (2, 1, p["hybrid"])
