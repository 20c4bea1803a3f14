"""Cluster-robust estimates of means and ratios.

A cluster is the unit of independence, such as linked items with all their scores; a column is one number, such as a model's mean score.

Source: the jackknife of whole clusters (CV3: Bell & McCaffrey 2002; MacKinnon, Nielsen & Webb 2023), with Bell and McCaffrey's degrees of
freedom.

Effects of rows and cells are by least squares of the two-way model without interaction (Searle 1987, Linear Models for
Unbalanced Data, ch. 4): rows scored on different cells are compared through cells that they share with others.

If clusters are observed separately, their noise averages out. If the same people answer everything, a part does not: people who happen to
answer alike in one cluster do so in others. The size of that part cannot be estimated from sums of answers, only from the answers of each
person. So the correlation is an assumed constant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from dtef_pipeline.text.number_words import format_count

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

CONFIDENCE = 0.95
MIN_CLUSTERS = 5
"""Clusters that an interval needs: of fewer the spread between them cannot be estimated."""
_CLUSTERS_AT_ONCE = 1_000_000
"""Of all groups together: memory stays bounded."""
_ROUNDED_TO_ZERO = 1e-12
"""Relative to the numbers behind an estimate: a standard error below it is what rounding makes of equal clusters."""


class Estimates(NamedTuple):
    """Estimates and their uncertainty, (columns,) each."""

    value: Floats
    """NaN where the denominator is 0."""
    se: Floats
    """Standard error, 0 or more, in units of the value; NaN with fewer than 2 clusters."""
    degrees: Floats
    """Degrees of freedom of t, 1 or more."""
    n_clusters: Codes
    """Clusters with anything in the denominator."""

    def interval(self, confidence: float = CONFIDENCE) -> tuple[Floats, Floats]:
        """Return low and high, each (columns,): value -+ t se; NaN with fewer than MIN_CLUSTERS clusters."""
        reach = np.where(self.n_clusters >= MIN_CLUSTERS, stdtrit(self.degrees, (1 + confidence) / 2) * self.se, np.nan)
        return self.value - reach, self.value + reach

    def p(self) -> Floats:
        """Return (columns,) two-sided p of the value being 0, 0-1; 1 if it is 0, NaN without an interval.

        If all clusters have the same nonzero number, t is infinite; p is then that of the sign test, 2 / 2^clusters.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(self.value == 0, 0, np.abs(self.value) / self.se)
        p = np.where(np.isinf(t), 2 * 0.5**self.n_clusters, 2 * stdtr(self.degrees, -t))
        return np.where(self.n_clusters >= MIN_CLUSTERS, p, np.nan)


def estimate_ratios(
    numerators: Floats, denominators: Floats, *, sizes: Floats | None = None, shared: Floats | float = 0.0
) -> Estimates:
    """Estimate sums of `numerators` over sums of `denominators`, both (clusters, columns). For a mean the denominators are counts.

    With d a cluster's numerator less its part by the ratio, over the total of the denominators, w its part of the `sizes` (clusters,
    columns; default: the denominators) and C clusters, the variance is (C - 1) / C sum (d / (1 - w))^2 + `shared`: how far the number moves
    when each cluster is left out, plus the variance (columns,) that all clusters share, which does not appear in their differences. For
    equal sizes this is the variance of a mean of C clusters.
    """
    top, bottom = np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)
    weights = bottom if sizes is None else np.asarray(sizes, dtype=np.float64)
    mask = weights != 0
    n_clusters = mask.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = bottom.sum(axis=0)
        value = np.where(total != 0, top.sum(axis=0) / total, np.nan)
        influence = (top - value * bottom) / total
        left_out = np.where(mask, influence / (1 - weights / weights.sum(axis=0)), 0)
        variance = (1 - 1 / n_clusters) * (left_out**2).sum(axis=0)
        se = np.sqrt(variance + shared)
    floor = _ROUNDED_TO_ZERO * np.abs(top).sum(axis=0) / np.maximum(np.abs(total), np.finfo(np.float64).tiny)
    se = np.where(n_clusters > 1, np.where(se > floor, se, 0.0 * se), np.nan)
    return Estimates(value, se, degrees_of_freedom(weights), n_clusters)


