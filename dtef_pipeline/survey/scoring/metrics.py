"""How close a predicted distribution is to the observed one: one function per metric.

Every function takes `predicted` and `observed` of one shape, (rows, k) or a single (k,), with k >= 2 options in the order of
the scale, and returns (rows,) or a single float. Rows may be fractions, percentages or counts: each is divided by its total
first, as the DTEF methodology (section 4) says. Zeros are exact: nothing is smoothed.

Rejected with a ConfigError naming the row: another number of dimensions, two shapes, fewer than two options, a value that is
negative or not finite, a row whose total is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import numpy as np
import numpy.typing as npt

from dtef_pipeline.errors import ConfigError

Floats = npt.NDArray[np.float64]


def distributions(rows: npt.ArrayLike, name: str = "rows") -> Floats:
    """Rows divided by their totals: the one place where input is checked. Shape (rows, k) or (k,), unchanged."""
    array = np.asarray(rows, dtype=np.float64, order="F")  # one column per option: sums run down the rows
    if array.ndim not in (1, 2) or array.shape[-1] < 2:
        raise ConfigError(f"{name}: got shape {array.shape}; allowed: (rows, options) or (options,), with 2 options or more")
    with np.errstate(over="ignore", invalid="ignore"):  # checked below
        total = sum_of_options(array)
    fine = np.isfinite(total) & (total > 0) & (array.min(axis=-1) >= 0)
    if not fine.all():
        row = int(np.flatnonzero(~np.atleast_1d(fine))[0])
        raise ConfigError(
            f"{name}: row {row} is no distribution: got {np.atleast_2d(array)[row].tolist()}; "
            "allowed: finite values >= 0 with a total above 0"
        )
    return np.asarray(array / total[..., None])


def sum_of_options(array: Floats) -> Floats:
    """Sum over the options, from the first to the last: the same to the last bit for one row and for a million."""
    total = array[..., 0].copy()
    for option in range(1, array.shape[-1]):
        total += array[..., option]
    return total


def fractions(predicted: npt.ArrayLike, observed: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Both checked and as fractions, of one shape."""
    p, q = distributions(predicted, "predicted"), distributions(observed, "observed")
    if p.shape != q.shape:
        raise ConfigError(f"predicted and observed must have one shape; got {p.shape} and {q.shape}")
    return p, q


Formula = Callable[[Floats, Floats], Floats]
Metric = Callable[[npt.ArrayLike, npt.ArrayLike], Floats]
_FORMULAS: dict[str, Formula] = {}
BLOCK = 20_000
"""Rows measured at a time: what lies between input and result stays small enough for the processor's cache."""


def _metric(formula: Formula) -> Metric:
    """The metric of a formula over fractions: it checks its input and divides each row by its total first."""
    _FORMULAS[formula.__name__] = formula

    @wraps(formula)
    def metric(predicted: npt.ArrayLike, observed: npt.ArrayLike) -> Floats:
        return formula(*fractions(predicted, observed))

    return metric


def measure(predicted: npt.ArrayLike, observed: npt.ArrayLike) -> dict[str, Floats]:
    """Every metric by name, in the order of `tables.METRICS`: input checked once, each value (rows,) or a single float."""
    p, q = fractions(predicted, observed)
    if p.ndim == 1 or len(p) <= BLOCK:
        return {name: formula(p, q) for name, formula in _FORMULAS.items()}
    values = {name: np.empty(len(p)) for name in _FORMULAS}
    for start in range(0, len(p), BLOCK):
        rows = slice(start, start + BLOCK)
        for name, formula in _FORMULAS.items():
            values[name][rows] = formula(p[rows], q[rows])
    return values


def _relative_entropy_to_middle(p: Floats, q: Floats) -> Floats:
    """Kullback-Leibler divergence in bits of p from (p + q) / 2, with 0 log 0 = 0. As p > 0 makes p + q > 0, it is finite."""
    ratio = np.divide(2 * p, p + q, out=np.ones_like(p), where=p > 0)
    return sum_of_options(p * np.log2(ratio))


