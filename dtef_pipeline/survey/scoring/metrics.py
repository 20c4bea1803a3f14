"""How close a predicted distribution is to the observed one: one function per metric.

Every function takes `predicted` and `observed` of one shape, (rows, k) or a single (k,), with k >= 2 options in the order of the scale, and
returns (rows,) or a single float. Rows may be fractions, percentages or counts: each is divided by its total first, as the DTEF methodology
(section 4) says. Zeros are exact: nothing is smoothed. Rejected with a ConfigError naming the row: another number of dimensions, two
shapes, fewer than two options, a value that is negative or not finite, a row whose total is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps

import numpy as np
import numpy.typing as npt

from dtef_pipeline.errors import ConfigError

Floats = npt.NDArray[np.float64]


def normalise_distributions(rows: npt.ArrayLike, name: str = "rows") -> Floats:
    """Check all input, and return rows divided by their totals. Shape (rows, k) or (k,), unchanged."""
    array = np.asarray(rows, dtype=np.float64, order="F")  # one column per option: sums run down the rows
    if array.ndim not in (1, 2) or array.shape[-1] < 2:
        raise ConfigError(f"{name}: got shape {array.shape}; allowed: (rows, options) or (options,), with 2 options or more")
    with np.errstate(over="ignore", invalid="ignore"):  # checked below
        total = sum_of_options(array)
    fine = np.isfinite(total) & (total > 0) & (array.min(axis=-1) >= 0)
    if not fine.all():
        row = int(np.flatnonzero(~np.atleast_1d(fine))[0])
        raise ConfigError(
            f"{name}: row {row} is not a distribution: got {np.atleast_2d(array)[row].tolist()}; allowed: finite values >= 0 with a "
            "total above 0"
        )
    return np.asarray(array / total[..., None])


def sum_of_options(array: Floats) -> Floats:
    """Return the sum over the options, from the first to the last: the same to the last bit for one row and for a million."""
    total = array[..., 0].copy()
    for option in range(1, array.shape[-1]):
        total += array[..., option]
    return total


def check_fractions(predicted: npt.ArrayLike, observed: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return both arguments checked and as fractions, of one shape."""
    p, q = normalise_distributions(predicted, "predicted"), normalise_distributions(observed, "observed")
    if p.shape != q.shape:
        raise ConfigError(f"predicted and observed must have the same shape; got {p.shape} and {q.shape}")
    return p, q


class DistributionPair:
    """Predicted and observed fractions of one shape, with the terms that several formulas share."""

    def __init__(self, predicted: npt.ArrayLike, observed: npt.ArrayLike) -> None:
        self.predicted, self.observed = check_fractions(predicted, observed)
        self.options = self.predicted.shape[-1]

    @cached_property
    def difference(self) -> Floats:
        return np.asarray(self.predicted - self.observed)

    @cached_property
    def distance(self) -> Floats:
        """The sum of the absolute differences, 0..2."""
        return sum_of_options(np.abs(self.difference))

    @cached_property
    def observed_squares(self) -> Floats:
        """The sum of the squares of the observed fractions, 1/k..1."""
        return sum_of_options(self.observed * self.observed)

    @cached_property
    def work(self) -> Floats:
        """The sum of the absolute differences of the cumulative distributions, 0..k-1, in steps of the scale."""
        cumulative = self.difference[..., 0].copy()
        work = np.abs(cumulative)
        for option in range(1, self.options - 1):
            cumulative += self.difference[..., option]
            work += np.abs(cumulative)
        return np.asarray(work)

    def metrics(self) -> dict[str, Floats]:
        return {name: formula(self) for name, formula in _FORMULAS.items()}


Formula = Callable[[DistributionPair], Floats]
Metric = Callable[[npt.ArrayLike, npt.ArrayLike], Floats]
_FORMULAS: dict[str, Formula] = {}


def _make_metric(formula: Formula) -> Metric:
    """Return the metric of a formula over fractions, which checks its input and divides each row by its total first."""
    _FORMULAS[formula.__name__] = formula

    @wraps(formula)
    def metric(predicted: npt.ArrayLike, observed: npt.ArrayLike) -> Floats:
        return formula(DistributionPair(predicted, observed))

    return metric


def measure(predicted: npt.ArrayLike, observed: npt.ArrayLike) -> dict[str, Floats]:
    """Return every metric by name, in the order of `tables.METRICS`: input checked once, each value (rows,) or a single float."""
    return DistributionPair(predicted, observed).metrics()


def _compute_entropy_to_middle(p: Floats, sums: Floats) -> Floats:
    """Return the Kullback-Leibler divergence in bits of p from the middle, half of the `sums`, with 0 log 0 = 0.

    As p > 0 makes them > 0, it is finite.
    """
    ratio, is_positive = p + p, p > 0
    if is_positive.all():
        ratio /= sums
    else:
        ratio = np.divide(ratio, sums, out=np.ones_like(p), where=is_positive)
    np.log2(ratio, out=ratio)
    ratio *= p
    return sum_of_options(ratio)


