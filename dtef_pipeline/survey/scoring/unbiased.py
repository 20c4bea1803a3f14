"""Errors that do not depend on the number of respondents.

An observed distribution is a sample, so even the truth differs from it, the more the smaller n is. These errors subtract the average error
of a sample of n, so that their mean over pairs does not depend on n; a single one can be below 0. Lower is better. n is the number of
respondents of the observed distribution; answers are assumed to be independent (multinomial). Source: the sampling variance of a share p of
n is p (1 - p) / n, and observed p (1 - p) / (n - 1) estimates it without bias; for the ranked probability score this is the correction for
a finite ensemble of Ferro, Richardson and Weigel (2008), here on the observation's side. Rejected with a ConfigError, besides the faults in
`metrics`: an n that is negative, infinite, or not one number or one per row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.scoring.matrices import has_listed_order
from dtef_pipeline.survey.scoring.metrics import DistributionPair, Floats, normalise_distributions, sum_by_rank, sum_of_options

_SMALLEST = 2
"""Respondents below which nothing is known of how answers scatter."""


def compute_corrected_l2(predicted: npt.ArrayLike, observed: npt.ArrayLike, n: npt.ArrayLike) -> Floats:
    """Return the unbiased squared Euclidean distance to the segment's true distribution: sum (q - p)^2 - (1 - sum p^2) / (n - 1).

    `predicted` q and `observed` p are (rows, k) or (k,), `n` respondents (rows,) or a number. Range about -1/(n-1)..2, 0 = the truth on
    average; NaN if n < 2 or unknown.
    """
    pair = DistributionPair(predicted, observed)
    return _correct_l2(pair, _subtract_one(n, pair.observed))


def compute_corrected_rps(predicted: npt.ArrayLike, observed: npt.ArrayLike, n: npt.ArrayLike) -> Floats:
    """Return the unbiased ranked probability score against the true distribution: sum (Q - F)^2 - sum F (1 - F) / (n - 1), Q and F
    cumulative.

    Shapes as in `compute_corrected_l2`; only for ordered options, and the same if the order is reversed. Range about -(k-1)/(4(n-1))..k-1
    (not divided by k - 1); NaN if n < 2 or unknown.
    """
    pair = DistributionPair(predicted, observed)
    return _correct_rps(pair, _subtract_one(n, pair.observed))


def compute_corrected_rps_on_scale(
    predicted: npt.ArrayLike, observed: npt.ArrayLike, n: npt.ArrayLike, ranks: npt.ArrayLike
) -> Floats:
    """Return `compute_corrected_rps` among those who answered on the scale, or NaN if nothing can be compared.

    `ranks` is (k,) integers, one for all rows, as in `metrics.emd_normalized_on_scale`: the options of rank -1 are left out of both
    distributions, the others are ordered by rank. n becomes the respondents on the scale: n times their share, to the nearest whole person
    (published shares are rounded).
    """
    pair = DistributionPair(predicted, observed)
    q, p = pair.predicted, pair.observed
    places = np.asarray(ranks)
    if has_listed_order(places):
        return _correct_rps(pair, _subtract_one(n, p))
    has_place = places >= 0
    mass = sum_of_options(p[..., has_place]) if has_place.any() else np.zeros(p.shape[:-1])
    respondents = np.rint((_subtract_one(n, p) + 1) * mass)
    result = np.full(p.shape[:-1], np.nan)
    q, p = sum_by_rank(q, places), sum_by_rank(p, places)
    usable = (q.sum(axis=-1) > 0) & (p.sum(axis=-1) > 0) & (p.shape[-1] > 1)
    if usable.any():
        result[usable] = compute_corrected_rps(q[usable], p[usable], respondents[usable])
    return result


def compute_corrected_errors(pair: DistributionPair, n: npt.ArrayLike) -> dict[str, Floats]:
    """Return every corrected error by name, in the order of `tables.CORRECTED`, each value (rows,) or a single float."""
    degrees = _subtract_one(n, pair.observed)
    return {name: formula(pair, degrees) for name, formula in _CORRECTED_FORMULAS.items()}


def compute_gini(observed: npt.ArrayLike, n: npt.ArrayLike) -> Floats:
    """Return the unbiased 1 - sum p^2 of the true distribution: chance that two people differ. Range 0..1; NaN if n < 2 or unknown."""
    p = normalise_distributions(observed, "observed")
    degrees = _subtract_one(n, p)
    return np.asarray((1 - sum_of_options(p * p)) * ((degrees + 1) / degrees))


def _correct_l2(pair: DistributionPair, degrees: Floats) -> Floats:
    return np.asarray(sum_of_options(pair.difference**2) - (1 - pair.observed_squares) / degrees)


def _correct_rps(pair: DistributionPair, degrees: Floats) -> Floats:
    """Return the score in one pass over the options, with memory that does not depend on their number."""
    q, p = pair.predicted, pair.observed
    cumulative, real = np.zeros(p.shape[:-1]), np.zeros(p.shape[:-1])
    score, spread = np.zeros(p.shape[:-1]), np.zeros(p.shape[:-1])
    for option in range(p.shape[-1] - 1):
        cumulative = cumulative + q[..., option]
        real = real + p[..., option]
        score += (cumulative - real) ** 2
        spread += real * (1 - real)
    return np.asarray(score - spread / degrees)


_CORRECTED_FORMULAS = {"l2_corrected": _correct_l2, "rps_corrected": _correct_rps}


def _subtract_one(n: npt.ArrayLike, observed: Floats) -> Floats:
    """Check n, and return n - 1 for each row (rows,); NaN if n is unknown or too small."""
    size = np.asarray(n, dtype=np.float64)
    if size.ndim and size.shape != observed.shape[:-1]:
        raise ConfigError(
            f"n: got shape {size.shape} for distributions of shape {observed.shape}; allowed: a number, or one per row"
        )
    wrong = np.isinf(size) | (size < 0)
    if wrong.any():
        row = int(np.flatnonzero(np.atleast_1d(wrong))[0])
        raise ConfigError(f"n: row {row} is {np.atleast_1d(size)[row]}; allowed: a finite number of respondents >= 0")
    return np.broadcast_to(np.where(size >= _SMALLEST, size - 1, np.nan), observed.shape[:-1])
