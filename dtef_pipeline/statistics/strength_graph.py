"""Conditions under which scores from paired comparisons are finite: who was compared with whom, and who beat whom."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

_RISES = 1e-7
"""What a linear program must gain to count: its tolerance is 1e-9, and a direction that gains at all can be made to gain 1."""


def number_components(players: int, left: Codes, right: Codes) -> Codes:
    """Return (players,) the connected component of each, numbered from 0 in the order of their first players.

    `left` and `right` (rows,): players that were compared. Scores of different components cannot be compared.
    """
    return _number_in_order(_label_components(players, left, right, "weak"))


def number_strong_groups(players: int, better: Codes, worse: Codes) -> Codes:
    """Return (players,) the strongly connected component of each, numbered like components.

    `better` and `worse` (rows,): who beat or tied whom; a tie is listed in both directions. Scores have a finite maximum-likelihood value
    if and only if a connected component is one such group (Zermelo 1929; Ford 1957).
    """
    return _number_in_order(_label_components(players, better, worse, "strong"))


def find_unbeaten(groups: Codes, better: Codes, worse: Codes) -> npt.NDArray[np.bool_]:
    """Return (players,) whether nobody outside a player's group (see `number_strong_groups`) ever beat or tied a member."""
    beaten = groups[worse][groups[better] != groups[worse]]
    return ~np.isin(groups, beaten)


def has_growing_direction(constraints: Floats) -> bool:
    """Return whether some direction satisfies constraints @ direction >= 0, at least one strictly.

    `constraints` (constraints, parameters): each row is what must not fall for the likelihood not to fall. In such a direction the
    likelihood rises without end, so there is no finite maximum. Method: linear program (Konis 2007, ch. 4).
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    if not constraints.size:
        return False
    rows = -csr_array(constraints)
    result = linprog(-constraints.sum(axis=0), A_ub=rows, b_ub=np.zeros(len(constraints)), bounds=(-1, 1), method="highs")
    return bool(result.status != 0 or -result.fun > _RISES)


def _label_components(players: int, first: Codes, second: Codes, connection: str) -> Codes:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(first)), (first, second)), shape=(players, players))
    return np.asarray(connected_components(edges, connection=connection)[1], dtype=np.int64)


def _number_in_order(labels: Codes) -> Codes:
    """Return the same groups, numbered in order of first occurrence."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first)))[inverse]
