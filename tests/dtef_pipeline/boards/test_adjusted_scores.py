"""Ranks of models that were asked different pairs: the adjusted scores of a board."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.boards.boards import adjust_scores

_NONE = np.nan


def _adjusted(
    scores: list[list[float]] | np.ndarray, counts: list[bool] | None = None, reference: int | None = None
) -> np.ndarray:
    """Of one group: `scores` (models, cells)."""
    table = np.asarray(scores, dtype=float)
    row, cell = np.indices(table.shape)
    is_reference = np.zeros(len(table), dtype=bool)
    if reference is not None:
        is_reference[reference] = True
    able = np.ones(len(table), dtype=bool) if counts is None else np.asarray(counts)
    return adjust_scores(row.ravel(), cell.ravel(), table.ravel(), np.zeros(len(table), dtype=int), able, is_reference)


def test_a_model_asked_easy_cells_alone_gains_nothing_by_it() -> None:
    """The reference finds the last two cells hard; the second model is .05 better than the first wherever both were asked."""
    found = _adjusted([[0.80, 0.82, 0.50, 0.52], [0.85, 0.87, _NONE, _NONE], [0.75, 0.77, 0.45, 0.47]], reference=2)
    assert found[1] - found[0] == pytest.approx(0.05)
    assert found[0] == pytest.approx(np.mean([0.80, 0.82, 0.50, 0.52]))


def test_models_without_shared_cells_have_no_adjusted_score() -> None:
    found = _adjusted([[0.5, 0.6, _NONE, _NONE], [0.4, 0.7, _NONE, _NONE], [_NONE, _NONE, 0.9, 0.9]], reference=0)
    assert np.isfinite(found[:2]).all()
    assert np.isnan(found[2])


def test_the_rows_that_share_cells_with_the_reference_are_ranked() -> None:
    nothing = [_NONE, _NONE]
    found = _adjusted([[*nothing, 0.5, 0.6], [*nothing, 0.3, 0.6], [0.5, 0.6, *nothing], [0.4, 0.7, *nothing]], reference=3)
    assert np.isnan(found[:2]).all()
    assert np.isfinite(found[2:]).all()


@given(st.integers(0, 10_000))
def test_models_asked_identical_cells_are_ordered_as_their_means(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.random((4, 8))
    scores[2:][rng.random((2, 8)) < 0.4] = _NONE
    found, means = _adjusted(scores), scores[:2].mean(axis=1)
    assert np.sign(found[0] - found[1]) == np.sign(means[0] - means[1])