def estimate_groups(numerators: Floats, denominators: Floats, group: Codes, groups: int) -> Estimates:
    """Apply `estimate_ratios` to several groups of clusters: columns (groups,) from rows (clusters,), each in the group of its code."""
    n_clusters = np.bincount(group, minlength=groups)
    estimates = Estimates(np.full(groups, np.nan), np.full(groups, np.nan), np.ones(groups), n_clusters.copy())
    order, starts = np.argsort(group, kind="stable"), np.cumsum(n_clusters) - n_clusters
    for count in np.unique(n_clusters[n_clusters > 0]).tolist():
        every = np.flatnonzero(n_clusters == count)
        for batch in np.array_split(every, -(-len(every) * count // _CLUSTERS_AT_ONCE)):
            rows = order[starts[batch] + np.arange(count)[:, None]]
            for target, part in zip(estimates, estimate_ratios(numerators[rows], denominators[rows]), strict=True):
                target[batch] = part
    return estimates


def degrees_of_freedom(sizes: Floats) -> Floats:
    """Return the degrees of freedom (columns,), 1 or more, of the jackknife variance of a mean over clusters.

    `sizes` (clusters, columns): 0 or more each. The degrees are 2 E^2 / Var of that variance if parts of a cluster are independent (Bell &
    McCaffrey 2002; Imbens & Kolesar 2016): with w a cluster's part of the sizes and b = w / (1 - w), (sum b)^2 / (sum b^2 - sum b^4 + (sum
    b^2)^2). C clusters of one size have C - 1.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = sizes / sizes.sum(axis=0)
        pulls = parts / (1 - parts)
        squares = pulls**2
        degrees = pulls.sum(axis=0) ** 2 / (squares.sum(axis=0) - (squares**2).sum(axis=0) + squares.sum(axis=0) ** 2)
    return np.asarray(np.where(degrees > 1, degrees, 1.0))


def count_effective_clusters(sizes: Floats) -> Floats:
    """Return (columns,) the number of equal clusters worth as much as clusters of `sizes` (clusters, columns): (sum n)^2 / sum n^2.

    It is the number of clusters if all have one size, and smaller if a few large ones dominate the sum (Kish 1965). NaN without any.
    """
    largest = np.maximum(np.abs(sizes).max(axis=0, initial=0), np.finfo(np.float64).tiny)
    parts = sizes / largest
    squares = (parts**2).sum(axis=0)
    return np.asarray(np.divide(parts.sum(axis=0) ** 2, squares, out=np.full(len(squares), np.nan), where=squares > 0))


def explain_missing(n_clusters: int, noun: str = "cluster", label: str = "interval") -> str:
    """Explain why there is no interval (or `label`), with clusters named by `noun`; empty if there is one."""
    if n_clusters >= MIN_CLUSTERS:
        return ""
    return f"no {label}: {format_count(n_clusters, noun)}, at least {MIN_CLUSTERS} are needed"


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

    row_effects, cell_effects = np.full(rows, np.nan), np.full(cells, np.nan)
    component = np.full(rows, -1)
    shared = np.bincount(cell, minlength=cells)[cell] > 1
    row, cell, score = row[shared], cell[shared], score[shared]
    if not len(row):
        return Effects(row_effects, cell_effects, component)
    present, position = np.unique(row, return_inverse=True)
    counts = np.bincount(cell, minlength=cells).astype(np.float64)
    means = np.divide(np.bincount(cell, score, cells), counts, out=np.zeros(cells), where=counts > 0)
    incidence = coo_array((np.ones(len(position)), (position, cell)), shape=(len(present), cells)).tocsr()
    together = incidence @ diags_array(1 / np.maximum(counts, 1)) @ incidence.T
    laplacian = diags_array(np.bincount(position).astype(np.float64)) - together
    _, label = connected_components(laplacian, directed=False)
    pull = np.bincount(position, score - means[cell])
    free = np.ones(len(present), dtype=bool)
    free[np.unique(label, return_index=True)[1]] = False
    effect = np.zeros(len(present))
    if free.any():
        effect[free] = spsolve(laplacian.tocsc()[free][:, free], pull[free])
    row_effects[present], component[present] = effect, label
    residuals = np.bincount(cell, score - effect[position], cells)
    return Effects(row_effects, np.where(counts > 0, residuals / np.maximum(counts, 1), np.nan), component)


Correlation = Floats | float

CORRELATION = 0.02
"""Of the noise of two items. Noise of the second order (a sample scatters about its truth, whatever the direction) correlates as the
square of Cramer's V between two answers (mean V of .13: mean square of .02); that of the first order with either sign."""

OF_OBSERVED = 0.06
"""The same where a prediction is made of observed answers, such as the mean of other groups. Groups differ from each other in the ways in which
people do. So what such a prediction gets wrong about a group, and what chance does to a sample of it, agree in every item or in none."""


def estimate_shared_variance(
    noise: npt.NDArray[np.floating], column: Codes, cluster: Codes, sample: Codes, columns: int, correlation: Correlation
) -> Floats:
    """Return what the noise of the same people adds to the variance of sums over clusters, (columns,).

    `noise` (parts, replicates): centred deviations of what each part adds to its `column`. A part is one item of a `cluster` as observed in
    one `sample` of people (parts, each). With t the standard deviation of a part, the sum over every two parts of one sample in different
    clusters: 2 r t t', r the `correlation` of two items, per column (columns,) or for all. (Two parts of one cluster are left out: what
    they share is in the differences between clusters.) Samples of different people are independent. If each person's answers are known,
    drawing people again gives this; nothing else need change.
    """
    spread = np.sqrt(np.einsum("pr,pr->p", noise, noise, dtype=np.float64) / noise.shape[1])
    shape = (columns, int(sample.max(initial=0)) + 1, int(cluster.max(initial=0)) + 1)
    place = (column * shape[1] + sample) * shape[2] + cluster
    sums = np.bincount(place, spread, minlength=shape[0] * shape[1] * shape[2]).astype(np.float64).reshape(shape)
    return np.asarray(correlation * compute_common_variance(sums))


def compute_common_variance(spreads: Floats) -> Floats:
    """Return `estimate_shared_variance` for a correlation of 1, (columns,).

    `spreads` (columns, samples, clusters): summed standard deviations of the parts of each cluster.
    """
    pairs = spreads.sum(axis=2) ** 2 - (spreads**2).sum(axis=2)
    return np.asarray(np.maximum(pairs, 0).sum(axis=1))