@_metric
def js(predicted: Floats, observed: Floats) -> Floats:
    """Jensen-Shannon similarity, 1 - sqrt(JSD) with base-2 logarithms. Range 0..1, 1 = identical, 0 = no common option.

    JSD = KL(P || M) / 2 + KL(Q || M) / 2 with M = (P + Q) / 2. Symmetric; the order of the options does not matter.
    Source: DTEF methodology 4.1. Identical rows give exactly 1.

    >>> float(js([40, 35, 15, 10], [40, 35, 15, 10]))
    1.0
    """
    divergence = (_relative_entropy_to_middle(predicted, observed) + _relative_entropy_to_middle(observed, predicted)) / 2
    return np.asarray(1 - np.sqrt(np.clip(divergence, 0, 1)))


@_metric
def cosine(predicted: Floats, observed: Floats) -> Floats:
    """Cosine of the angle between the two vectors of fractions. Range 0..1, 1 = same direction (so: identical).

    Symmetric; the order of the options does not matter. Source: DTEF methodology 4.2.
    """
    squares = sum_of_options(predicted * predicted) * sum_of_options(observed * observed)
    return np.asarray(np.clip(sum_of_options(predicted * observed) / np.sqrt(squares), 0, 1))


def _work(p: Floats, q: Floats) -> Floats:
    """Sum of the absolute differences of the cumulative distributions: 0..k-1, in steps of the scale."""
    return sum_of_options(np.abs(np.cumsum(p - q, axis=-1)[..., :-1]))


@_metric
def emd(predicted: Floats, observed: Floats) -> Floats:
    """Earth mover's similarity, max(0, 1 - sum |CDF difference|). Range 0..1, 1 = identical, 0 = a step or more on average.

    As published, over all options in their order, whatever the scale. Source: DTEF methodology 4.3.
    """
    return np.asarray(np.maximum(0, 1 - _work(predicted, observed)))


@_metric
def emd_normalized(predicted: Floats, observed: Floats) -> Floats:
    """Earth mover's similarity on the whole scale, 1 - sum |CDF difference| / (k - 1). Range 0..1, 1 = identical.

    0 only when all mass lies at opposite ends. It has a meaning on ordinal scales alone; reversing the scale changes nothing.
    """
    return np.asarray(np.clip(1 - _work(predicted, observed) / (predicted.shape[-1] - 1), 0, 1))


@_metric
def tv(predicted: Floats, observed: Floats) -> Floats:
    """Total variation distance, sum |P - Q| / 2: the share that would have to change its answer. Range 0..1, 0 = identical."""
    return np.asarray(np.clip(sum_of_options(np.abs(predicted - observed)) / 2, 0, 1))


@_metric
def mae(predicted: Floats, observed: Floats) -> Floats:
    """Mean absolute error of the fractions, sum |P - Q| / k: a distance. Range 0..2/k, 0 = identical."""
    return np.asarray(sum_of_options(np.abs(predicted - observed)) / predicted.shape[-1])


@_metric
def top_hit(predicted: Floats, observed: Floats) -> Floats:
    """Whether the predicted top option is an observed top option: 1 or 0, higher is better.

    Where several options share the predicted top, the share of them that are an observed top (the chance of a hit when one of
    them is drawn), so that a uniform prediction gets 1/k and not 1.
    """
    top = predicted == predicted.max(axis=-1, keepdims=True)
    hit = top & (observed == observed.max(axis=-1, keepdims=True))
    return np.asarray(sum_of_options(hit.astype(np.float64)) / sum_of_options(top.astype(np.float64)))


def emd_normalized_on_scale(predicted: npt.ArrayLike, observed: npt.ArrayLike, dont_know: npt.ArrayLike) -> Floats:
    """`emd_normalized` among those who answered on the scale, NaN where there is nothing to compare.

    `dont_know` is (k,) booleans, one for all rows. Options off the scale (don't know, prefer not to say) have no place in its
    order: they are left out of both distributions and the rest is renormalised. NaN when fewer than two options are on the
    scale, or when either distribution has no mass there. Without such options it is `emd_normalized` itself.
    """
    p, q = fractions(predicted, observed)
    on_scale = ~np.asarray(dont_know, dtype=bool)
    result = np.full(p.shape[:-1], np.nan)
    p, q = p[..., on_scale], q[..., on_scale]
    usable = (p.sum(axis=-1) > 0) & (q.sum(axis=-1) > 0) & (on_scale.sum() > 1)
    if usable.any():
        result[usable] = emd_normalized(p[usable], q[usable])
    return result
