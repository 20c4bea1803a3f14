"""The names of the baselines. `baselines.py` computes their predictions."""

from __future__ import annotations

from collections.abc import Mapping

UNIFORM = "baseline/uniform"
POPULATION_MARGINAL = "baseline/population-marginal"
LEAVE_ONE_OUT = "baseline/leave-one-out-marginal"
SHUFFLED_SEGMENT = "baseline/shuffled-segment"
DIRICHLET = "baseline/dirichlet"
PREVIOUS_ROUND = "baseline/previous-round"
NEAREST_SEGMENTS = "baseline/nearest-segments"
EMPIRICAL_BAYES = "baseline/empirical-bayes"

DEFAULT_SEED = 0
BASELINES: Mapping[str, int | None] = {
    UNIFORM: None,
    POPULATION_MARGINAL: None,
    LEAVE_ONE_OUT: None,
    SHUFFLED_SEGMENT: None,
    DIRICHLET: DEFAULT_SEED,
    PREVIOUS_ROUND: None,
    NEAREST_SEGMENTS: None,
    EMPIRICAL_BAYES: None,
}
"""Every baseline with its default seed; None: it draws nothing and takes no seed."""

CONTAIN_THE_SEGMENT = (POPULATION_MARGINAL,)
"""Baselines whose predictions also use the segment's own answers."""
WHY_NOT_TESTED = "not tested: the prediction contains the segment's own answers, which favours large segments"
"""Why such a baseline has no verdict on differences between segments."""
