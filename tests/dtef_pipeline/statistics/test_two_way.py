"""The two-way fit: hand-computed effects, the definition by least squares, rows that share nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.statistics.cluster_robust import fit_effects


def _fit(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    row, cell = np.nonzero(~np.isnan(scores))
    return fit_effects(row, cell, scores[row, cell], *scores.shape)


def test_rows_that_share_no_cell_are_of_two_components() -> None:
    nothing = np.nan
    found = _fit(
        np.array(
            [
                [0.8, 0.6, nothing, nothing],
                [0.4, nothing, nothing, nothing],
                [nothing, nothing, 0.5, 0.1],
                [nothing, nothing, 0.3, nothing],
            ]
        )
    )
    assert found.component[0] == found.component[1] != found.component[2] == found.component[3]


def test_a_row_without_shared_cells_has_no_effect() -> None:
    found = _fit(np.array([[0.8, 0.6, np.nan], [0.4, 0.5, np.nan], [np.nan, np.nan, 0.7]]))
    assert np.isnan(found.of_row[2])
    assert found.component[2] == -1


@given(st.integers(0, 10_000), st.floats(0.3, 1))
def test_it_is_the_least_squares_fit(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.random((4, 9))
    scores[rng.random(scores.shape) > share] = np.nan
    found = _fit(scores)
    row, cell = np.nonzero(~np.isnan(scores) & ((~np.isnan(scores)).sum(axis=0) > 1))
    design = np.zeros((len(row), 13))
    design[np.arange(len(row)), row] = design[np.arange(len(row)), 4 + cell] = 1
    naive = np.linalg.lstsq(design, scores[row, cell], rcond=None)[0] if len(row) else np.zeros(13)
    assert found.of_row[row] + found.of_cell[cell] == pytest.approx(design @ naive, abs=1e-9)
