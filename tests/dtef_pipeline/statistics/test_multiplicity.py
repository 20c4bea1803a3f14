"""Adjusted p: by hand, by plain loops, and what it does to false findings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.multiplicity import holm


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_adjustment_agrees_with_plain_loops(p: list[float]) -> None:
    least, found = 0.0, dict[int, float]()
    for place, at in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        least = max(least, p[at] * (len(p) - place))
        found[at] = min(least, 1.0)
    assert holm(p) == pytest.approx([found[at] for at in range(len(p))])


def test_unknown_ones_are_not_counted() -> None:
    adjusted = holm([0.02, np.nan, 0.03])
    assert adjusted[[0, 2]] == pytest.approx([0.04, 0.04])
    assert np.isnan(adjusted[1])
    assert len(holm([])) == 0


@pytest.mark.parametrize("p", [[-0.1], [1.1], [[0.5]]])
def test_other_values_are_refused(p: npt.ArrayLike) -> None:
    with pytest.raises(ConfigError, match="allowed: one dimension, values from 0 to 1"):
        holm(p)
