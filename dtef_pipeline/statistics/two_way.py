"""Effects of rows and cells, from scores of which many are missing.

A row is what is ranked, such as a model; a cell is what rows are scored on. Rows scored on different cells are compared through cells that
they share with others.

Source: least squares of the two-way model without interaction (Searle 1987, Linear Models for Unbalanced Data, ch. 4).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


class Effects(NamedTuple):
    """Effects that add up to scores: row + cell. They are known up to a constant per component; shared cells connect rows."""

    of_row: Floats
    """(rows,) NaN for a row that shares no cell with another."""
    of_cell: Floats
    """(cells,) NaN for a cell that fewer than two rows were scored on."""
    component: Codes
    """(rows,) the component of each, from 0; -1 where there is no effect."""


def fit_effects(row: Codes, cell: Codes, score: Floats, rows: int, cells: int) -> Effects:
    """Fit score = row + cell by least squares over the cells that at least two rows have; `row`, `cell` and `score` are (n,), without NaN.

    With n_c the rows of a cell, the row effects a solve, for each row i, the sum over its cells of (a_i - mean a of the cell) = the sum
    over its cells of (score - mean score of the cell). The effect of a cell is the mean of score - a over its rows. In each component the
    row with the lowest number has the effect 0.
    """
    from scipy.sparse import coo_array, diags_array
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import spsolve

    of_row, of_cell = np.full(rows, np.nan), np.full(cells, np.nan)
    component = np.full(rows, -1)
    shared = np.bincount(cell, minlength=cells)[cell] > 1
    row, cell, score = row[shared], cell[shared], score[shared]
    if not len(row):
        return Effects(of_row, of_cell, component)
    present, at = np.unique(row, return_inverse=True)
    counts = np.bincount(cell, minlength=cells).astype(np.float64)
    means = np.divide(np.bincount(cell, score, cells), counts, out=np.zeros(cells), where=counts > 0)
    incidence = coo_array((np.ones(len(at)), (at, cell)), shape=(len(present), cells)).tocsr()
    together = incidence @ diags_array(1 / np.maximum(counts, 1)) @ incidence.T
    laplacian = diags_array(np.bincount(at).astype(np.float64)) - together
    _, label = connected_components(laplacian, directed=False)
    pull = np.bincount(at, score - means[cell])
    free = np.ones(len(present), dtype=bool)
    free[np.unique(label, return_index=True)[1]] = False
    effect = np.zeros(len(present))
    if free.any():
        effect[free] = spsolve(laplacian.tocsc()[free][:, free], pull[free])
    of_row[present], component[present] = effect, label
    residuals = np.bincount(cell, score - effect[at], cells)
    return Effects(of_row, np.where(counts > 0, residuals / np.maximum(counts, 1), np.nan), component)
