"""The documented rule of drift: both thresholds, exact at the boundary, over items of all snapshots."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import pandas as pd
import pytest

from dtef_pipeline.drift.rule import DriftVerdict, apply_drift_rule


def verdict(first: list[float], second: list[float], *, temperature: float | None = 0.0, hours: float = 24) -> DriftVerdict:
    times = {"a": datetime(2026, 1, 1), "b": datetime.fromtimestamp(datetime(2026, 1, 1).timestamp() + 3600 * hours)}
    return apply_drift_rule(pd.DataFrame({"a": first, "b": second}), times, temperature=temperature)


@pytest.mark.parametrize(
    ("low", "high", "flagged"),
    [
        (0.30, 0.35, True),  # 0.35 - 0.30 is below 0.05 in floating point, and counts
        (0.50, 0.55, True),  # exactly 10 % of the lowest
        (0.60, 0.65, False),  # 0.05, but only 8.3 %
        (0.20, 0.24, False),  # 20 %, but only 0.04
        (0.00, 0.05, True),  # no lowest to be relative to
        (0.80, 0.88, True),
        (0.80, 0.8799, False),
    ],
)
def test_both_thresholds_are_needed_and_exact_at_the_boundary(low: float, high: float, flagged: bool) -> None:
    assert verdict([low], [high]).flagged is flagged
    assert verdict([high], [low]).flagged is flagged


def test_means_are_over_items_scored_in_every_snapshot() -> None:
    found = verdict([0.5, 0.5, math.nan], [0.5, math.nan, 0.9])
    assert (found.n_items, found.gap, found.flagged) == (1, pytest.approx(0, abs=1e-12), False)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"temperature": 0.7}, "temperature is 0.7, not 0"),
        ({"temperature": None}, "temperature is not set"),
        ({"hours": 22.9}, "span 22.9 h, 23 h needed"),
        ({"hours": 22.97}, "span 22.9 h, 23 h needed"),
    ],
)
def test_series_that_may_not_be_compared_say_why(arguments: dict[str, Any], reason: str) -> None:
    found = verdict([0.1], [0.9], **arguments)
    assert not found.flagged
    assert found.gap is None
    assert reason in found.reason
