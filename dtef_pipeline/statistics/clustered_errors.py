"""Errors of scores from comparisons that hang together: who compares several pairs brings a taste along.

General: it knows players and clusters by number, nothing of any family. The covariance is the sandwich of whole clusters (Huber 1967; Liang &
Zeger 1986): inverse information, sum over clusters of the outer products of their scores, inverse information, times R / (R - 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from dtef_pipeline.statistics.bradley_terry import StrengthFit
from dtef_pipeline.statistics.multiplicity import holm
from dtef_pipeline.statistics.resampling import CONFIDENCE, MIN_CLUSTERS

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

FEWEST_VOTES = 10
"""Comparisons of a player of which an interval is made."""
_NOTHING_TO_VARY = 1e-9
"""Relative to the error as if every comparison were independent: what rounding makes of scores that leave nothing to vary."""


@dataclass(frozen=True, slots=True)
class ClusteredErrors:
    """What is known of the errors of a fit's parameters: betas, coefficients, ln(nu)."""

    covariance: Floats
    """(parameters, parameters)"""
    clusters: Codes
    """(parameters,) clusters of the component of each; of all rows for coefficients and ln(nu)."""
    effective: Floats
    """(parameters,) how many equally large clusters they are worth, (sum n)^2 / sum n^2; at most `clusters`."""
    degrees: Floats
    """(parameters,) degrees of freedom of t, 1 or more."""
    own: Codes
    """(players,) clusters that compared each player."""
    votes: Floats
    """(players,) comparisons that each player was in."""

    @property
    def errors(self) -> Floats:
        """(parameters,) standard errors; 0 where the covariance has none."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))


class Bounds(NamedTuple):
    """Standard error and ends of the interval; NaN: none."""

    se: Floats
    low: Floats
    high: Floats


class PairTests(NamedTuple):
    """Of every two players of one component that have an interval each; arrays of (pairs,)."""

    better: Codes
    """The player with the higher beta."""
    worse: Codes
    difference: Floats
    """Betas, better less worse, in logits."""
    se: Floats
    p: Floats
    """Two-sided, of t = difference / se with R - 1 degrees of freedom; NaN where the data leave the difference no error."""
    p_holm: Floats
    """Adjusted for all pairs of the component."""


def clustered_errors(fit: StrengthFit, *, effective: bool = False) -> ClusteredErrors:
    """The clustered sandwich of a fit, times R / (R - 1), with R - 1 degrees of freedom; R: the clusters of the component.

    With `effective`, R is how many equally large clusters they are worth: where a few make most of the rows, R of all is too many, and
    intervals hold the truth too rarely. Rows without clusters are each their own.
    """
    rows, players, alone = fit.rows, len(fit.beta), fit.rows.cluster is None
    cluster, clusters = _codes_of_clusters(fit)
    scores = _scores(fit, cluster, clusters)
    middle = (scores.T @ scores).toarray()
    # Components, and behind them all rows together, for the parameters that are no betas.
    parts = np.concatenate([fit.component[rows.left], np.full(len(rows.left), players)])
    counts, worth = _clusters_of(
        parts, np.tile(cluster, 2), players + 1, np.tile(rows.times, 2), np.tile(rows.weight, 2), alone=alone
    )
    at = np.concatenate([fit.component, np.full(len(fit.inverse) - players, players)])
    n = worth[at] if effective else counts[at]
    scale = np.sqrt(np.divide(n, n - 1, out=np.zeros(len(n)), where=n > 1))
    both, times = np.concatenate([rows.left, rows.right]), np.tile(rows.times, 2)
    own, _ = _clusters_of(both, np.tile(cluster, 2), players, times, np.tile(rows.weight, 2), alone=alone)
    return ClusteredErrors(
        covariance=fit.inverse @ middle @ fit.inverse * np.outer(scale, scale),
        clusters=counts[at].astype(np.int64),
        effective=worth[at],
        degrees=np.maximum(n - 1, 1),
        own=own.astype(np.int64),
        votes=np.bincount(both, weights=times, minlength=players).astype(np.float64),
    )


def bounds(estimates: Floats, errors: Floats, degrees: Floats, allowed: npt.NDArray[np.bool_]) -> Bounds:
    """Estimates -+ t times their errors at 95 %, t with these degrees of freedom; NaN where it is not allowed. Arrays of one shape."""
    t = stdtrit(degrees, (1 + CONFIDENCE) / 2)
    se = np.where(allowed, errors, np.nan)
    return Bounds(se, estimates - t * se, estimates + t * se)


def enough(fit: StrengthFit, found: ClusteredErrors) -> npt.NDArray[np.bool_]:
    """(players,) whether there is enough for an interval: clusters of the component and of the player, and comparisons of the player.

    A player that a few compared is fitted to their tastes exactly, so that the sandwich would see no spread between them.
    """
    players = len(fit.beta)
    many = (found.clusters[:players] >= MIN_CLUSTERS) & (found.own >= MIN_CLUSTERS) & (found.votes >= FEWEST_VOTES)
    spread = found.errors[:players] > _NOTHING_TO_VARY * np.nan_to_num(fit.model_errors[:players])
    return np.asarray(np.isfinite(fit.beta) & many & spread)


def pair_tests(fit: StrengthFit, found: ClusteredErrors) -> PairTests:
    """Which differences of two betas are more than chance, adjusted by Holm's method over the pairs of each component."""
    able = np.flatnonzero(enough(fit, found))
    first, second = (able[places] for places in np.triu_indices(len(able), 1))
    alike = fit.component[first] == fit.component[second]
    first, second = first[alike], second[alike]
    swap = fit.beta[first] < fit.beta[second]
    better, worse = np.where(swap, second, first), np.where(swap, first, second)
    difference = fit.beta[better] - fit.beta[worse]
    se = np.sqrt(np.maximum(_of_difference(found.covariance, better, worse), 0.0))
    least = _NOTHING_TO_VARY * np.sqrt(np.maximum(_of_difference(fit.inverse, better, worse), 0.0))
    t = np.divide(difference, se, out=np.full(len(se), np.nan), where=se > least)
    p = 2 * stdtr(found.degrees[better], -np.abs(t))
    adjusted = np.full(len(p), np.nan)
    for number in np.unique(fit.component[better]):
        here = fit.component[better] == number
        adjusted[here] = holm(p[here])
    return PairTests(better, worse, difference, se, p, adjusted)


