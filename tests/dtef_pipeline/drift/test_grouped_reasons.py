"""Series that were not compared for one reason are counted together, whatever their scores are."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.drift.grouped_reasons import without_values
from dtef_pipeline.drift.rule import drift_verdict

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
    found = set()
    for more, later in ((0.0, 0), (0.0625, 1)):
        values = pd.DataFrame({"night.1": np.full(4, first + more), "night-2": np.full(4, second + more)})
        at = {
            "night.1": datetime(2026, 1, 1, tzinfo=UTC),
            "night-2": datetime(2026, 1, 1 + hours // 24, hours % 24 + later, tzinfo=UTC),
        }
        reason = drift_verdict(values, at, temperature=0).reason
        assert f"{first + more:.4f} in" in reason
        found.add(without_values(f"{reason}; no longer asked: last in night-2"))
    assert found == {f"{GROUPED[kind]}; no longer asked: last in night-2"}


def test_other_words_stay_as_they_are() -> None:
    for reason in (
        "not compared: temperature is 0.7, not 0",
        "not compared: 1 snapshot with responses to these prompts, 2 are needed",
        "",
    ):
        assert without_values(reason) == reason
    assert without_values("3 of 1,200 prompts of base are compared: the baseline has no others").startswith(
        "not all prompts of base"
    )
