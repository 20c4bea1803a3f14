"""Intervals by the bootstrap of whole clusters, crossed with the noise of what was observed.

General: it knows clusters, columns and sums over clusters, nothing of any family. A cluster is what is drawn anew (an item with all its
scores), a column is a number wanted (a model, a model in a group). One set of cluster weights serves all columns, so that the
difference of two columns is paired.

Source: cluster bootstrap (Davison & Hinkley 1997, ch. 2.4 and 3.8) as counts times sums; variance of clusters of unequal size by leaving each
out (MacKinnon, Nielsen & Webb 2023); percentiles for skewed estimates (BCa: Efron 1987); random signs for the noise (wild bootstrap:
Liu 1988).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri, stdtrit

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.cluster_robust import CONFIDENCE as CONFIDENCE
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS as MIN_CLUSTERS
from dtef_pipeline.statistics.cluster_robust import effective_clusters as effective_clusters
from dtef_pipeline.statistics.cluster_robust import why_none as why_none
from dtef_pipeline.statistics.drawing import SEED as SEED
from dtef_pipeline.statistics.products import product as product
from dtef_pipeline.statistics.shared_noise import ClusterNoise, NoiseVariances
from dtef_pipeline.text.counted import counted

Floats = npt.NDArray[np.float64]
Noise = npt.NDArray[np.floating]
Floating = TypeVar("Floating", bound=np.floating)

RESAMPLES = 2000
_FINITE = 0.95
"""Share of the replicates that must be finite: a column of few clusters is at times not drawn at all."""
_NOISE_COUNTS = 5
"""Clusters that the variance known from the noise counts for, where it is larger than that between clusters."""


class Spread(NamedTuple):
    """What is known of the replicates of numbers besides themselves, (columns,) each."""

    n_clusters: npt.NDArray[np.int64]
    """Clusters with anything in the denominator."""
    between: Floats
    """Share of the replicates' variance that is between clusters, 0-1; 1 without noise."""
    effective: Floats
    """As of `effective_clusters`, 2 or more."""
    acceleration: Floats
    """A sixth of the skewness of the number, as the clusters show it: above 0 where a few clusters lie far above the others."""
    shared: Floats
    """Standard deviation of the noise shared by all clusters, which the replicates have besides; 0 without."""


class Ratios(NamedTuple):
    """Sums of one kind over sums of another, one number per column, and its replicates: what `interval` takes."""

    value: Floats  # (columns,), NaN where the denominator is 0
    replicates: Floats  # (resamples, columns)
    spread: Spread


