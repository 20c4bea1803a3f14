"""Sign-flip permutation tests of whole clusters, and adjustments for making many of them.

General: it knows clusters and sums, nothing of any family.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.resampling import product

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

SIGNIFICANCE = 0.05
FEWEST_PERMUTATIONS = 9_999
_ENOUGH = 100
"""Exceedances after which a column is settled: its p is far above anything that an adjustment for many tests would let pass."""
_PERMUTATIONS_AT_A_TIME = 4_096
_TIE = 1e-9
"""Relative to the sum of all absolute values: sums that differ by less are equal but for the order of their additions."""


class SignFlips(NamedTuple):
    """Of each column: `p`, two-sided, and how many sign patterns it is made of."""

    p: Floats
    permutations: Counts


def sign_flips(sums: npt.ArrayLike, *, permutations: int, seed: int, noise: Floats | None = None) -> SignFlips:
    """How often a sum over clusters is as far from 0 when each whole cluster's sign is drawn anew.

    `sums` (clusters, columns): each cluster's sum of differences; NaN where the column has no such cluster. All columns get the same signs.
    p = (b + 1) / (m + 1) of m drawn patterns, b of them with |sum| at least as large as the observed (ties count); when 2^clusters <=
    permutations + 1, all patterns are gone through instead, and p is exact. p is 1 in a column of zeros, NaN in one without a cluster.

    A column with 100 or more exceedances after the first 9,999 patterns is settled there and p is made of those: p remains valid, because
    such a column can only be given a larger p than the rule's threshold (Besag & Clifford 1991). The null hypothesis is that a cluster's
    difference is as likely to have the other sign (Fisher 1935; Winkler et al. 2014 for whole clusters).

    `noise` (columns,): variance of normal noise that all clusters of a column share, so that no sign of one says anything of it. It is added
    to every pattern's sum: b is then the sum of the probabilities that a pattern's sum and its noise reach the observed sum, or how many do
    without noise, whichever is more.
    """
    values = np.asarray(sums, dtype=np.float64)
    if values.ndim != 2 or np.isinf(values).any():
        raise ConfigError(f"sums: got shape {values.shape}; allowed: (clusters, columns), finite or NaN")
    if permutations < 1:
        raise ConfigError(f"permutations {permutations}: allowed: 1 or more")
    absent = np.isnan(values).all(axis=0)
    flipped = np.nan_to_num(values)
    clusters = len(flipped)
    exact = clusters < 63 and 2**clusters <= permutations + 1
    patterns = _all_signs(clusters) if exact else _drawn_signs(clusters, permutations, np.random.default_rng(seed))
    shared = np.zeros(flipped.shape[1]) if noise is None else np.sqrt(noise)
    exceeding, drawn = _exceedances(flipped, shared, patterns, settles=not exact)
    # Among all patterns is the observed one, which is the +1 of those drawn.
    p = exceeding / drawn if exact else (exceeding + 1) / (drawn + 1)
    return SignFlips(np.where(absent, np.nan, p), np.where(absent, 0, drawn))


def _exceedances(sums: Floats, shared: Floats, patterns: Iterator[Floats], *, settles: bool) -> tuple[Floats, Counts]:
    """Of each column, how many patterns reach the observed |sum|, and how many were tried; `shared` (columns,): deviation of its noise."""
    least = np.maximum(np.abs(sums.sum(axis=0)) - _TIE * np.abs(sums).sum(axis=0), 0)
    # Without and with the noise: where patterns are few, noise alone could make p smaller than the smallest that they allow.
    exceeding, drawn = np.zeros((2, sums.shape[1])), np.zeros(sums.shape[1], dtype=np.int64)
    open_ = np.arange(sums.shape[1])
    for signs in patterns:
        if settles and drawn.max(initial=0) >= FEWEST_PERMUTATIONS:
            open_ = open_[exceeding[:, open_].max(axis=0) < _ENOUGH]
        exceeding[:, open_] += _reached(np.abs(product(signs, sums[:, open_])), least[open_], shared[open_])
        drawn[open_] += len(signs)
    return exceeding.max(axis=0), drawn


def _reached(distance: Floats, least: Floats, shared: Floats) -> Floats:
    """How many of the distances from 0 (patterns, columns) are at least `least`, (2, columns): as they are, and with noise added."""
    found: Floats = np.tile((distance >= least).sum(axis=0).astype(np.float64), (2, 1))
    noisy = shared > 0
    away, off, spread = distance[:, noisy], least[noisy], shared[noisy]
    found[1, noisy] = (ndtr((away - off) / spread) + ndtr((-away - off) / spread)).sum(axis=0)
    return found


def _drawn_signs(clusters: int, permutations: int, generator: np.random.Generator) -> Iterator[Floats]:
    """Random signs (patterns, clusters), in blocks of which one ends at FEWEST_PERMUTATIONS."""
    done = 0
    while done < permutations:
        end = min(done + _PERMUTATIONS_AT_A_TIME, permutations)
        end = min(end, FEWEST_PERMUTATIONS) if done < FEWEST_PERMUTATIONS else end
        yield _signs(np.frombuffer(generator.bytes((end - done) * -(-clusters // 8)), dtype=np.uint8), end - done, clusters)
        done = end


def _all_signs(clusters: int) -> Iterator[Floats]:
    """Every pattern once."""
    for start in range(0, 2**clusters, _PERMUTATIONS_AT_A_TIME):
        numbers = np.arange(start, min(start + _PERMUTATIONS_AT_A_TIME, 2**clusters), dtype=">u8")
        bits = np.unpackbits(numbers.view(np.uint8).reshape(len(numbers), 8), axis=1)[:, 64 - clusters :]
        yield _as_signs(bits)


def _signs(random: npt.NDArray[np.uint8], patterns: int, clusters: int) -> Floats:
    bits = np.unpackbits(random.reshape(patterns, -(-clusters // 8)), axis=1, count=clusters)
    return _as_signs(bits)


def _as_signs(bits: npt.NDArray[np.uint8]) -> Floats:
    return 1 - 2 * bits.astype(np.float64)


def permutations_for(n_tests: int) -> int:
    """How many patterns to draw for `n_tests` tests that are adjusted together: never fewer than 9,999.

    The smallest possible p, 1 / (m + 1), is to survive the adjustment at 5 % with room for a few exceedances: m = 100 n_tests - 1. With
    2,000 patterns nothing among 435 pairs of 30 models could ever be found.
    """
    return max(FEWEST_PERMUTATIONS, 100 * n_tests - 1)


def fewest_clusters(n_tests: int) -> int:
    """Clusters of which the smallest possible p, 2 / 2^clusters, is below 5 % after Holm's adjustment for `n_tests` tests."""
    return int(np.floor(np.log2(2 * max(n_tests, 1) / SIGNIFICANCE))) + 1


