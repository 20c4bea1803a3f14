"""The colours of the heat maps: a sequence from dark to light that reads the same without colour vision (cividis; Nunez et al. 2018)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_BLACK, _WHITE = "#000000", "#ffffff"
STEPS = (
    *(("#00224e", _WHITE), ("#123570", _WHITE), ("#3b496c", _WHITE), ("#575d6d", _WHITE), ("#666970", _WHITE)),
    *(("#8a8678", _BLACK), ("#a59c74", _BLACK), ("#c3b369", _BLACK), ("#e1cc55", _BLACK), ("#fee838", _BLACK)),
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
