"""Reliability of repeated draws: published ICC values, naive loops, and intervals that cover."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import f

from dtef_pipeline.boards.reliability import (
    compute_reliability,
    compute_rerun_detectable,
    detectable_difference,
)
from dtef_pipeline.statistics.cluster_robust import degrees_of_freedom, estimate_ratios
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from tests.made.scores import reference_table, scores_table

SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
"""Six targets rated by four judges (Shrout & Fleiss 1979, table 2): ICC(1,1) = .17, 95 % interval -.13 to .72."""


def drawn(scores: Any) -> list[dict[str, Any]]:
    """Score rows of cells q0, q1, ..., each a list of the scores of its draws; None: the call failed."""
    return [
        {"model": "m", "model_variant": "m", "question_id": f"q{cell}", "draw": draw, "score": score}
        | {"status": "error" if score is None else "ok"}
        for cell, draws in enumerate(scores)
        for draw, score in enumerate(draws)
    ]


def reliable(scores: pa.Table | list[dict[str, Any]], reference: pa.Table | None = None, **options: Any) -> pd.DataFrame:
    with duckdb.connect() as connection:
        connection.register("scores", scores_table(scores) if isinstance(scores, list) else scores)
        if reference is not None:
            connection.register("known", reference)
            connection.execute("CREATE TEMP VIEW reference_scores AS FROM known")
        return compute_reliability(connection, SurveyBoardOptions(**options))


def references(questions: int, others: float | None, population: float, per_cluster: int = 1) -> pa.Table:
    return reference_table(
        [
            {
                "question_id": f"q{i}",
                "cluster": f"c{i // per_cluster}",
                "leave_one_out_score": others,
                "population_score": population,
            }
            for i in range(questions)
        ]
    )


def test_the_classic_table_of_shrout_and_fleiss_has_its_icc() -> None:
    row = reliable(drawn(np.array(SHROUT_FLEISS) / 10)).iloc[0]
    assert row["icc"] == pytest.approx(0.1657, abs=5e-5)
    assert row["high"] == pytest.approx(0.7226, abs=5e-5)
    assert row["low"] == pytest.approx(0, abs=1e-12)  # a negative share of variance, -.13 in the paper, is none
    assert (row["n_cells"], row["n_draws"]) == (6, 24)
    table = np.array(SHROUT_FLEISS) / 10
    assert row["within_sd"] == pytest.approx(np.sqrt(table.var(axis=1, ddof=1).mean()))


def naive_icc(cells: list[list[float]], quantile: float | None) -> float:
    """The intraclass correlation at which the weighted F is `quantile` (None: 1), by loops and bisection."""
    total = sum(len(cell) for cell in cells)
    squares = sum((score - sum(cell) / len(cell)) ** 2 for cell in cells for score in cell)
    within, target = squares / (total - len(cells)), 1.0
    if quantile is not None:
        target = float(f.ppf(quantile, len(cells) - 1, total - len(cells)))

    def statistic(icc: float) -> float:
        weights = [1 / (icc / (1 - icc) + 1 / len(cell)) for cell in cells]
        means = [sum(cell) / len(cell) for cell in cells]
        middle = sum(w * m for w, m in zip(weights, means, strict=True)) / sum(weights)
        return sum(w * (m - middle) ** 2 for w, m in zip(weights, means, strict=True)) / (len(cells) - 1) / within

    low, high = 0.0, 1 - 1e-12
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if statistic(middle) > target else (low, middle)
    return low


def test_unbalanced_draws_agree_with_a_naive_loop() -> None:
    rng = np.random.default_rng(8)
    cells = [list(center + 0.1 * rng.standard_normal(1 + i % 5)) for i, center in enumerate(0.5 + 0.2 * rng.random(30))]
    row = reliable(drawn(cells)).iloc[0]
    repeated = [cell for cell in cells if len(cell) > 1]
    assert (row["n_cells"], row["n_draws"]) == (len(repeated), sum(map(len, repeated)))
    assert row["icc"] == pytest.approx(naive_icc(repeated, None), abs=1e-9)
    assert row["low"] == pytest.approx(naive_icc(repeated, 0.975), abs=1e-9)
    assert row["high"] == pytest.approx(naive_icc(repeated, 0.025), abs=1e-9)
    squares = sum((score - np.mean(cell)) ** 2 for cell in repeated for score in cell)
    assert row["within_sd"] ** 2 == pytest.approx(squares / (sum(map(len, repeated)) - len(repeated)))


def test_reruns_are_told_apart_by_2_8_standard_errors_of_their_draws() -> None:
    assert compute_rerun_detectable(0.01, 800) == pytest.approx((1.959964 + 0.841621) * 0.1 * np.sqrt(2 / 800), rel=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [(13, 7, 5, 5, 4, 2, *[1] * 7), (1,) * 5, (2,) * 10])
def test_the_test_of_the_boards_finds_a_detectable_difference_in_80_percent_of_cases(sizes: tuple[int, ...]) -> None:
    """With 2.80 standard errors it found .57 (five batteries) and .61 (those of GD3)."""
    counts = np.repeat(np.array(sizes, dtype=float)[:, None], 3_000, axis=1)
    rng, shares = np.random.default_rng(5), np.array(sizes) / sum(sizes)
    error = math.sqrt(float((shares**2).sum()) * 0.5 + 0.5 / sum(sizes))
    of_questions = rng.normal(size=counts.shape) / np.sqrt(counts)
    means = math.sqrt(0.5) * (rng.normal(size=counts.shape) + of_questions)
    size = detectable_difference(error, float(degrees_of_freedom(counts[:, :1])[0]))
    found = estimate_ratios((means + size) * counts, counts)
    assert ((found.p() < 0.05) & (found.value > 0)).mean() == pytest.approx(0.79, abs=0.04)


def test_without_reference_scores_or_with_few_questions_the_note_says_so() -> None:
    scores = np.random.default_rng(6).random((8, 2))
    none, few = reliable(drawn(scores)).iloc[0], reliable(drawn(scores), references(8, 0.5, 0.5, per_cluster=2)).iloc[0]
    assert pd.isna(none["model_detectable"])
    assert none["note"] == "no reference scores to compare with: ingest the round again"
    assert few["note"] == "no detectable difference of models: 4 batteries, at least 5 are needed"
