"""What paired differences say: their mean with its interval, their test, and the verdict on both.

General: it knows clusters and columns, nothing of any family. A **column** is one comparison; its pairs fall into clusters, and whole
clusters are resampled and flipped, because pairs of one cluster go wrong together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.statistics.permutation import SIGNIFICANCE, fewest_clusters, sign_flips
from dtef_pipeline.statistics.resampling import CONFIDENCE, MIN_CLUSTERS, Resampling, interval, why_none
from dtef_pipeline.statistics.shared_noise import ClusterNoise, Correlation, shared_variance
from dtef_pipeline.text.counted import counted, plural

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

MARGIN = 0.01
"""Differences of a score smaller than this are taken for none, unless one says otherwise."""
NARROW = 0.90
"""Confidence of the interval that is to lie within the margin: two one-sided tests at 5 % each (Schuirmann 1987)."""
_COLUMNS_A_BLOCK = 500
"""Columns resampled at a time, to bound memory."""
_NO_DIFFERENCE = 1e-12
"""Relative to the sums: what remains of equal scores that were added in different orders."""


def resampling_of(n_clusters: int, resamples: int, seed: int) -> Resampling | None:
    """None where no intervals are wanted, or there is nothing to resample."""
    return Resampling(n_clusters, resamples=resamples, seed=seed) if resamples and n_clusters else None


def places(frame: pd.DataFrame, names: list[str]) -> tuple[Codes, pd.DataFrame]:
    """Of each row the place of its `names` among the distinct ones, and those, as text in the order of the text: whatever the row order."""
    code = frame.groupby(names, observed=True, sort=False).ngroup().to_numpy()
    first = np.unique(code, return_index=True)[1]
    labels = frame[names].iloc[first].astype(str).reset_index(drop=True)
    order = labels.sort_values(names).index.to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[code], labels.iloc[order].reset_index(drop=True)


def cluster_sums(clusters: Codes, columns: Codes, values: npt.ArrayLike, shape: tuple[int, int]) -> Floats:
    """`values` (pairs,) summed by cluster and column, each named by its place: `shape` (clusters, columns)."""
    weights = np.asarray(values, dtype=np.float64)
    flat = np.bincount(clusters * shape[1] + columns, weights=weights, minlength=shape[0] * shape[1]).astype(np.float64)
    return flat.reshape(shape)


def cluster_noise(
    noise: npt.NDArray[np.floating],
    clusters: Codes,
    columns: Codes,
    samples: Codes,
    shape: tuple[int, int],
    correlation: Correlation,
) -> ClusterNoise:
    """Of what `cluster_sums` makes of parts; `noise` (parts, replicates), `samples` and `correlation` as of `shared_variance`."""
    summed = np.stack([cluster_sums(clusters, columns, replicate, shape) for replicate in noise.T])
    shared = shared_variance(noise, columns, clusters, samples, shape[1], correlation)
    return ClusterNoise(summed.astype(np.float32), shared)


def without_rounding(sums: Floats, magnitudes: Floats) -> Floats:
    """Sums of differences, 0 where nothing but the rounding of sums of size `magnitudes` is left: equal scores are to be exactly equal."""
    return np.where(np.abs(sums) <= _NO_DIFFERENCE * magnitudes, 0.0, sums)


def paired_statistics(
    sums: Floats,
    counts: Floats,
    resampling: Resampling | None,
    *,
    permutations: int,
    seed: int,
    noise: ClusterNoise | None = None,
    people: Floats | None = None,
    noun: str = "cluster",
) -> pd.DataFrame:
    """One row per column of `sums` and `counts`, both (clusters, columns): differences summed over a cluster's pairs, and the number of pairs.

    Columns: `n_pairs`, `n_clusters`, `difference` (mean over the pairs), `low` and `high` (95 %), `narrow_low` and `narrow_high` (90 %),
    `effect_size` (difference over the standard deviation of the clusters' mean differences), `p` (two-sided, whole clusters flipped; null
    with fewer than 5 clusters), `permutations`, `note`. No intervals without `resampling`; `noise` as of
    `Resampling.ratios`; `people` (columns,): variance of the sum of all clusters that the same people make, for the test, as `noise` of
    `sign_flips`; `noun`: what notes call a cluster.
    """
    pairs, clusters = counts.sum(axis=0), np.count_nonzero(counts, axis=0)
    enough = clusters >= MIN_CLUSTERS
    flips = sign_flips(sums, permutations=permutations, seed=seed, noise=people)
    (low, high), (narrow_low, narrow_high) = ratio_intervals(resampling, sums, counts, (CONFIDENCE, NARROW), noise)
    difference = _quotient(sums.sum(axis=0), pairs)
    numbers = {
        "n_pairs": pairs.astype(np.int64),
        "n_clusters": clusters,
        "difference": difference,
        "low": low,
        "high": high,
        "narrow_low": narrow_low,
        "narrow_high": narrow_high,
        "effect_size": _quotient(difference, _deviation(_quotient(sums, counts))),
        "p": np.where(enough, flips.p, np.nan),
        "permutations": np.where(enough, flips.permutations, 0),
    }
    return pd.DataFrame(
        {**numbers, "note": pd.Series([why_none(int(n), noun, "interval and no test") for n in clusters], dtype=object)}
    )


def ratio_intervals(
    resampling: Resampling | None,
    numerators: Floats,
    denominators: Floats,
    confidences: Sequence[float],
    noise: ClusterNoise | None = None,
) -> tuple[tuple[Floats, Floats], ...]:
    """Low and high, each (columns,), at each of `confidences`, of sum(numerators) / sum(denominators), both (clusters, columns).

    NaN where there are too few clusters or the denominators sum to 0, and everywhere without a `resampling`.
    """
    columns = numerators.shape[1]
    found = tuple((np.full(columns, np.nan), np.full(columns, np.nan)) for _ in confidences)
    if resampling is None:
        return found
    for start in range(0, columns, _COLUMNS_A_BLOCK):
        block = slice(start, start + _COLUMNS_A_BLOCK)
        ratio = resampling.ratios(numerators[:, block], denominators[:, block], None if noise is None else noise.of(block))
        for (low, high), confidence in zip(found, confidences, strict=True):
            low[block], high[block] = interval(ratio, confidence=confidence)
    return found


def verdicts(statistics: pd.DataFrame, words: tuple[str, str, str, str], margin: float) -> pd.Series:
    """In `words` for higher, lower, equivalent, undecided: what each row's `difference`, `p_bh` and 90 % interval say.

    Higher or lower: p_bh < .05. Else equivalent: the 90 % interval lies within +-`margin`, or there is no difference at all.
    """
    significant = statistics["p_bh"] < SIGNIFICANCE
    within = (statistics["narrow_low"] > -margin) & (statistics["narrow_high"] < margin)
    none_at_all = (statistics["difference"] == 0) & (statistics["p"] == 1) & (statistics["effect_size"].isna())
    cases = [significant & (statistics["difference"] > 0), significant & (statistics["difference"] < 0), within | none_at_all]
    return pd.Series(np.select(cases, words[:3], words[3]), index=statistics.index, dtype=object)


def too_few_to_show(statistics: pd.DataFrame, noun: str, what: str, among: str) -> pd.Series:
    """The notes, with one where the clusters are too few for anything to be found in so many tests.

    `statistics` as of `paired_statistics`; `noun`: what a cluster is called, `what` would be found, and `among` what a test is called.
    """
    tested = statistics["p"].notna()
    needed, tests = fewest_clusters(int(tested.sum())), counted(int(tested.sum()), among)
    few = tested & (statistics["n_clusters"] < needed)
    cannot = f"cannot show {what} at {SIGNIFICANCE:g} among {tests}: at least {needed} are needed"
    why = [f"{counted(n, noun)} {cannot}" for n in statistics["n_clusters"]]
    return statistics["note"].where(~few, pd.Series(why, statistics.index, dtype=object))


def with_intervals_that_hold_0(notes: pd.Series, found: pd.Series, statistics: pd.DataFrame, noun: str) -> pd.Series:
    """`notes` with one for rows that a test `found` to differ (bool) although the interval, `low` to `high`, holds 0.

    Both are right: the test asks what chance does where there is no difference. Then unequal clusters do not matter, nor, between two that
    were asked, which people answered.
    """
    holds = found & (statistics["low"] <= 0) & (statistics["high"] >= 0) & (notes == "")
    why = (
        f"the interval holds 0 although p is below {SIGNIFICANCE:g}: it allows for more, such as {plural(noun)} of unequal size"
    )
    return notes.mask(holds, why)


def _quotient(numerators: Floats, denominators: Floats) -> Floats:
    """NaN where the denominator is 0 or unknown."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(denominators > 0, numerators / denominators, np.nan))


def _deviation(values: Floats) -> Floats:
    """Standard deviation down each column over what is there, n - 1 in the denominator; NaN where fewer than two are."""
    here = ~np.isnan(values)
    n = here.sum(axis=0)
    mean = _quotient(np.nansum(values, axis=0), n.astype(np.float64))
    away = np.where(here, values - mean, 0.0)
    largest = np.where(here, np.abs(values), 0.0).max(axis=0, initial=0.0)
    squares = (without_rounding(away, largest) ** 2).sum(axis=0)
    variance = _quotient(squares, np.maximum(n - 1, 0).astype(np.float64))
    return np.asarray(np.sqrt(variance))
