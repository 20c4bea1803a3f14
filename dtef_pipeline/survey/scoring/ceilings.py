"""The score of a perfect prediction: the true distribution against the answers of a sample of n people.

The truth of a segment is unknown, and the observed distribution is more extreme, because a sample scatters around its truth. So truths are
drawn from a Dirichlet posterior given the sample, shrunk toward the population by as much as the segments of an attribute are alike: if
they differ no more than samples of their sizes would by chance, the truth is taken to be the population. The prior strength, in
respondents, is estimated by moments from the intraclass correlation of the Dirichlet-multinomial (Mosimann 1962; Weir and Hill 2002).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dtef_pipeline.survey.scoring.metrics import Floats
from dtef_pipeline.survey.scoring.policy import compute_similarities

Ints = npt.NDArray[np.int64]
DRAWS = 200
"""Simulated truths and samples per pair. A pair's ceiling then has a Monte-Carlo standard error of about .003, a mean over 1,000 pairs .0001."""
OUTER, INNER = 2, 25
"""Per pair: the number of truths whose ceilings are estimated as if they were unknown, and of simulated samples for each estimate."""
MIN_SEGMENTS = 3
"""Fewest segments of an attribute whose own differences are used; below, all segments of the question are."""
MAX_STRENGTH = 1e6
"""Prior strength, in respondents, where the segments show no difference: the truth is the population."""


def estimate_prior_strength(observed: Floats, n: Floats) -> float:
    """Return the weight of the population beside a segment's respondents, in respondents, 0..MAX_STRENGTH, from one question's segments.

    `observed` is (segments, k) fractions, `n` (segments,). With mean squares B between and W within segments, summed over the options, and
    n0 = (N - sum n^2 / N) / (segments - 1): rho = (B - W) / (B + (n0 - 1) W), strength = (1 - rho) / rho. MAX_STRENGTH if rho <= 0 or if it
    cannot be estimated: fewer than two segments, or one respondent in each.
    """
    segments, total = len(n), n.sum()
    if segments < 2 or total <= segments:
        return MAX_STRENGTH
    mean = n @ observed / total
    between = (n @ (observed - mean) ** 2).sum() / (segments - 1)
    within = (n * (1 - (observed**2).sum(axis=1))).sum() / (total - segments)
    size = (total - (n**2).sum() / total) / (segments - 1)
    if between <= within:
        return MAX_STRENGTH
    # (1 - rho) / rho, with rho's denominator cancelled
    return float(min(MAX_STRENGTH, size * within / (between - within)))


def estimate_prior_strengths(observed: Floats, n: Floats, attributes: npt.NDArray[np.str_]) -> Floats:
    """Return `estimate_prior_strength` (segments,) of each segment: of its attribute, or of all segments if that has fewer than
    MIN_SEGMENTS.
    """
    strengths = np.full(len(n), estimate_prior_strength(observed, n))
    names, place, counts = np.unique(attributes, return_inverse=True, return_counts=True)
    for attribute in range(len(names)):
        if counts[attribute] >= MIN_SEGMENTS:
            rows = place == attribute
            strengths[rows] = estimate_prior_strength(observed[rows], n[rows])
    return strengths


def draw_truths(
    observed: Floats, n: Floats, population: Floats, strength: Floats, rng: np.random.Generator, draws: int
) -> Floats:
    """Draw possible true distributions (draws, segments, k): Dirichlet(n observed + strength population)."""
    weights = n[:, None] * observed + strength[:, None] * population
    gammas = rng.standard_gamma(weights, size=(draws, *weights.shape))
    return np.asarray(gammas / gammas.sum(axis=-1, keepdims=True))


def estimate_ceilings(truth: Floats, n: Ints, rng: np.random.Generator, *, ordinal: bool, ranks: Ints) -> dict[str, Floats]:
    """Return the mean similarity (segments,) under each metric of `truth` (draws, segments, k) to samples of n (segments,) drawn from it.

    Range 0..1, higher = a sample of n is closer to its truth. NaN if the metric has no value in any draw.
    """
    draws, segments, k = truth.shape
    sample = rng.multinomial(np.broadcast_to(n, (draws, segments)), truth)
    values = compute_similarities(truth.reshape(-1, k), sample.reshape(-1, k), ordinal=ordinal, ranks=ranks)
    return {name: _average_scored(value.reshape(draws, segments)) for name, value in values.items()}


def estimate_excess(
    truth: Floats,
    n: Ints,
    attributes: npt.NDArray[np.str_],
    rng: np.random.Generator,
    *,
    ordinal: bool,
    ranks: Ints,
) -> dict[str, Floats]:
    """Return by how much estimated ceilings exceed those of the `truth` (draws, segments, k) of one question, on average, (segments,) by
    metric.

    From each truth samples of n (segments,) are drawn, and ceilings are estimated from these only, as if the truth were unknown; noisy for
    one pair. NaN if the metric has no value. (A parametric bootstrap of the bias: Efron & Tibshirani 1993, ch. 10.)
    """
    size, excesses = n.astype(np.float64), []
    for distributions in truth:
        observed = rng.multinomial(n, distributions) / n[:, None]
        population = np.broadcast_to(size @ observed / size.sum(), observed.shape)
        posterior = draw_truths(observed, size, population, estimate_prior_strengths(observed, size, attributes), rng, INNER)
        estimated, real = (
            estimate_ceilings(truths, n, rng, ordinal=ordinal, ranks=ranks)
            for truths in (posterior, np.broadcast_to(distributions, posterior.shape))
        )
        excesses.append({name: estimated[name] - real[name] for name in real})
    return {name: np.mean([excess[name] for excess in excesses], axis=0) for name in excesses[0]}


def _average_scored(values: Floats) -> Floats:
    finite = np.isfinite(values)
    total = np.where(finite, values, 0.0).sum(axis=0)
    return np.asarray(np.divide(total, finite.sum(axis=0), out=np.full(values.shape[1], np.nan), where=finite.any(axis=0)))
