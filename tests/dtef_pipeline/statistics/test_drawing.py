"""Each thing is drawn with the chance that is recorded for it."""

from __future__ import annotations

import numpy as np
import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.prediction_powered import compute_chances, draw_sample


def test_chances_are_in_proportion_to_size_and_sum_to_the_number_drawn() -> None:
    assert compute_chances([1, 1, 2], 2) == pytest.approx([0.5, 0.5, 1])
    assert compute_chances([1, 1, 1, 9, 2], 3) == pytest.approx([0.4, 0.4, 0.4, 1, 0.8])
    assert compute_chances([5, 1], 7) == pytest.approx([1, 1])
    assert compute_chances([1, 1, 1, 4, 100], 3) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1, 1])


def test_things_are_drawn_as_often_as_their_chance_says_and_always_as_many() -> None:
    rng = np.random.default_rng(2)
    chance = compute_chances(rng.pareto(1.5, 23) + 0.1, 9)
    made = np.array([draw_sample(chance, rng) for _ in range(4000)])
    assert set(made.sum(axis=1).tolist()) == {9}
    assert np.abs(made.mean(axis=0) - chance).max() < 4 * 0.5 / 4000**0.5


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ConfigError, match="0 items to draw"):
        compute_chances([1, 2], 0)
    with pytest.raises(ConfigError, match="size of 0; allowed: above 0"):
        compute_chances([1, 0], 1)
