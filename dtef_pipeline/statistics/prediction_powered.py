"""Means of costly labels from a few labels and many cheap predictions: prediction-powered inference with whole clusters.

A **cluster** is the unit drawn for labelling (an item with everything linked to it), a **column** is one desired mean, with a weight for
each cluster.

Two intervals. `low` to `high`: the clusters represent all that might have been included, as in PPI++ and on a board; the target is the
expected label. `here_low` to `here_high`: only for these clusters, the mean if each had its label; it shrinks to a point when all are
labelled.

Source: PPI++ (Angelopoulos, Duchi & Zrnic 2023), equivalently the difference estimator with an estimated slope (Särndal, Swensson & Wretman
1992, 6.3) with weights by the chance of being drawn (Hájek 1971); the variance is the jackknife of whole clusters of two samples (Efron &
Stein 1981), which includes the estimation of the power; degrees of freedom by Satterthwaite (1946).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.cluster_robust import CONFIDENCE, MIN_CLUSTERS, count_effective_clusters
from dtef_pipeline.text.number_words import format_count

Floats = npt.NDArray[np.float64]

HALF_WIDTH = 0.03
"""Half the width of an interval that is wished for, in units of the score."""
_NO_WEIGHT, _EQUAL_PREDICTIONS = 1e-12, 1e-18
"""A part of weights, and a variance of predictions, below which there is none but rounding."""


class ClusterLabels(NamedTuple):
    """Weights, predictions and labels of every cluster, (clusters, columns) each but the last."""

    weights: Floats
    """Its part of each mean, 0 or more, 0 where a column does not have it; a column's weights are made to sum to 1."""
    predicted: Floats
    """Mean prediction over all of the cluster."""
    labels: Floats
    """Mean label of what was labelled in it; NaN where nothing was."""
    predicted_there: Floats
    """Mean prediction of just what was labelled; NaN where nothing was."""
    probability: Floats
    """(clusters,) the chance with which it was drawn to be labelled, above 0 and at most 1; where it was not drawn, any."""


class CorrectedMeans(NamedTuple):
    """Corrected means, (columns,) each; NaN with too few labelled clusters (2 for a value, 5 for an interval)."""

    value: Floats
    se: Floats
    low: Floats
    high: Floats
    here_se: Floats
    here_low: Floats
    here_high: Floats
    tuned: Floats
    """The lambda of PPI++, 0-1: the power (see `estimate_corrected_means`) times the part of the weights that has no label, which is what
    predictions of the unlabelled count for. 0: not at all. 1: in full, less their mean error. Predictions that are right but for a bias
    have the part without a label."""
    n_labelled: npt.NDArray[np.int64]
    needed: Floats
    """Clusters to label for an interval of the wished half width about these clusters (`here`), at most all there are."""


def estimate_corrected_means(data: ClusterLabels, *, half_width: float = HALF_WIDTH) -> CorrectedMeans:
    """Estimate the weighted mean label over all clusters, with t intervals.

    With w a cluster's weight, a = w / probability of those with labels (scaled to sum to 1), f and y predictions and labels: sum over all
    of w power f + sum over labelled of a (y - power f). With power 1 it is the mean of the predictions, corrected by the mean error of the
    labelled ones. The power is cov(y, f) / var(f) by those weights, 0 or more, and at most the value that gives the predictions of
    unlabelled clusters the weight 1; above 1 is possible where much is labelled.

    The squared error of `low` to `high` is (n - 1) / n times the sum of squares of the value's moves when each of the n labelled clusters
    is left out, plus the same for the others. That of `here` leaves out only labels, each square times 1 - probability. Freedom is that of
    the labelled (effective number of their weights, less 2, one of them for the power) and of the others together. Raises ConfigError
    for probabilities outside 0-1 or negative weights.
    """
    _check(data)
    has_label = np.isfinite(data.labels) & np.isfinite(data.predicted_there) & (data.weights > 0)
    n = has_label.sum(axis=0)
    parts = _estimate_variance_parts(data, has_label)
    freedom = np.maximum(count_effective_clusters(parts.drawn_weights) - 2, 1)
    freedom = np.where(n > 0, freedom, np.nan)
    total = parts.labelled + parts.others
    squares = parts.labelled**2 / freedom + parts.others**2 / parts.others_freedom
    degrees = np.maximum(np.divide(total**2, squares, out=freedom.copy(), where=squares > 0), freedom)
    enough = n >= MIN_CLUSTERS
    se, here_se = (np.where(enough, np.sqrt(part), np.nan) for part in (total, parts.here))
    half, here_half = (stdtrit(df, (1 + CONFIDENCE) / 2) * part for df, part in ((degrees, se), (freedom, here_se)))
    value = np.where(n > 1, parts.value, np.nan)
    n_needed = _find_needed_clusters(parts, n, (data.weights > 0).sum(axis=0), half_width)
    return CorrectedMeans(
        value,
        se,
        value - half,
        value + half,
        here_se,
        value - here_half,
        value + here_half,
        parts.tuned,
        n,
        np.where(enough, n_needed, np.nan),
    )