@_make_metric
def js(compared: DistributionPair) -> Floats:
    """Jensen-Shannon similarity, 1 - sqrt(JSD) with base-2 logarithms. Range 0..1, 1 = identical, 0 = no common option.

    JSD = KL(P || M) / 2 + KL(Q || M) / 2 with M = (P + Q) / 2. Symmetric; the order of the options does not matter. Source: DTEF
    methodology 4.1. Identical rows give exactly 1.

    >>> float(js([40, 35, 15, 10], [40, 35, 15, 10]))
    1.0
    """
    p, q = compared.predicted, compared.observed
    sums = p + q
    divergence = (_compute_entropy_to_middle(p, sums) + _compute_entropy_to_middle(q, sums)) / 2
    return np.asarray(1 - np.sqrt(np.clip(divergence, 0, 1)))


@_make_metric
def cosine(compared: DistributionPair) -> Floats:
    """Cosine of the angle between the two vectors of fractions. Range 0..1, 1 = same direction (so: identical).

    Symmetric; the order of the options does not matter. Source: DTEF methodology 4.2.
    """
    p, q = compared.predicted, compared.observed
    squares = sum_of_options(p * p) * compared.observed_squares
    return np.asarray(np.clip(sum_of_options(p * q) / np.sqrt(squares), 0, 1))


@_make_metric
def emd(compared: DistributionPair) -> Floats:
    """Earth mover's similarity, max(0, 1 - sum |CDF difference|). Range 0..1, 1 = identical, 0 = a step or more on average.

    As published, over all options in their order, regardless of the scale. Source: DTEF methodology 4.3.
    """
    return np.asarray(np.maximum(0, 1 - compared.work))


@_make_metric
def emd_normalized(compared: DistributionPair) -> Floats:
    """Earth mover's similarity on the whole scale, 1 - sum |CDF difference| / (k - 1). Range 0..1, 1 = identical.

    0 only if all mass is at opposite ends. Only for ordinal scales; reversing the scale changes nothing.
    """
    return np.asarray(np.clip(1 - compared.work / (compared.options - 1), 0, 1))


@_make_metric
def tv(compared: DistributionPair) -> Floats:
    """Total variation distance, sum |P - Q| / 2: the share that would have to change its answer. Range 0..1, 0 = identical."""
    return np.asarray(np.clip(compared.distance / 2, 0, 1))


@_make_metric
def mae(compared: DistributionPair) -> Floats:
    """Mean absolute error of the fractions, sum |P - Q| / k: a distance. Range 0..2/k, 0 = identical."""
    return np.asarray(compared.distance / compared.options)


@_make_metric
def top_hit(compared: DistributionPair) -> Floats:
    """Whether the predicted top option is an observed top option: 1 or 0, higher is better.

    If several options share the predicted top, the share of them that are an observed top (the probability of a hit if one of them is
    drawn), so a uniform prediction gets 1/k and not 1.
    """
    p, q = compared.predicted, compared.observed
    highest_p, highest_q = p.max(axis=-1), q.max(axis=-1)
    tops, hits = np.zeros(p.shape[:-1]), np.zeros(p.shape[:-1])
    for option in range(compared.options):
        top = p[..., option] == highest_p
        tops += top
        hits += top & (q[..., option] == highest_q)
    return np.asarray(hits / tops)


def sum_by_rank(rows: Floats, ranks: npt.ArrayLike) -> Floats:
    """Return fractions (..., k) by place on the scale, (..., places): options of one rank add up, rank -1 is left out.

    `ranks` is (k,) integers: the place of each option on the scale, from 0.
    """
    places = np.asarray(ranks)
    fractions = np.zeros((*rows.shape[:-1], max(places.max(initial=-1) + 1, 0)), order="F")
    for option in np.flatnonzero(places >= 0):
        fractions[..., places[option]] += rows[..., option]
    return fractions


def emd_normalized_on_scale(predicted: npt.ArrayLike, observed: npt.ArrayLike, ranks: npt.ArrayLike) -> Floats:
    """Return `emd_normalized` among those who answered on the scale, or NaN if nothing can be compared.

    `ranks` is (k,) integers, one for all rows: the place of each option on the scale from 0, the same for options of one place, -1 off the
    scale. Neighbouring places are one step apart. Options off the scale (don't know, prefer not to say) are left out of both distributions
    and the rest is renormalised. NaN if there are fewer than two places, or if either distribution has no mass on the scale. With the ranks
    0, 1, ..., k - 1 it is `emd_normalized` itself.
    """
    p, q = (sum_by_rank(rows, ranks) for rows in check_fractions(predicted, observed))
    result = np.full(p.shape[:-1], np.nan)
    usable = (p.sum(axis=-1) > 0) & (q.sum(axis=-1) > 0) & (p.shape[-1] > 1)
    if usable.any():
        result[usable] = emd_normalized(p[usable], q[usable])
    return result
