"""Which baselines there are. What each of them answers stands in `baselines.py` and `neighbours.py`."""

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
"""Every baseline with the seed that it has unless another is given; None: nothing in it is drawn, so it takes none."""

CONTAIN_THE_SEGMENT = (POPULATION_MARGINAL,)
"""Baselines whose predictions are made of the segment's own answers, too."""
WHY_NOT_TESTED = (
    "not tested: the prediction contains the segment's own answers, and the larger the segment the more of them, "
    "so that it suits large segments better even where all groups are equal"
)
"""Why such a baseline has no verdict of its differences between segments."""
