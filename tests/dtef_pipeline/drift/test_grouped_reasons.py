"""Series that were not compared for one reason are counted together, whatever their scores are."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.drift.rule import apply_drift_rule
from dtef_pipeline.drift.verdict_text import group_reasons

AT_HOURS = {"equal": ((0.5, 0.5), 48), "apart": ((0.5, 0.51), 48), "close": ((0.5, 0.9), 3), "close and equal": ((0.5, 0.5), 3)}
GROUPED = {
    "equal": "the scores are equal in both of the snapshots: below the thresholds 0.05 and 10 %",
    "apart": "the scores differ: below the thresholds 0.05 and 10 %",
    "close": "not compared: the snapshots span too little time, 23 h needed",
    "close and equal": "not compared: the snapshots span too little time, 23 h needed",
}


@pytest.mark.parametrize("kind", GROUPED)
def test_reasons_of_series_with_other_scores_are_one(kind: str) -> None:
    """`dtef drift` had twenty rows for one reason, since each held the score of its series."""
    (first, second), hours = AT_HOURS[kind]
    found: dict[str, int] = {}
    for more, later in ((0.0, 0), (0.0625, 1)):
        values = pd.DataFrame({"night.1": np.full(4, first + more), "night-2": np.full(4, second + more)})
        at = {
            "night.1": datetime(2026, 1, 1, tzinfo=UTC),
            "night-2": datetime(2026, 1, 1 + hours // 24, hours % 24 + later, tzinfo=UTC),
        }
        reason = apply_drift_rule(values, at, temperature=0).reason
        assert f"{first + more:.4f} in" in reason
        found[f"{reason}; no longer asked: last in night-2"] = 2
    assert group_reasons(found) == [(f"{GROUPED[kind]}; no longer asked: last in night-2", 4)]
    (alone, _) = found
    assert group_reasons({alone: 3}) == [(alone, 3)]


def test_other_reasons_stay_apart_and_the_most_frequent_stands_first() -> None:
    counts = {"not compared: temperature is 0.7, not 0": 1, "not compared: temperature is 1, not 0": 2, "": 1}
    assert group_reasons(counts) == [
        ("not compared: temperature is 1, not 0", 2),
        ("", 1),
        ("not compared: temperature is 0.7, not 0", 1),
    ]
    few = {f"equal; {n} of 1,200 prompts of base are compared: the reference snapshots have no others": 1 for n in (3, 4)}
    assert group_reasons(few) == [("equal; not all prompts of base are compared: the reference snapshots have no others", 2)]