class _Parts(NamedTuple):
    """Parts of the estimate, (columns,) each but the first; variances by source."""

    drawn_weights: Floats  # (clusters, columns)
    value: Floats
    tuned: Floats
    labelled: Floats
    others: Floats
    here: Floats
    error: Floats
    """`here`, if clusters were drawn alike, of few of many, times how many were labelled."""
    others_freedom: Floats


class _Moments(NamedTuple):
    """The basis of value and power: means and weighted second moments of everything, or of everything but a cluster."""

    y: Floats
    f: Floats
    together: Floats  # of y f
    squares: Floats  # sum of the squared weights of the labelled
    all_f: Floats
    all_spread: Floats  # of f^2
    all_squares: Floats
    labelled: Floats  # part of the weights that has labels

    def power(self) -> Floats:
        """Return the power that minimizes the variance: covariance of the labelled over variance of all, each unbiased."""
        together = _divide_or_zero(self.together - self.y * self.f, 1 - self.squares)
        spread = _divide_or_zero(self.all_spread - self.all_f**2, 1 - self.all_squares)
        slope = np.where(spread > _EQUAL_PREDICTIONS, _divide_or_zero(together, np.maximum(spread, _EQUAL_PREDICTIONS)), 0.0)
        return np.asarray(np.clip(slope, 0.0, np.maximum(_divide_or_zero(np.ones_like(spread), 1 - self.labelled), 1.0)))

    def value(self, power: Floats) -> Floats:
        return np.asarray(power * self.all_f + self.y - power * self.f)


def _estimate_variance_parts(data: ClusterLabels, has_label: npt.NDArray[np.bool_]) -> _Parts:
    w = _normalise_weights(np.where(np.isfinite(data.predicted), data.weights, 0.0))
    chance = np.where(has_label, data.probability[:, None], 1.0)
    a = _normalise_weights(np.where(has_label, w / chance, 0.0))
    level = (w * np.where(w > 0, data.predicted, 0.0)).sum(axis=0)
    pairs = ((w > 0, data.predicted), (has_label, data.labels), (has_label, data.predicted_there))
    all_f, y, f = (np.where(mask, part - level, 0.0) for mask, part in pairs)
    full = [(weight * part).sum(axis=0) for weight, part in _terms(w, a, all_f, y, f, has_label)]
    moments = _Moments(*full)
    slope = moments.power()
    value = moments.value(slope)
    clusters, labels = _leave_each_out(full, _terms(w, a, all_f, y, f, has_label), w, a)
    influence, label_shifts = (value - side.value(side.power()) for side in (clusters, labels))
    n, n_others = has_label.sum(axis=0), ((w > 0) & ~has_label).sum(axis=0)
    fewer, fewer_others = (np.maximum(count - 1, 0) / np.maximum(count, 1) for count in (n, n_others))
    return _Parts(
        a,
        value + level,
        slope * np.clip(1 - moments.labelled, 0, 1),
        fewer * (influence**2 * has_label).sum(axis=0),
        fewer_others * (influence**2 * ((w > 0) & ~has_label)).sum(axis=0),
        fewer * ((1 - chance) * label_shifts**2 * has_label).sum(axis=0),
        fewer * (label_shifts**2 * has_label).sum(axis=0) * n,
        np.maximum(n_others - 1, 1).astype(np.float64),
    )


