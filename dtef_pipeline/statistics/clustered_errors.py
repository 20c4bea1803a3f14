"""Errors of scores from comparisons that depend on each other through who made them and through their item.

The covariance is the sandwich of whole clusters (Huber 1967; Liang & Zeger 1986), by clusters, by items, and by both (Cameron, Gelbach &
Miller 2011): V = V_cluster + V_item - V_(cluster and item). Each is multiplied by G* / (G* - 1), G* the effective number of clusters
(Carter, Schnepel & Steigerwald 2017), which is unbiased for a mean of independent values. As V need not be positive, a variance is the
largest of V, V_cluster and V_item (MacKinnon, Nielsen & Webb 2024, arXiv:2406.08880). In an interval t has the degrees of freedom of that
one: G* of its ways, the smaller of two, less 1. Tests of pairs take the smaller of both ways: Holm's method reads the tails of t, where a
variance that is small by chance misleads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from dtef_pipeline.statistics.bradley_terry import PairedOutcomes, StrengthFit
from dtef_pipeline.statistics.cluster_robust import CONFIDENCE, MIN_CLUSTERS, count_effective_clusters
from dtef_pipeline.statistics.multiplicity import holm

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

FEWEST_VOTES = 10
"""Comparisons of a player of which an interval is made."""
_NOTHING_TO_VARY = 1e-9
"""Relative to the error as if every comparison were independent: what rounding makes of scores that leave nothing to vary."""


@dataclass(frozen=True, slots=True)
class ClusteredErrors:
    """Errors of a fit's parameters: betas, coefficients, ln(nu)."""

    covariances: Floats
    """(1 or 3, parameters, parameters): of each clustering, and of both together."""
    effective: Floats
    """(1 or 3, parameters) effective number of clusters of the rows that each parameter is about; of both ways the smaller one."""
    votes: Floats
    """(players,) comparisons that each player was in."""


class Bounds(NamedTuple):
    """Standard errors and interval ends of a fit's parameters, (parameters,) each; NaN if there is none."""

    se: Floats
    low: Floats
    high: Floats


class PairTests(NamedTuple):
    """Tests of every two players of one component that both have an interval; arrays are (pairs,)."""

    better: Codes
    """The player with the higher beta."""
    worse: Codes
    difference: Floats
    """Betas, better less worse, in logits."""
    se: Floats
    p: Floats
    """Two-sided, of t = difference / se with the fewest effective clusters of the two players and ways; NaN: no error is left."""
    p_adjusted: Floats
    """Adjusted for all pairs of the component."""


def estimate_errors(fit: StrengthFit) -> ClusteredErrors:
    """Compute the two-way clustered sandwich of a fit and its effective numbers of clusters; one-way if `list_dependences` returns one way.

    A parameter's effective number is (sum g)^2 / sum g^2 over clusters, g the information of a cluster's rows about the parameter; it is
    the number of clusters if they are equally large. It is G*(0) of Carter, Schnepel & Steigerwald (2017) with only each parameter's rows.
    """
    rows, dependences = fit.rows, list_dependences(fit.rows)
    scores, information = _derivatives(fit)
    parts = [_cluster_one_way(fit, scores, information, dependence) for dependence in dependences or (None,)]
    covariances, effective = map(list, zip(*parts, strict=True))
    if len(dependences) == 2:
        joint = np.unique(np.stack(dependences), axis=1, return_inverse=True)[1].ravel()
        covariances.append(sum(covariances) - _cluster_one_way(fit, scores, information, joint)[0])
        effective.append(np.minimum(*effective))
    votes = np.bincount(np.concatenate([rows.left, rows.right]), weights=np.tile(rows.times, 2), minlength=len(fit.beta))
    return ClusteredErrors(np.stack(covariances), np.stack(effective), votes.astype(np.float64))


def list_dependences(rows: PairedOutcomes) -> tuple[Codes, ...]:
    """Return the clusters and items of the rows, if known: rows that share neither are independent.

    Items count if rows are worth at least MIN_CLUSTERS of them; intervals with fewer hold only for these items.
    """
    dependences = () if rows.cluster is None else (rows.cluster,)
    if rows.item is None:
        return dependences
    sizes = np.bincount(rows.item, weights=rows.weight * rows.times).astype(np.float64)
    n_effective = np.nan_to_num(count_effective_clusters(sizes[:, None])[0])
    return (*dependences, rows.item) if round(float(n_effective)) >= MIN_CLUSTERS else dependences


