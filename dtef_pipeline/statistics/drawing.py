"""Draws without replacement with a known chance for each element.

Source: systematic sampling with probabilities in proportion to size (Madow 1949; Särndal, Swensson & Wretman 1992, 3.6), in random order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.text.quantity_words import format_count

Floats = npt.NDArray[np.float64]


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
