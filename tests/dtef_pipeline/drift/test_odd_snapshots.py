"""Snapshots that asked something else: one for once hides no verdict, and a panel that changed for good is gone over to."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.drift.evidence import BASELINE
from dtef_pipeline.drift.rule import drift_verdict
from dtef_pipeline.drift.snapshots import Snapshot, latest_comparable
from tests.dtef_pipeline.drift.model_drift_rows import STEADY, check, found
from tests.made.snapshots import label, nights

FELL = [*STEADY, *[0.6] * 6]


def other(night: int, **given: Any) -> list[dict[str, Any]]:
    """A night that asked one question alone, which the others did not."""
    return nights([0.3], first=night, questions=1, segment="x:y", **given)


@pytest.mark.parametrize("odd", [other(11), nights([0.3], first=11, questions=1), nights([0.3], first=11, questions=2)])
def test_one_odd_snapshot_at_the_end_hides_no_verdict_and_is_named(odd: list[dict[str, Any]]) -> None:
    """One ad-hoc snapshot took the verdict of all nights before it."""
    plain, row = check(nights(FELL)), check([*nights(FELL), *odd])
    same = ("verdict", "direction", "shift", "first_snapshot", "log10_e", "n_snapshots", "lowest", "highest", "baseline")
    assert {name: row[name] for name in same} == {name: plain[name] for name in same}
    assert row["verdict"] == "drift"
    assert row["latest_snapshot"] == label(11)
    assert f"left out: {label(11)} (asked something else)" in row["reason"]
    assert "not comparable" not in row["reason"]


def test_one_that_a_budget_stopped_is_named_with_its_reason() -> None:
    stopped = nights([0.8], first=11, status="budget", score=None, js=None)[3:] + nights([0.8], first=11, questions=3)
    row = check([*nights(FELL), *stopped])
    assert (row["verdict"], row["n_snapshots"]) == ("drift", 11)
    assert f"left out: {label(11)} (too few answers)" in row["reason"]


def test_a_panel_that_changed_for_good_is_gone_over_to_once_two_of_its_nights_can_be_compared() -> None:
    changed = [*nights(FELL), *other(11), *other(12)]
    row = check(changed)
    assert (row["verdict"], row["n_snapshots"], row["n_questions"]) == ("none", 2, 1)
    assert f"another panel since {label(11)}: earlier snapshots are not comparable" in row["reason"]
    back = check([*changed, *nights([0.6], first=13)])
    assert f"left out: {label(13)} (asked something else)" in back["reason"]
    assert check([*changed, *nights([0.6, 0.6], first=13)])["verdict"] == "drift"


def test_two_odd_snapshots_of_one_day_hide_nothing_either() -> None:
    at = datetime(2026, 1, 12, 9, tzinfo=UTC)
    odd = [{**row, "snapshot": name, "answered_at": at} for name in ("try-1", "try-2") for row in other(11)]
    row = check([*nights(FELL), *odd])
    assert row["verdict"] == "drift"
    assert "left out: try-1 (asked something else), try-2 (asked something else)" in row["reason"]


def test_many_odd_snapshots_of_another_model_on_one_day_retire_no_series() -> None:
    at = datetime(2026, 1, 12, 9, tzinfo=UTC)
    tried = [{**row, "snapshot": f"try-{n}", "answered_at": at} for n in range(6) for row in nights([0.5], model="new")]
    checks, _ = found([*nights(FELL), *tried])
    assert {row["model"]: row["verdict"] for row in checks} == {"m": "drift", "new": None}


def test_two_panels_in_turn_stay_with_the_first() -> None:
    rows = [row for night in range(0, 8, 2) for row in [*nights([0.8], first=night), *other(night + 1)]]
    assert check(rows)["n_questions"] == 10
    assert check(rows)["n_snapshots"] == 4


def test_what_is_compared_depends_on_no_score() -> None:
    rng = np.random.default_rng(5)
    panels = [np.arange(4, dtype=np.uint64), np.arange(3, 9, dtype=np.uint64), np.arange(20, 22, dtype=np.uint64)]
    for _ in range(50):
        asked = [panels[at] for at in rng.choice(3, size=9, p=[0.6, 0.25, 0.15])]
        times = {label(night): datetime.fromisoformat(label(night)) for night in range(9)}
        chosen = set()
        for _ in range(3):
            made = []
            for night, items in enumerate(asked):
                ones = np.ones(len(items))
                made.append(Snapshot(label(night), items, rng.random(len(items)), ones, ones, ones))
            chosen.add(tuple(one.label for one in latest_comparable(made, BASELINE, times).snapshots))
        assert len(chosen) == 1


@pytest.mark.parametrize(("count", "said"), [(2, "both"), (3, "all 3")])
def test_equal_scores_are_said_to_be_equal_and_no_snapshot_is_named_twice(count: int, said: str) -> None:
    """ "0.7897 in 2026-01-31, 0.7897 in 2026-01-31" named one night twice."""
    values = pd.DataFrame({label(night): [0.78966, 0.78968] for night in range(count)})
    rule = drift_verdict(values, {name: datetime.fromisoformat(name) for name in values}, temperature=0)
    assert rule.reason == f"the scores are equal, 0.7897 in {said} of the snapshots: below the thresholds 0.05 and 10 %"
