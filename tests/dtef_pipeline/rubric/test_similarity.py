"""Similarity of texts by their vectors: each two, to the ideal answer, and every two of a prompt."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.asking.embeddings import hash_text
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.scoring import (
    OFFLINE_EMBEDDER,
    ScoringPolicy,
    compute_cosine_matrix,
    compute_similarities_to_ideal,
    score_tables,
    stack_vectors,
)
from dtef_pipeline.rubric.tables import RUBRIC_CRITERIA, RUBRIC_POINTS, RUBRIC_PROMPTS, RUBRIC_RESPONSES, RUBRIC_SCORES
from tests.dtef_pipeline.rubric.scored_rows import RESPONSE_ROW

VECTORS = st.lists(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), min_size=1, max_size=6)


def naive(left: list[float], right: list[float]) -> float:
    lengths = math.hypot(*left) * math.hypot(*right)
    return sum(a * b for a, b in zip(left, right, strict=True)) / lengths if lengths else 0.0


def responses(*rows: tuple[str, str, object]) -> pd.DataFrame:
    return pd.DataFrame(
        [{**RESPONSE_ROW, "prompt": prompt, "model": model, "vector": vector} for prompt, model, vector in rows],
        columns=[*RESPONSE_ROW, "vector"],
    )


def ideals(**vectors: object) -> pd.DataFrame:
    rows = [{"blueprint": "b", "prompt": prompt, "vector": vector} for prompt, vector in vectors.items()]
    return pd.DataFrame(rows, columns=["blueprint", "prompt", "vector"])


def test_nothing_is_like_a_vector_of_zeros_and_lengths_do_not_matter() -> None:
    assert compute_cosine_matrix([(0, 0), (1, 1)])[0, 1] == 0
    assert compute_cosine_matrix([(1e-200, 0), (1e200, 0)])[0, 1] == pytest.approx(1)


@given(VECTORS)
def test_the_matrix_is_symmetric_with_diagonal_1_and_each_value_the_naive_one(vectors: list[list[float]]) -> None:
    matrix = compute_cosine_matrix(vectors)
    assert np.array_equal(matrix, matrix.T)
    assert np.array_equal(np.diag(matrix), np.ones(len(vectors)))
    assert np.abs(matrix).max() <= 1
    for i in range(len(vectors)):
        for j in range(i):
            if min(np.abs(vectors[i]).max(), np.abs(vectors[j]).max()) > 1e-100:
                assert matrix[i, j] == pytest.approx(naive(vectors[i], vectors[j]), abs=1e-9)


def test_values_have_the_same_bits_alone_and_among_others() -> None:
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(60, 384))
    together = compute_cosine_matrix(vectors)
    alone = [[compute_cosine_matrix([x, y])[0, 1] for y in vectors] for x in vectors]
    assert np.array_equal(together[np.triu_indices(60, 1)], np.array(alone)[np.triu_indices(60, 1)])


def test_a_missing_vector_has_no_similarity_and_a_different_length_is_refused() -> None:
    """A server that changes its model under one name left vectors of two lengths."""
    assert np.isnan(stack_vectors([[1.0, 0.0], None])[1]).all()
    with pytest.raises(ConfigError, match=r"vectors of the lengths \[2, 3\]; allowed"):
        stack_vectors([[1.0, 2.0], [1.0, 2.0, 3.0]])


def test_similarity_to_the_ideal_of_the_own_prompt() -> None:
    given_rows = responses(("p", "a", [1, 0]), ("p", "b", None), ("q", "a", [0, 2]), ("none", "a", [1, 1]))
    found = compute_similarities_to_ideal(given_rows, ideals(p=[1, 1], q=[0, 1]))
    values = {(row["prompt"], row["model"]): row["similarity"] for row in found.to_dict("records")}
    assert values["p", "a"] == pytest.approx(math.sqrt(0.5))
    assert values["q", "a"] == pytest.approx(1.0)
    assert np.isnan([values["p", "b"], values["none", "a"]]).all()
    shuffled = compute_similarities_to_ideal(given_rows.iloc[[2, 0, 3, 1]], ideals(q=[0, 1], p=[1, 1]))
    pd.testing.assert_frame_equal(shuffled, found, check_exact=True)


def test_no_responses_have_no_similarities() -> None:
    assert len(compute_similarities_to_ideal(responses(), ideals(p=[1, 1]))) == 0
    assert len(compute_similarities_to_ideal(responses(("p", "a", [1, 0])), ideals())) == 1


def test_without_any_vector_a_similarity_is_missing_and_not_0() -> None:
    """Responses of a blueprint whose texts were not embedded yet were published with the similarity 0."""
    found = compute_similarities_to_ideal(responses(("p", "a", None), ("p", "b", None)), ideals(p=None))
    assert found["similarity"].isna().all()


CRITERION = {"block": "should", "path": None, "position": 0, "weight": 1.0}
VECTORS_OF_TEXTS = {"yes": [1.0, 0.0], "maybe": [0.6, 0.8]}


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
        {"embedder": OFFLINE_EMBEDDER, "text_hash": hash_text(text), "vector": vector}
        for text, vector in VECTORS_OF_TEXTS.items()
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
