"""Difference of two players' rewards on the same games, where both have the same luck of the deal."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dtef_pipeline.site.content import Estimate
from dtef_pipeline.statistics.cluster_robust import estimate_ratios

NO_ESTIMATE = Estimate(None)


def compare_on_seeds(rewards: pd.DataFrame, player: str, rival: str) -> Estimate:
    """Return the mean difference of rewards with its 95% interval by seeds, over the games (seed, seat, opponent) that both players have.

    `rewards`: games by players, see `ScenarioResults.rewards`. Unknown without a common game; no interval with fewer than 5 seeds.
    """
    if player not in rewards or rival not in rewards:
        return NO_ESTIMATE
    difference = (rewards[player] - rewards[rival]).to_numpy(dtype=np.float64)
    is_shared = ~np.isnan(difference)
    if not is_shared.any():
        return NO_ESTIMATE
    seeds = np.unique(rewards.index.get_level_values("cluster")[is_shared], return_inverse=True)[1]

    sums = np.bincount(seeds, difference[is_shared]).astype(np.float64)
    ratios = estimate_ratios(sums[:, None], np.bincount(seeds).astype(np.float64)[:, None])
    low, high = ratios.interval()
    return Estimate(float(ratios.value[0]), float(low[0]), float(high[0]))


def describe_difference(difference: Estimate) -> str:
    """Return `no clear difference` if the interval contains 0, else `better` or `worse`; `not tested` without an interval."""
    low, high = difference.low, difference.high
    if low is None or high is None or np.isnan(low):
        return "not tested"
    return "better" if low > 0 else "worse" if high < 0 else "no clear difference"
