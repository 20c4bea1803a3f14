"""Intervals of ratios whose numerators are skewed, as squared errors are: the bootstrap-t of whole clusters.

A few clusters make most of such a sum. Where they were missed by chance, both the ratio and its spread come out too small, and the percentiles
of the resamples, which repeat what was seen, are too low. Here each resample says how many of its own standard errors it is off.

Source: bootstrap-t (Efron 1982; Hall 1992, ch. 3), on a scale that steadies the variance (Tibshirani 1988).
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from dtef_pipeline.statistics.resampling import (
    CONFIDENCE,
    MIN_CLUSTERS,
    RESAMPLES,
    SEED,
    Floats,
    Resampling,
    between,
    product,
    tempered,
)
from dtef_pipeline.statistics.shared_noise import ClusterNoise, NoiseVariances

_COLUMNS_A_BLOCK = 500
"""Columns resampled at a time, to bound memory."""
_FAR = 1e6
"""Standard errors that a resample is off which consists of one cluster alone, and so has none."""
_STRAIGHT = 0.5
"""Standard errors next to 0 in which the scale is straight; more where the noise alone says more."""
_ROUNDED_TO_ZERO = 1e-12
"""Relative to the ratio: a standard error below it is what rounding makes of equal clusters."""


def studentised_interval(
    numerators: Floats,
    denominators: Floats,
    noise: ClusterNoise | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    confidence: float = CONFIDENCE,
) -> tuple[Floats, Floats]:
    """Low and high, each (columns,), of sum(numerators) / sum(denominators), both (clusters, columns); `noise` as of
    `Resampling.ratios`.

    A column is resampled from the clusters that it has (denominator not 0). With se its standard error (`between`, `tempered`, and the noise
    that all clusters share), g(x) = asinh(x / c), c the standard error by noise alone or se / 2 if that is more, and R*, se* of a resample:
    t* = (g(R*) - g(R)) / (g'(R*) se*), and the ends are g^-1(g(R) - t g'(R) se) with t the upper and the lower percentile of t*. se* is by
    the clusters alone, C / (C - 1) sum d^2. g is the logarithm of a ratio well above 0, and straight near 0, where noise is all (a ratio
    that is not above 0 has no logarithm, but an interval). The percentiles are those of the normal quantile times
    sqrt(C / (C - 1)), because C clusters drawn anew spread by (C - 1) / C less than they do. NaN where C < MIN_CLUSTERS.
    """
    columns = denominators.shape[1]
    low, high = np.full(columns, np.nan), np.full(columns, np.nan)
    here = denominators != 0
    n_clusters = here.sum(axis=0)
    nothing = np.zeros(columns)
    with np.errstate(divide="ignore", invalid="ignore"):
        known = NoiseVariances(nothing, nothing) if noise is None else noise.over(denominators.sum(axis=0))
    for count in np.unique(n_clusters[n_clusters >= MIN_CLUSTERS]).tolist():
        weights = Resampling(count, resamples=resamples, seed=seed).weights
        places = np.flatnonzero(n_clusters == count)
        for block in np.array_split(places, -(-len(places) // _COLUMNS_A_BLOCK)):
            top, bottom = (_present(sums[:, block], here[:, block], count) for sums in (numerators, denominators))
            low[block], high[block] = _ends(weights, top, bottom, known.of(block), confidence)
    return low, high


def _present(sums: Floats, here: np.ndarray, count: int) -> Floats:
    """(count, columns): of each column the clusters it has, in their order."""
    return np.asarray(sums.T[here.T].reshape(-1, count).T, dtype=np.float64)


def _ends(weights: Floats, top: Floats, bottom: Floats, noise: NoiseVariances, confidence: float) -> tuple[Floats, Floats]:
    """Low and high of columns that have every cluster; `noise`: variances of the ratio by noise alone."""
    count, total = len(top), bottom.sum(axis=0)
    value = top.sum(axis=0) / total
    residual = top - value * bottom
    found = between(residual / total, bottom)
    more = found.effective / (found.effective - 1)
    se = np.sqrt(tempered(found.variance, noise.apart, count) + noise.shared)
    exact = se <= _ROUNDED_TO_ZERO * np.abs(value)
    se = np.where(exact, 1.0, se)
    drawn = product(weights, bottom)
    moved = product(weights, residual) / drawn
    squares = product(weights, residual**2) - 2 * moved * product(weights, residual * bottom)
    squares += moved**2 * product(weights, bottom**2)
    own = np.sqrt(np.maximum(squares * more, 0)) / drawn
    scale = np.maximum(se * _STRAIGHT, np.sqrt(noise.apart))
    scaled, origin = (value + moved) / scale, np.arcsinh(value / scale)
    with np.errstate(divide="ignore", invalid="ignore"):
        off = (np.arcsinh(scaled) - origin) * np.hypot(scaled, 1) * scale / own
    off = np.clip(np.where(own > _ROUNDED_TO_ZERO * np.abs(value), off, np.sign(moved) * _FAR), -_FAR, _FAR)
    tail = ndtr(-ndtri((1 + confidence) / 2) * np.sqrt(more))
    below, above = np.array([np.quantile(part, (p, 1 - p)) for part, p in zip(off.T, tail, strict=True)]).T
    below, above = np.minimum(below, 0), np.maximum(above, 0)
    step = se / np.hypot(value, scale)
    with np.errstate(over="ignore"):  # no end: as far as the few clusters go
        low, high = (scale * np.sinh(origin - t * step) for t in (above, below))
    return np.where(exact, value, low), np.where(exact, value, high)