class Resampling:
    """Cluster weights of every resample, shared by all columns. Raises ConfigError for fewer than one cluster or resample.

    `weights` (resamples, clusters): how often each cluster was drawn. `people` (resamples,): standard normal, which way the noise went that
    all clusters share.
    """

    def __init__(self, n_clusters: int, *, resamples: int = RESAMPLES, seed: int = SEED) -> None:
        if n_clusters < 1 or resamples < 1:
            raise ConfigError(
                f"resampling: got {counted(n_clusters, 'cluster')}, {counted(resamples, 'resample')}; allowed: 1 or more of each"
            )
        self.n_clusters, self.resamples, self.seed = n_clusters, resamples, seed
        self.weights, self._signs, self.people = _drawn(n_clusters, resamples, seed)
        self._last: _Denominators | None = None

    def totals(self, sums: Floats) -> Floats:
        """Sum over the clusters drawn: (clusters, columns) -> (resamples, columns). For a quotient with noise see `ratios`."""
        return product(self.weights, np.asarray(sums, dtype=np.float64))

    def noise(self, deviations: Noise) -> Floats:
        """Noise of a sum over all clusters: (replicates, clusters, columns) centred deviations -> (resamples, columns).

        A resample takes one of the replicates (each in turn) and a random sign for each cluster, the same for all columns. Its variance
        is the mean over the replicates of the sum over the clusters of the squared deviations.
        """
        replicates = len(deviations)
        totals = np.empty((self.resamples, deviations.shape[2]))
        for replicate in range(replicates):
            # Rows that lie apart in memory would be multiplied ten times slower.
            signs = np.ascontiguousarray(self._signs[replicate::replicates])
            totals[replicate::replicates] = product(signs, deviations[replicate].astype(np.float32, copy=False))
        return totals

    def ratios(
        self,
        numerators: Floats,
        denominators: Floats,
        noise: ClusterNoise | None = None,
        *,
        sizes: Floats | None = None,
        crossed: bool = True,
    ) -> Ratios:
        """Replicates of sum(numerators) / sum(denominators), both (clusters, columns). A mean has counts as denominators.

        `noise`: of the numerators when what was observed is drawn anew; where the denominators are observed too, of
        numerators - ratio x denominators. `sizes` (clusters, columns): how many observations are behind
        each, None: as the denominators say.

        Clusters differ because they are different and because each was observed with noise: drawing clusters repeats the noise already.
        With S the variance of the ratio between clusters (`between`) and N the variance that the noise alone gives it, the deviations of
        the replicates are scaled to the variance max(S - N, 0), and noise of variance N is added: in all S. Where S is by chance
        less than the noise explains, noise alone is added, its variance as of `tempered`. (What the replicates have is (C - 1) / C of
        these; `interval` stretches it.) A column in few of the clusters is drawn a random number of times; the spread which that adds is
        taken out. Not `crossed`: by clusters alone, variance S.

        The noise that all clusters share is in none of their differences, and is added.
        """
        top, bottom = np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)
        total, n_clusters, below = bottom.sum(axis=0), (bottom != 0).sum(axis=0), self._of_denominators(bottom)
        nothing = np.zeros(len(total))
        with np.errstate(divide="ignore", invalid="ignore"):
            value = top.sum(axis=0) / total
            replicates = self.totals(top)
            replicates /= below.totals
            influence = (top - value * bottom) / total
            drawn_variance = (influence**2).sum(axis=0)
            found = between(influence, bottom if sizes is None else sizes)
            known = NoiseVariances(nothing, nothing) if noise is None else noise.over(total)
            apart = known.apart if crossed else nothing
            kept = 1 - 1 / found.effective
            added = np.fmin(tempered(found.variance, apart, n_clusters), apart)
            wanted = np.maximum(found.variance - apart, 0) * kept
            # In place: there are as many replicates as fill the processor's cache many times.
            replicates -= value
            replicates *= np.where(drawn_variance > 0, np.sqrt(wanted / drawn_variance), 0) / np.sqrt(below.uneven)
            replicates += value
            if noise is not None and crossed:
                drawn = self.noise(noise.deviations)
                drawn *= np.where(apart > 0, np.sqrt(added / apart), 0) / total
                replicates += drawn
            shared = np.sqrt(known.shared)
            if shared.any():
                replicates += np.outer(self.people, shared)
            share = wanted / (wanted + added)
            variance = np.maximum(wanted + added + known.shared, drawn_variance)
            acceleration = np.where(variance > 0, (influence**3).sum(axis=0) / (6 * variance**1.5), 0)
        share = np.where(np.isfinite(share), share, 1.0)
        return Ratios(value, replicates, Spread(n_clusters, share, found.effective, acceleration, shared))

    def _of_denominators(self, bottom: Floats) -> _Denominators:
        """Kept from one call to the next: the means of a board are of the same cells, most of them."""
        if self._last is None or not np.array_equal(self._last.sums, bottom):
            self._last = _Denominators(bottom, self.totals(bottom), self._uneven(bottom != 0))
        return self._last

    def _uneven(self, here: npt.NDArray[np.bool_]) -> Floats:
        """Mean of clusters / clusters drawn, (columns,): 1 for a column in all clusters, more for one in few of them."""
        everywhere = here.all(axis=0)
        factor = np.ones(here.shape[1])
        if not everywhere.all():
            some = here[:, ~everywhere]
            drawn = product(self.weights, some.astype(np.float64))
            inverse = np.divide(some.sum(axis=0), drawn, out=np.full(drawn.shape, np.nan), where=drawn > 0)
            factor[~everywhere] = np.nansum(inverse, axis=0) / np.maximum((drawn > 0).sum(axis=0), 1)
        return np.where(factor > 0, factor, 1.0)


class _Denominators(NamedTuple):
    """What the resamples make of denominators (clusters, columns), whatever the numerators."""

    sums: Floats
    totals: Floats  # (resamples, columns)
    uneven: Floats  # (columns,)


@lru_cache(maxsize=4)  # all boards of a run take the same few; of a thousand clusters one is 24 MB
def _drawn(n_clusters: int, resamples: int, seed: int) -> tuple[Floats, npt.NDArray[np.float32], Floats]:
    """How often each cluster was drawn, and a random sign for it: each (resamples, clusters); a standard normal (resamples,). Read only."""
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(n_clusters, np.full(n_clusters, 1 / n_clusters), size=resamples).astype(np.float64)
    signs = (2 * rng.integers(0, 2, size=(resamples, n_clusters)) - 1).astype(np.float32)
    # Every part of the distribution once, in random order: its spread is 1 however few resamples there are.
    people = ndtri((rng.permutation(resamples) + 0.5) / resamples)
    weights.flags.writeable = signs.flags.writeable = people.flags.writeable = False
    return weights, signs, people


