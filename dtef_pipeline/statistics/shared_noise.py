"""Noise that clusters share, because the same people were observed in all of them.

Where clusters are observed apart, their noise averages out over many of them. Where the same people answer everything, a part of it does not:
people who happen to answer alike in one cluster do so in others. How much cannot be told from sums of answers; it takes what each person
answered. So the correlation is a stated constant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Correlation = Floats | float

CORRELATION = 0.02
"""Of the noise of two clusters. Noise of the second order (a sample scatters about its truth, whatever the direction) correlates as the
square of Cramer's V between two answers (mean V of .13: mean square of .02); that of the first order with either sign."""

OF_OBSERVED = 0.06
"""The same where a prediction is made of observed answers, such as the mean of other groups. Groups differ from each other in the ways in which
people do. So what such a prediction gets wrong about a group, and what chance does to a sample of it, agree in every cluster or in none."""


class NoiseVariances(NamedTuple):
    """Variances that noise gives a sum over all clusters, (columns,) each."""

    apart: Floats
    """If clusters were observed apart."""
    shared: Floats
    """What it is more because the same people are behind all of them."""

    def over(self, total: Floats) -> NoiseVariances:
        """Those of the sum divided by `total` (columns,)."""
        return NoiseVariances(self.apart / total**2, self.shared / total**2)

    def of(self, columns: npt.NDArray[np.intp]) -> NoiseVariances:
        return NoiseVariances(self.apart[columns], self.shared[columns])


def noise_variances(noise: npt.NDArray[np.floating], correlation: Correlation = 0.0) -> NoiseVariances:
    """`noise` (replicates, clusters, columns): centred deviations of what is summed, in all clusters apart.

    With t_c the standard deviation of cluster c's noise: apart = sum t_c^2, shared = r ((sum t_c)^2 - sum t_c^2), r the `correlation` of a
    column (columns,) or of all. Where it is known what each person answered, drawing people anew gives both; nothing else
    need change.
    """
    squares = np.asarray(np.einsum("rcj,rcj->cj", noise, noise, dtype=np.float64) / len(noise))
    apart = squares.sum(axis=0)
    shared = correlation * (np.sqrt(squares).sum(axis=0) ** 2 - apart)
    return NoiseVariances(apart, np.maximum(shared, 0))
