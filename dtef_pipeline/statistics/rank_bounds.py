"""Ranges of true ranks, from tests of pairs.

Source: Mogstad, Romano, Shaikh & Wilhelm (2024), Inference for ranks with applications to mobility across neighbourhoods and academic
achievement across countries: if the rate of any false finding among all pairs is controlled (Holm), the bounds hold for all ranks together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dtef_pipeline.statistics.cluster_robust import Codes, Floats, estimate_ratios
from dtef_pipeline.statistics.multiplicity import SIGNIFICANCE, holm


class RankBounds(NamedTuple):
    """Best and worst rank of each row, (rows,) each, from 1 to the number of rows."""

    low: Codes
    high: Codes


def rank_bounds(better: Codes, worse: Codes, rows: int) -> RankBounds:
    """Return 1 + the number of better rows, and `rows` less the number of worse ones, for the significant pairs `better` and `worse`,
    (pairs,) each.
    """
    return RankBounds(1 + np.bincount(worse, minlength=rows), rows - np.bincount(better, minlength=rows))


def rank_bounds_of_means(sums: Floats, counts: Floats) -> RankBounds:
    """Return bounds of the columns of `sums` over `counts`, both (clusters, columns): highest mean first, tested on shared clusters.

    A cluster counts for a pair as much as for its two columns in the mean. The t tests of `estimate_ratios` are adjusted by Holm over all
    pairs.
    """
    means = np.divide(sums, counts, out=np.zeros(sums.shape), where=counts > 0)
    left, right = np.triu_indices(sums.shape[1], k=1)
    weights = np.where((counts[:, left] > 0) & (counts[:, right] > 0), (counts[:, left] + counts[:, right]) / 2, 0)
    estimates = estimate_ratios(weights * (means[:, left] - means[:, right]), weights)
    is_significant, leads = holm(estimates.p()) < SIGNIFICANCE, estimates.value > 0
    return rank_bounds(
        np.where(leads, left, right)[is_significant], np.where(leads, right, left)[is_significant], sums.shape[1]
    )
