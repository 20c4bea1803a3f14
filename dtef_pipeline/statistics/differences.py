"""Means of paired differences with intervals, tests and verdicts.

A **column** is one comparison; its pairs belong to clusters, the units of intervals and tests, because pairs of one cluster fail together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.statistics.cluster_robust import estimate_ratios, explain_missing
from dtef_pipeline.statistics.multiplicity import SIGNIFICANCE

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

MARGIN = 0.01
"""Differences of a score smaller than this are taken for none, unless one says otherwise."""
NARROW = 0.90
"""Confidence of the interval that is to lie within the margin: two one-sided tests at 5 % each (Schuirmann 1987)."""
_NO_DIFFERENCE = 1e-12
"""Relative to the sums: what remains of equal scores that were added in different orders."""


def places(frame: pd.DataFrame, names: list[str]) -> tuple[Codes, pd.DataFrame]:
    """Return the position of each row's `names` among the distinct ones, and the distinct ones as sorted text, independent of row order."""
    code = frame.groupby(names, observed=True, sort=False).ngroup().to_numpy()
    first = np.unique(code, return_index=True)[1]
    labels = frame[names].iloc[first].astype(str).reset_index(drop=True)
    order = labels.sort_values(names).index.to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[code], labels.iloc[order].reset_index(drop=True)


def sum_by_cluster(clusters: Codes, columns: Codes, values: npt.ArrayLike, shape: tuple[int, int]) -> Floats:
    """Sum `values` (pairs,) by cluster and column, each given by position: `shape` (clusters, columns)."""
    weights = np.asarray(values, dtype=np.float64)
    flat = np.bincount(clusters * shape[1] + columns, weights=weights, minlength=shape[0] * shape[1]).astype(np.float64)
    return flat.reshape(shape)


def remove_rounding(sums: Floats, magnitudes: Floats) -> Floats:
    """Return sums of differences, set to 0 if they are within rounding of sums of size `magnitudes`: equal scores must be exactly equal."""
    return np.where(np.abs(sums) <= _NO_DIFFERENCE * magnitudes, 0.0, sums)


def compute_paired_statistics(
    sums: Floats, counts: Floats, *, shared: Floats | float = 0.0, noun: str = "cluster"
) -> pd.DataFrame:
    """Return one row per column of `sums` of differences over a cluster's pairs and `counts` of pairs, both (clusters, columns).

    Columns: `n_pairs`, `n_clusters`, `difference` (mean over the pairs), `low` and `high` (95 %), `narrow_low` and `narrow_high` (90 %),
    `effect_size` (difference over the standard deviation of the clusters' mean differences), `p` (two-sided t test, consistent with the
    interval), `note`; no interval and no p with fewer than 5 clusters. `shared` (columns,): variance that all clusters share (see
    `estimate_ratios`); `noun`: name of a cluster in notes.
    """
    estimates = estimate_ratios(sums, counts, shared=shared)
    (low, high), (narrow_low, narrow_high) = estimates.interval(), estimates.interval(NARROW)
    numbers = {
        "n_pairs": counts.sum(axis=0).astype(np.int64),
        "n_clusters": estimates.n_clusters,
        "difference": estimates.value,
        "low": low,
        "high": high,
        "narrow_low": narrow_low,
        "narrow_high": narrow_high,
        "effect_size": _divide_or_nan(estimates.value, _deviation(_divide_or_nan(sums, counts))),
        "p": estimates.p(),
    }
    notes = [explain_missing(int(n), noun, "interval and no test") for n in estimates.n_clusters]
    return pd.DataFrame({**numbers, "note": pd.Series(notes, dtype=object)})


def verdicts(statistics: pd.DataFrame, words: tuple[str, str, str, str], margin: float) -> pd.Series:
    """Return each row's verdict from `difference`, `p_adjusted` and the 90 % interval, in `words` for higher, lower, equivalent, undecided.

    Higher or lower: p_adjusted < .05. Else equivalent: the 90 % interval is within +-`margin`.
    """
    significant = statistics["p_adjusted"] < SIGNIFICANCE
    is_equivalent = (statistics["narrow_low"] > -margin) & (statistics["narrow_high"] < margin)
    cases = [significant & (statistics["difference"] > 0), significant & (statistics["difference"] < 0), is_equivalent]
    return pd.Series(np.select(cases, words[:3], words[3]), index=statistics.index, dtype=object)


def _divide_or_nan(numerators: Floats, denominators: Floats) -> Floats:
    """Divide; NaN if the denominator is 0 or unknown."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(denominators > 0, numerators / denominators, np.nan))


def _deviation(values: Floats) -> Floats:
    """Return the standard deviation of each column's known values, n - 1 in the denominator; NaN with fewer than two."""
    mask = ~np.isnan(values)
    n = mask.sum(axis=0)
    mean = _divide_or_nan(np.nansum(values, axis=0), n.astype(np.float64))
    deviations = np.where(mask, values - mean, 0.0)
    largest = np.where(mask, np.abs(values), 0.0).max(axis=0, initial=0.0)
    squares = (remove_rounding(deviations, largest) ** 2).sum(axis=0)
    variance = _divide_or_nan(squares, np.maximum(n - 1, 0).astype(np.float64))
    return np.asarray(np.sqrt(variance))
