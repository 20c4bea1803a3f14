"""Intervals of rubric boards and of compared runs hold the truth about as often as they say; docs/how-to/rubric.md has many more sets."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from benchmarks import rubric_coverage
from benchmarks.rubric_coverage import WORLDS, expected, of_one, of_set


@pytest.mark.thorough
def test_uneven_blueprints_with_gaps_leave_the_board_as_sure_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rubric_coverage, "DRAWN_FOR_TRUTH", 60_000)
    world = replace(WORLDS["12, of 2 to 250 prompts"], lacking=0.1)
    truth = expected(world)
    found = pd.DataFrame([of_set(world, truth, at) for at in range(40)]).mean()
    assert 0.88 <= found["board"] <= 1
    assert found["rank"] >= 0.93


@pytest.mark.thorough
def test_prompts_of_one_blueprint_leave_scores_and_differences_as_sure_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rubric_coverage, "PROMPTS_WITHIN", 3_000)
    monkeypatch.setattr(rubric_coverage, "_WITHIN", {})
    found = pd.DataFrame([of_one(20, at) for at in range(30)]).mean()
    assert 0.88 <= found["within"] <= 1
    assert 0.88 <= found["runs"] <= 1
