"""Closed forms of a ceiling, as far as they hold: the independent definition that ceilings are checked against."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

Floats = npt.NDArray[np.float64]


def divergence_formula(n: npt.ArrayLike, k: npt.ArrayLike) -> Floats:
    """Expected Jensen-Shannon divergence in bits of a distribution of k options from a sample of n: (k - 1) / (8 n ln 2).

    The first term of its expansion in 1/n: good from n = 50 on where every option is chosen by several people, wrong below n = 20.
    """
    return np.asarray((np.asarray(k) - 1) / (8 * np.asarray(n) * np.log(2)))


def similarity_formula(n: npt.ArrayLike, k: npt.ArrayLike) -> Floats:
    """Expected `js` of a distribution of k options against a sample of n, where `divergence_formula` holds.

    The divergence is about chi-squared with k - 1 degrees of freedom over 8 n ln 2, so its root is chi over the root of that:
    1 - sqrt(2) Gamma(k / 2) / Gamma((k - 1) / 2) / sqrt(8 n ln 2).
    """
    options, size = np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
    chi = np.sqrt(2) * np.exp(gammaln(options / 2) - gammaln((options - 1) / 2))
    return np.asarray(1 - chi / np.sqrt(8 * size * np.log(2)))