class Between(NamedTuple):
    """How much a number scatters between clusters: its variance, and as of `effective_clusters`, 2 or more, (columns,) each."""

    variance: Floats
    effective: Floats


def between(influence: Floats, sizes: Floats) -> Between:
    """The variance between clusters of a number (columns,), from what each cluster adds to it less its part: `influence` (clusters, columns).

    A cluster pulls the number towards itself, the more so the larger it is, and so lies nearer to it than to all others. With w a cluster's
    part of the `sizes` (clusters, columns) and C clusters: (C - 1) / C sum (influence / (1 - w))^2, the jackknife of whole clusters (CV3 of
    MacKinnon, Nielsen & Webb 2023). Of equal sizes: C / (C - 1) sum influence^2.
    """
    here = sizes != 0
    n_clusters = np.maximum(here.sum(axis=0), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        others = np.where(here, 1 - sizes / sizes.sum(axis=0), 1)
        left_out = np.where(others > 0, influence / others, np.nan)
        variance = (1 - 1 / n_clusters) * (left_out**2).sum(axis=0)
    effective = np.clip(effective_clusters(sizes), 2, np.maximum(n_clusters, 2))
    return Between(variance, np.where(np.isfinite(effective), effective, 2.0))


def tempered(variance: Floats, noise: Floats, n_clusters: npt.ArrayLike) -> Floats:
    """Variance of a ratio: `variance`, as C clusters say, or, where the `noise` alone says more, a mean of the two.

    The noise counts as much as 5 clusters beside the C - 1 degrees of freedom of the spread (as a prior does: Smyth 2004). It is judged from
    draws around the answers observed, which for a prediction near the truth is too much (of a similarity by a fifth, of a squared error up to
    threefold): it guards against few clusters that happen to be alike, and is outvoted by many.
    """
    freedom = np.asarray(n_clusters, dtype=np.float64) - 1
    mean = (freedom * variance + _NOISE_COUNTS * noise) / np.maximum(freedom + _NOISE_COUNTS, 1)
    return np.asarray(np.where(variance < noise, mean, variance))


def interval(found: Ratios, *, confidence: float = CONFIDENCE) -> tuple[Floats, Floats]:
    """Percentile interval, stretched: low and high, each (columns,).

    With z the normal quantile of `confidence` and C the effective clusters: the replicates' percentiles Phi(a + (a -+ z) / (1 - a (a -+ z))),
    a half of the acceleration (BCa; half, because so few clusters show only a part of the skewness with certainty). Their distances from the
    value are multiplied by e = sqrt(C / (C - 1)) t / z, t of C - 2 degrees of freedom, 1 or more. The root is for the spread of C drawn
    clusters, which is too small by (C - 1) / C; t for a spread that is itself estimated; one degree is given for its skewness. Where nothing
    is between clusters but noise alone, which is known, e = 1. NaN where there are fewer than MIN_CLUSTERS clusters or over 5 % of the
    replicates are not finite.
    """
    replicates, spread = found.replicates, found.spread
    finite = np.isfinite(replicates).sum(axis=0)
    usable = (spread.n_clusters >= MIN_CLUSTERS) & (finite >= _FINITE * len(replicates)) & (finite > 0)
    z = ndtri((1 + confidence) / 2)
    alike = np.where(usable, spread.effective, 3)
    stretched = np.sqrt(alike / (alike - 1)) * stdtrit(np.maximum(alike - 2, 1), (1 + confidence) / 2) / z
    stretched = np.where(spread.between > 0, stretched, 1)
    half = np.where(usable, spread.acceleration / 2, 0)
    # A column's replicates side by side in memory are sorted many times faster.
    ordered = np.sort(np.ascontiguousarray(np.where(np.isfinite(replicates), replicates, np.inf).T), axis=1).T
    ends = []
    for side in (-z, z):
        tail = ndtr(half + (half + side) / (1 - half * (half + side)))
        end = found.value + stretched * (_at(ordered, tail * np.maximum(finite - 1, 0)) - found.value)
        ends.append(np.where(usable, end, np.nan))
    return ends[0], ends[1]


def _at(ordered: Floats, place: Floats) -> Floats:
    """Values at fractional places of each column, linear between neighbours."""
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, len(ordered) - 1)
    columns = np.arange(ordered.shape[1])
    share = place - below
    first, second = ordered[below, columns], ordered[above, columns]
    with np.errstate(invalid="ignore"):  # a column without any finite value
        return np.where(share > 0, first + share * (np.where(np.isfinite(second), second, first) - first), first)