def _terms(
    w: Floats, a: Floats, all_f: Floats, y: Floats, f: Floats, has_label: npt.NDArray[np.bool_]
) -> list[tuple[Floats, Floats]]:
    """Return weights and values of each of the `_Moments`."""
    return [(a, y), (a, f), (a, y * f), (a, a), (w, all_f), (w, all_f**2), (w, w), (w, has_label.astype(np.float64))]


def _leave_each_out(full: list[Floats], terms: list[tuple[Floats, Floats]], w: Floats, a: Floats) -> tuple[_Moments, _Moments]:
    """Return moments (clusters, columns) without each cluster; and with it, but without its label."""
    scales = [_divide_or_zero(np.ones_like(part), 1 - part) for part in (a, w)]
    remainders = []
    for index, ((weight, part), moment) in enumerate(zip(terms, full, strict=True)):
        scale = scales[weight is w]
        remainders.append((moment - weight * part) * (scale**2 if index in (3, 6) else scale))
    constants = [np.broadcast_to(part, w.shape) for part in full]
    label_moments = [*remainders[:4], *constants[4:7], constants[7] - w * terms[7][1]]
    return _Moments(*remainders), _Moments(*label_moments)


def _divide_or_zero(above: Floats, below: Floats) -> Floats:
    """Divide; 0 if the denominator is 0."""
    return np.asarray(np.divide(above, below, out=np.zeros(np.broadcast(above, below).shape), where=below > _NO_WEIGHT))


def _normalise_weights(weights: Floats) -> Floats:
    total = weights.sum(axis=0)
    return np.asarray(np.divide(weights, total, out=np.zeros_like(weights), where=total > 0))


def _find_needed_clusters(
    parts: _Parts,
    n: npt.NDArray[np.int64],
    n_clusters: npt.NDArray[np.int64],
    half_width: float,
) -> Floats:
    """Return (columns,) the fewest clusters m, of N, with t sqrt(error (1 / m - 1 / N)) <= half width; N labels have no error."""
    fewest = n_clusters.astype(np.float64)
    for column in np.flatnonzero(n >= MIN_CLUSTERS).tolist():
        every = int(n_clusters[column])
        m = np.arange(MIN_CLUSTERS, every + 1)
        t = stdtrit(np.maximum(m - 2, 1), (1 + CONFIDENCE) / 2)
        wide = t * np.sqrt(parts.error[column] * np.maximum(1 / m - 1 / every, 0))
        fewest[column] = m[np.argmax(wide <= half_width)]
    return fewest


def _check(data: ClusterLabels) -> None:
    chances = data.probability[np.isfinite(data.labels).any(axis=1)]
    if not ((chances > 0) & (chances <= 1)).all():
        raise ConfigError(f"labels: probability {chances[~((chances > 0) & (chances <= 1))][0]:g}; allowed: above 0, at most 1")
    if (data.weights < 0).any():
        raise ConfigError(f"labels: weight {data.weights.min():g}; allowed: 0 or more")


def compute_chances(sizes: npt.ArrayLike, n: int) -> Floats:
    """Return (things,) the chance of each to be among `n` drawn: in proportion to its size, at most 1. They sum to `n`.

    All chances are 1 if there are at most `n`. Raises ConfigError if `n` is below 1 or a size is not above 0.
    """
    weights = np.asarray(sizes, dtype=np.float64)
    if n < 1:
        raise ConfigError(f"draw: got {format_count(n, 'item')} to draw; allowed: 1 or more")
    if not (weights > 0).all():
        raise ConfigError(f"draw: got a size of {weights[~(weights > 0)][0]:g}; allowed: above 0")
    if n >= len(weights):
        return np.ones(len(weights))
    certain = np.zeros(len(weights), dtype=bool)
    while True:
        chances = np.where(certain, 1.0, (n - certain.sum()) * weights / weights[~certain].sum())
        if not (chances > 1).any():
            return np.asarray(chances)
        certain |= chances >= 1


def draw_sample(chance: Floats, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Return (things,) which are drawn, each with its chance; as many as the chances sum to, if that is a whole number."""
    order = rng.permutation(len(chance))
    # The sum of chances is whole but for rounding, which must neither lose nor add a draw.
    ends = np.round(np.cumsum(chance[order]), 9) + rng.random()
    mask = np.zeros(len(chance), dtype=bool)
    mask[order] = np.diff(np.floor(ends), prepend=0) >= 1
    return mask
