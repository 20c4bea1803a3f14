"""When scores of players that were compared in pairs have a finite value: a matter of who was compared with whom, and who beat whom.

General: it knows players by number, nothing of any family.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

_RISES = 1e-7
"""What a linear program must gain to count: its tolerance is 1e-9, and a direction that gains at all can be made to gain 1."""


def number_components(players: int, left: Codes, right: Codes) -> Codes:
    """(players,) the connected component of each, numbered from 0 in the order of their first players.

    `left` and `right` (rows,): players that were compared. Scores of different components cannot be compared with each other.
    """
    return _number_in_order(_label_components(players, left, right, "weak"))


def number_strong_groups(players: int, better: Codes, worse: Codes) -> Codes:
    """(players,) the strongly connected component of each, numbered as components are.

    `better` and `worse` (rows,): who beat or tied whom; a tie stands in both directions. Scores have a finite maximum-likelihood value
    exactly where a connected component is one such group (Zermelo 1929; Ford 1957).
    """
    return _number_in_order(_label_components(players, better, worse, "strong"))


def find_unbeaten(groups: Codes, better: Codes, worse: Codes) -> npt.NDArray[np.bool_]:
    """(players,) whether nobody outside of a player's group (as of `number_strong_groups`) ever beat or tied one of it."""
    beaten = groups[worse][groups[better] != groups[worse]]
    return ~np.isin(groups, beaten)


def has_growing_direction(constraints: Floats) -> bool:
    """Whether some direction satisfies constraints @ direction >= 0, and one of them with more than 0.

    `constraints` (constraints, parameters): each row says what must not fall for the likelihood not to fall. In such a direction the
    likelihood rises without end, so that there is no finite maximum. Method: linear program (Konis 2007, ch. 4).
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
    """The same groups, numbered in the order in which they first occur."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first)))[inverse]
