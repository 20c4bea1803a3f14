"""Ranks that tests of pairs leave open: by hand, and how often they hold the true ranks."""

from __future__ import annotations

import numpy as np

from dtef_pipeline.statistics.rank_bounds import rank_bounds, rank_bounds_of_means


def test_bounds_count_the_models_that_are_better_and_worse() -> None:
    # 0 beats 2 and 3, 1 beats 3: of 0 and 1, and of 1 and 2, nothing is known.
    found = rank_bounds(np.array([0, 0, 1]), np.array([2, 3, 3]), 4)
    assert (found.low.tolist(), found.high.tolist()) == ([1, 1, 2, 3], [2, 3, 4, 4])


def test_models_far_apart_have_one_rank_and_those_on_few_clusters_every_rank() -> None:
    rng = np.random.default_rng(1)
    level = rng.random((12, 1))
    means = np.hstack([level + 0.5, level, level + 0.25]) + rng.normal(0, 0.02, (12, 3))
    counts = np.ones((12, 4))
    counts[4:, 3] = 0
    found = rank_bounds_of_means(np.hstack([means, level]) * counts, counts)
    assert (found.low.tolist(), found.high.tolist()) == ([1, 3, 2, 1], [2, 4, 3, 4])
    alone = rank_bounds_of_means(means[:, :1], counts[:, :1])
    assert (alone.low.tolist(), alone.high.tolist()) == ([1], [1])