def compute_bounds(fit: StrengthFit, errors: ClusteredErrors) -> Bounds:
    """Return estimates -+ t times their errors at 95 %; NaN with too few effective clusters (rounded) or comparisons of a player.

    A player compared by few people is fitted to their tastes exactly, so that the sandwich would see no spread between them.
    """
    variances = np.diagonal(errors.covariances, axis1=1, axis2=2)
    largest = variances.argmax(axis=0)[None]
    variance, effective = (np.take_along_axis(values, largest, axis=0)[0] for values in (variances, errors.effective))
    se = np.sqrt(np.maximum(variance, 0.0))
    mask = np.round(errors.effective[-1]) >= MIN_CLUSTERS
    mask[: len(fit.beta)] &= errors.votes >= FEWEST_VOTES
    mask &= se > _NOTHING_TO_VARY * np.nan_to_num(fit.model_errors)
    se = np.where(mask, se, np.nan)
    half = stdtrit(np.maximum(effective - 1, 1), (1 + CONFIDENCE) / 2) * se
    return Bounds(se, fit.estimates - half, fit.estimates + half)


def pair_tests(fit: StrengthFit, errors: ClusteredErrors) -> PairTests:
    """Test the difference of every two betas, adjusted by Holm's method over the pairs of each component."""
    able = np.flatnonzero(np.isfinite(compute_bounds(fit, errors).se[: len(fit.beta)]))
    first, second = (able[places] for places in np.triu_indices(len(able), 1))
    alike = fit.component[first] == fit.component[second]
    first, second = first[alike], second[alike]
    swap = fit.beta[first] < fit.beta[second]
    better, worse = np.where(swap, second, first), np.where(swap, first, second)
    difference = fit.beta[better] - fit.beta[worse]
    se = _errors_of_differences(errors.covariances, better, worse)
    floor = _NOTHING_TO_VARY * _errors_of_differences(fit.inverse[None], better, worse)
    t = np.divide(difference, se, out=np.full(len(se), np.nan), where=se > floor)
    effective = np.minimum(errors.effective[-1, better], errors.effective[-1, worse])
    p = 2 * stdtr(np.maximum(effective - 1, 1), -np.abs(t))
    adjusted = np.full(len(p), np.nan)
    for number in np.unique(fit.component[better]):
        mask = fit.component[better] == number
        adjusted[mask] = holm(p[mask])
    return PairTests(better, worse, difference, se, p, adjusted)


def _errors_of_differences(covariances: Floats, better: Codes, worse: Codes) -> Floats:
    variance = np.diagonal(covariances, axis1=1, axis2=2)
    variances = variance[:, better] + variance[:, worse] - 2 * covariances[:, better, worse]
    return np.asarray(np.sqrt(np.maximum(variances.max(axis=0), 0.0)))


def _cluster_one_way(fit: StrengthFit, scores: Any, information: Any, cluster: Codes | None) -> tuple[Floats, Floats]:
    """Return (parameters, parameters) covariance and (parameters,) effective numbers of whole clusters; None: each comparison is one."""
    from scipy.sparse import csr_array

    copies = fit.rows.times
    if cluster is not None:
        totals = csr_array((copies, (cluster, np.arange(len(cluster)))), shape=(cluster.max(initial=-1) + 1, len(cluster)))
        scores, information, copies = totals @ scores, totals @ information, np.ones(totals.shape[0])
    middle = (scores.T @ scores.multiply(copies[:, None])).toarray()
    sums, squares = copies @ information, copies @ information.multiply(information)
    effective = np.divide(sums**2, squares, out=np.zeros(len(sums)), where=squares > 0)
    scale = np.sqrt(np.divide(effective, effective - 1, out=np.zeros(len(sums)), where=effective > 1))
    return fit.inverse @ middle @ fit.inverse * np.outer(scale, scale), effective


def _derivatives(fit: StrengthFit) -> tuple[Any, Any]:
    """Return sparse (rows, parameters) derivatives of the log-likelihood of one comparison of each row, and its information."""
    from scipy.sparse import csr_array

    rows, terms, n = fit.rows, fit.terms, len(fit.rows.left)
    covariates = [(np.full(n, column), slope) for column, slope in enumerate(rows.covariates.T, len(fit.beta))]
    slopes = [(rows.left, np.ones(n)), (rows.right, -np.ones(n)), *covariates]
    columns = [(column, terms.by_difference * slope, terms.information * slope**2) for column, slope in slopes]
    if len(fit.inverse) > len(fit.beta) + rows.covariates.shape[1]:
        columns.append((np.full(n, len(fit.inverse) - 1), terms.by_theta, terms.of_theta))
    places = np.tile(np.arange(n), len(columns)), np.concatenate([column for column, *_ in columns])
    scores = np.concatenate([rows.weight * score for _, score, _ in columns])
    information = np.concatenate([rows.weight**2 * info for *_, info in columns])
    shape = (n, len(fit.inverse))
    return csr_array((scores, places), shape=shape), csr_array((information, places), shape=shape)
