"""The colours of the heat maps: a sequence from dark to light that reads the same without colour vision (cividis; Nunez et al. 2018)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_DARK, _LIGHT = "#000000", "#ffffff"
STEPS = (
    *(("#00224e", _LIGHT), ("#123570", _LIGHT), ("#3b496c", _LIGHT), ("#575d6d", _LIGHT), ("#666970", _LIGHT)),
    *(("#8a8678", _DARK), ("#a59c74", _DARK), ("#c3b369", _DARK), ("#e1cc55", _DARK), ("#fee838", _DARK)),
)
"""Ground and ink of each step, low to high; the ink has a contrast of at least 4.5 with its ground."""


def steps(values: npt.ArrayLike) -> list[float]:
    """Equal steps between the 2nd and the 98th percentile, so that one dead model does not make all others look alike: inner edges."""
    known = np.asarray(values, dtype=np.float64)
    known = known[np.isfinite(known)]
    low, high = np.quantile(known, [0.02, 0.98]) if len(known) else (0.0, 1.0)
    return [float(edge) for edge in np.linspace(low, high, len(STEPS) + 1)[1:-1]]


def colour(value: float, edges: Sequence[float]) -> int:
    """The step (0 is the lowest) of a value."""
    return bisect_right(edges, value)