def holm(p: npt.ArrayLike) -> Floats:
    """Adjusted p of tests made together (Holm 1979): those below a level hold the rate of any false finding below that level.

    The i-th smallest of k is multiplied by k - i + 1, is at least what smaller ones became, and at most 1. NaN stays NaN and is not counted.
    Shape (tests,), unchanged. Raises ConfigError for values outside [0, 1].
    """
    values = _probabilities(p)
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    stepped = np.maximum.accumulate(values[order] * np.arange(len(order), 0, -1))
    return _placed(stepped, order, len(values))


def benjamini_hochberg(p: npt.ArrayLike) -> Floats:
    """Adjusted p of tests made together (Benjamini & Hochberg 1995): of those below a level, the expected share of false ones is below it.

    Where no hypothesis is wrong every finding is false, so then any finding at all is as rare as that. The i-th smallest of k is multiplied by
    k / i, and is at most what larger ones became. NaN stays NaN and is not counted. Shape (tests,), unchanged. Raises ConfigError for values
    outside [0, 1].

    It holds for independent tests and for those that depend positively (Benjamini & Yekutieli 2001). Two-sided tests of every two of several
    means are not quite of that kind; for them it holds too, with room to spare (Yekutieli 2008).
    """
    values = _probabilities(p)
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    shares = values[order] * len(order) / np.arange(1, len(order) + 1)
    return _placed(np.minimum.accumulate(shares[::-1])[::-1], order, len(values))


def _probabilities(p: npt.ArrayLike) -> Floats:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or (values < 0).any() or (values > 1).any():
        raise ConfigError(f"p: got {values.tolist()}; allowed: one dimension, values from 0 to 1, or NaN")
    return values


def _placed(adjusted: Floats, order: Counts, tests: int) -> Floats:
    """Adjusted p back at the places that they were taken from, at most 1; NaN at all others."""
    placed = np.full(tests, np.nan)
    placed[order] = np.minimum(adjusted, 1.0)
    return placed
