"""Agreement of several judges about the same units: Krippendorff's alpha of numbers, with an interval by whole clusters of units.

A **unit** is what several judges rated, a **cluster** is a set of dependent units.

Source: Krippendorff (2004), Content Analysis, 11.3, with the squared difference of two values (interval metric); the jackknife of whole
clusters (Miller 1974) on the scale log(1 - alpha), on which an alpha near 1 is less skewed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.cluster_robust import CONFIDENCE, MIN_CLUSTERS, degrees_of_freedom, explain_missing
from dtef_pipeline.text.number_words import format_count

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

RELIABLE, TENTATIVE = 0.8, 0.667
"""From the first on conclusions may rest on the judges, from the second on tentative ones (Krippendorff 2004, 11.4)."""
NO_PAIRS = "no unit has values of two judges"
DIFFER_IN_ONE = "no interval: judges differ in at most one {noun}, which is too few to estimate how often they differ"
_DISTINCT_AT_MOST = 200
"""Distinct values above which a table of their counts would be too large; a scale of classes has a few."""


def grade_alpha(alpha: float) -> str:
    """Return the grade of an alpha: `reliable`, `tentative`, `unreliable`, or empty for NaN."""
    if np.isnan(alpha):
        return ""
    return "reliable" if alpha >= RELIABLE else "tentative" if alpha >= TENTATIVE else "unreliable"


def agreement(
    values: npt.ArrayLike,
    units: npt.ArrayLike,
    clusters: npt.ArrayLike,
    groups: npt.ArrayLike = 0,
    *,
    noun: str = "cluster",
) -> pd.DataFrame:
    """Return one row per group, in the order of the groups' codes; one row in all without `groups`.

    `values` (n,): numbers, NaN if a judge gave none. `units`, `clusters`, `groups` (n,): codes, whole numbers from 0; a unit belongs to one
    cluster and one group. Columns: `group`, `alpha` (at most 1; NaN without pairs; 1 if all values are equal), `low` and `high` (95 %, NaN
    below 5 clusters or if values differ in at most one), `n_units` and `n_values` (of units with two values or more), `n_clusters`,
    `reason` (why there is no alpha or interval; `noun` names a cluster).

    With m a unit's values, n all values in such units, d the difference of two: alpha = 1 - (n - 1) sum over units of [sum over pairs of
    d^2 / (m - 1)] / [sum over all pairs of d^2]. Both sums are stored by cluster, the second as counts of each value, so that a cluster is
    left out by subtraction. With s the jackknife's standard error of log(1 - alpha), 1 - alpha has the interval (1 - alpha) exp(-+ t s), t
    with the `degrees_of_freedom` of such clusters. Raises ConfigError for more than 200 distinct values.
    """
    numbers = np.asarray(values, dtype=np.float64)
    unit, cluster, group = (
        np.broadcast_to(np.asarray(part, dtype=np.int64), len(numbers)) for part in (units, clusters, groups)
    )
    names = np.unique(group)
    is_known = np.isfinite(numbers)
    table = _build_units(numbers[is_known], unit[is_known], cluster[is_known], group[is_known])
    rows = [_compute_group_agreement(int(name), table, noun) for name in names]
    columns = ["group", "alpha", "low", "high", "n_units", "n_values", "n_clusters", "reason"]
    return pd.DataFrame(rows, columns=columns)


class _Units:
    """Units with two values or more: counts of each value, the sum of squared differences of their pairs / (m - 1), cluster and group."""

    def __init__(self, scale: Floats, counts: Floats, cluster: Codes, group: Codes) -> None:
        self.squares = (scale[:, None] - scale[None, :]) ** 2
        self.counts, self.cluster, self.group = counts, cluster, group
        sizes = counts.sum(axis=1)
        self.disagreement = ((counts @ self.squares) * counts).sum(axis=1) / 2 / np.maximum(sizes - 1, 1)


def _build_units(values: Floats, unit: Codes, cluster: Codes, group: Codes) -> _Units:
    scale, place = np.unique(values, return_inverse=True)
    if len(scale) > _DISTINCT_AT_MOST:
        raise ConfigError(
            f"agreement: got {format_count(len(scale), 'distinct value')}; allowed: {_DISTINCT_AT_MOST} at most, such as the numbers of classes"
        )
    uniques, first, code = np.unique(unit, return_index=True, return_inverse=True)
    flat = np.bincount(code * max(len(scale), 1) + place, minlength=len(uniques) * len(scale))
    counts = flat.reshape(len(uniques), len(scale)).astype(np.float64)
    several = counts.sum(axis=1) > 1
    return _Units(scale, counts[several], cluster[first][several], group[first][several])


def _compute_group_agreement(name: int, table: _Units, noun: str) -> dict[str, object]:
    mask = table.group == name
    row: dict[str, object] = {"group": name, "alpha": np.nan, "low": np.nan, "high": np.nan}
    counts, codes = table.counts[mask], pd.factorize(table.cluster[mask], sort=True)[0]
    n_clusters = int(codes.max(initial=-1)) + 1
    row |= {"n_units": len(counts), "n_values": int(counts.sum()), "n_clusters": n_clusters, "reason": NO_PAIRS}
    if not n_clusters:
        return row
    by_cluster = np.zeros((n_clusters, counts.shape[1] + 1))
    np.add.at(by_cluster, codes, np.column_stack([table.disagreement[mask], counts]))
    value = float(_alphas(by_cluster.sum(axis=0)[None], table.squares)[0])
    row |= {"alpha": value, "reason": explain_missing(n_clusters, noun)}
    if n_clusters >= MIN_CLUSTERS:
        low, high = _compute_alpha_interval(value, by_cluster, table.squares)
        row |= {"low": low, "high": high, "reason": DIFFER_IN_ONE.format(noun=noun) if np.isnan(low) else ""}
    return row


def _alphas(sums: Floats, squares: Floats) -> Floats:
    """Return (rows,) alphas from (rows, 1 + values): the disagreement within units, and the count of each value."""
    within, counts = sums[:, 0], sums[:, 1:]
    total = counts.sum(axis=1)
    expected = ((counts @ squares) * counts).sum(axis=1) / 2
    ratio = np.divide((total - 1) * within, expected, out=np.zeros(len(sums)), where=expected > 0)
    return np.asarray(np.where(total > 0, 1 - ratio, np.nan))


def _compute_alpha_interval(value: float, by_cluster: Floats, squares: Floats) -> tuple[float, float]:
    n = len(by_cluster)
    with np.errstate(divide="ignore", invalid="ignore"):
        jackknife = np.log(1 - _alphas(by_cluster.sum(axis=0) - by_cluster, squares))
        se = np.sqrt((n - 1) / n * ((jackknife - jackknife.mean()) ** 2).sum())
    degrees = degrees_of_freedom(by_cluster[:, 1:].sum(axis=1)[:, None])[0]
    factor = np.exp(stdtrit(degrees, (1 + CONFIDENCE) / 2) * se)
    return float(1 - (1 - value) * factor), float(1 - (1 - value) / factor)