def _of_difference(covariance: Floats, better: Codes, worse: Codes) -> Floats:
    variance = np.diag(covariance)
    return np.asarray(variance[better] + variance[worse] - 2 * covariance[better, worse])


def _codes_of_clusters(fit: StrengthFit) -> tuple[Codes, int]:
    """(rows,) the cluster of each from 0 without gaps, and how many there are."""
    rows = fit.rows
    if rows.cluster is None:
        return np.arange(len(rows.left)), len(rows.left)
    distinct, codes = np.unique(rows.cluster, return_inverse=True)
    return codes, len(distinct)


def _scores(fit: StrengthFit, cluster: Codes, clusters: int) -> Any:
    """Sparse (clusters, parameters): sums of the derivatives of the logarithm of the likelihood."""
    from scipy.sparse import coo_array

    rows, terms, players = fit.rows, fit.terms, len(fit.beta)
    # Equal comparisons of nobody in particular are clusters of one each: their outer products add up, not their scores.
    counts = rows.weight * (np.sqrt(rows.times) if rows.cluster is None else rows.times)
    pull = counts * terms.by_difference
    last = len(fit.inverse) - 1
    columns = [(rows.left, pull), (rows.right, -pull)]
    columns += [(np.full(len(pull), players + place), pull * values) for place, values in enumerate(rows.covariates.T)]
    if last >= players + rows.covariates.shape[1]:
        columns.append((np.full(len(pull), last), counts * terms.by_theta))
    at = np.concatenate([places for places, _ in columns])
    values = np.concatenate([of_column for _, of_column in columns])
    return coo_array((values, (np.tile(cluster, len(columns)), at)), shape=(clusters, len(fit.inverse))).tocsr()


def _clusters_of(
    what: Codes, cluster: Codes, size: int, times: Floats, weight: Floats, *, alone: bool
) -> tuple[Floats, Floats]:
    """(size,) how many different clusters each has, and (size,) how many equally large ones they are worth."""
    total = np.bincount(what, weights=weight * times, minlength=size)
    if alone:
        counts, of, squares = np.bincount(what, weights=times, minlength=size), what, times * weight**2
    else:
        many = int(cluster.max(initial=0)) + 1
        seen, place = np.unique(what * many + cluster, return_inverse=True)
        sizes = np.bincount(place, weights=weight * times, minlength=len(seen)).astype(np.float64)
        of, squares = seen // many, sizes**2
        counts = np.bincount(of, minlength=size)
    squared = np.bincount(of, weights=squares, minlength=size)
    worth = np.divide(total**2, squared, out=np.zeros(size), where=squared > 0)
    return counts.astype(np.float64), worth
