"""Noise that clusters share because the same people were observed in all of them.

If clusters are observed separately, their noise averages out. If the same people answer everything, a part does not: people who happen to
answer alike in one cluster do so in others. The size of that part cannot be estimated from sums of answers, only from the answers of each
person. So the correlation is an assumed constant.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Correlation = Floats | float

CORRELATION = 0.02
"""Of the noise of two items. Noise of the second order (a sample scatters about its truth, whatever the direction) correlates as the
square of Cramer's V between two answers (mean V of .13: mean square of .02); that of the first order with either sign."""

OF_OBSERVED = 0.06
"""The same where a prediction is made of observed answers, such as the mean of other groups. Groups differ from each other in the ways in which
people do. So what such a prediction gets wrong about a group, and what chance does to a sample of it, agree in every item or in none."""


def shared_variance(
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
    """Return `shared_variance` for a correlation of 1, (columns,); `spreads` (columns, samples, clusters): summed standard deviations of
    the parts of each cluster.
    """
    pairs = spreads.sum(axis=2) ** 2 - (spreads**2).sum(axis=2)
    return np.asarray(np.maximum(pairs, 0).sum(axis=1))
