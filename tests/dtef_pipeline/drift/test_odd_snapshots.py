"""Snapshots that share few prompts with the others: one for once hides no verdict, and a panel that changed for good is gone over to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from dtef_pipeline.drift.evidence import BASELINE
from dtef_pipeline.drift.history import Snapshot, build_panels
from tests.made.snapshots import STEADY, Rows, check, label, nights

FELL = [*STEADY, *[0.6] * 6]


def other(night: int, **given: Any) -> list[dict[str, Any]]:
    """A night that asked one question alone, which the others did not."""
    return nights([0.3], first=night, questions=1, segment="x:y", **given)


@pytest.mark.parametrize("odd", [other(11), nights([0.3], first=11, questions=1)])
def test_one_odd_snapshot_at_the_end_hides_no_verdict_and_is_named(odd: list[dict[str, Any]]) -> None:
    """One ad-hoc snapshot took the verdict of all nights before it."""
    plain, row = check(nights(FELL)), check([*nights(FELL), *odd])
    same = ("verdict", "shift", "first_snapshot", "log10_e", "n_snapshots", "gap", "baseline")
    assert {name: row[name] for name in same} == {name: plain[name] for name in same}
    assert row["verdict"] == "drift"
    assert row["latest_snapshot"] == label(11)
    assert f"left out: {label(11)} (had too few comparable prompts)" in row["reason"]
    assert "not compared" not in row["reason"]


def test_one_that_a_budget_stopped_is_named_with_its_reason() -> None:
    stopped = nights([0.8], first=11, status="budget", score=None, js=None)[3:] + nights([0.8], first=11, questions=3)
    row = check([*nights(FELL), *stopped])
    assert (row["verdict"], row["n_snapshots"]) == ("drift", 11)
    assert f"left out: {label(11)} (too few answers)" in row["reason"]


def test_a_panel_that_changed_for_good_is_gone_over_to_once_two_of_its_snapshots_can_be_compared() -> None:
    row = check([*nights(STEADY), *other(5), *other(6)])
    assert (row["verdict"], row["n_snapshots"], row["n_prompts"]) == ("none", 2, 1)
    assert f"{label(5)} asked other questions or segments, so earlier snapshots are not compared with it" in row["reason"]
    assert (
        "had too few comparable prompts (10 questions in 1 segment of S1, 10 prompts), compared with each other: none"
        in row["reason"]
    )


SMALLER = {"fewer questions": lambda night: nights([0.8], first=night, questions=2), "another segment": other}


@pytest.mark.parametrize("asked", SMALLER.values(), ids=SMALLER)
@pytest.mark.parametrize("odd", [2, pytest.param(9, marks=pytest.mark.thorough)])
def test_a_verdict_is_not_hidden_by_snapshots_that_ask_fewer_pairs(asked: Callable[[int], Rows], odd: int) -> None:
    """Two ad-hoc snapshots of one question turned `watch` into `none`, and --fail-on passed."""
    means = [0.8, 0.6]
    plain = check(nights(means))
    rows = [*nights(means), *(row for night in range(2, 2 + odd) for row in asked(night))]
    row = check(rows)
    same = ("verdict", "shift", "first_snapshot", "log10_e", "n_prompts", "n_snapshots", "baseline")
    assert {name: row[name] for name in same} == {name: plain[name] for name in same}
    assert (row["verdict"], row["latest_snapshot"]) == ("watch", label(1 + odd))
    assert f"compared with each other: none; this verdict stays until it is accepted with --since {label(2)}" in row["reason"]
    assert "left out" not in row["reason"]
    assert check(rows, since={"": label(2)})["verdict"] == "none"


def test_a_smaller_panel_that_was_asked_in_between_counts_no_more() -> None:
    rows = [
        *nights(STEADY),
        *nights([0.3], first=5, questions=1, segment="x:y"),
        *nights([0.6], first=6, questions=1, segment="x:y"),
    ]
    assert check(rows)["verdict"] == "watch"
    row = check([*rows, *nights([0.8] * 2, first=7)])
    assert (row["verdict"], row["n_snapshots"]) == ("none", 7)
    assert f"left out: {label(5)} (had too few comparable prompts), {label(6)}" in row["reason"]
    back = [
        *nights([0.8] * 2, questions=1, segment="x:y"),
        *nights(FELL, first=2),
        *nights([0.8] * 2, first=13, questions=1, segment="x:y"),
    ]
    assert check(back)["verdict"] == "drift", "the larger panel counts, whichever was there first"


def test_two_equal_snapshots_of_one_day_after_a_larger_one_say_that_hours_are_missing_and_what_they_scored() -> None:
    """A score that fell from 0.62 to 0 read as "1 snapshot with responses to these prompts"."""
    hours = {"n9": 9, "n10": 13}
    fell = [
        {**row, "snapshot": name, "answered_at": datetime(2026, 1, 1, hours[name], tzinfo=UTC)}
        for name, mean in (("n9", 0.62), ("n10", 0.0))
        for row in nights([mean], questions=3)
    ]
    row = check([*nights([0.8], questions=10), *fell])
    assert (row["verdict"], row["n_snapshots"], row["n_prompts"]) == (None, 2, 3)
    assert row["reason"].startswith("not compared: the snapshots span 4.0 h, 23 h needed (0.0000 in n10, 0.6200 in n9)")
    assert "n9 asked other questions or segments, so earlier snapshots are not compared with it" in row["reason"]
    assert "left out" not in row["reason"]
    later = check([*nights([0.8], questions=10), *fell, *nights([0.0], first=2, questions=3)])
    assert later["verdict"] == "watch"
    assert later["reason"].startswith("0.0000 in n10, 0.6200 in n9")


def test_what_is_compared_depends_on_no_score() -> None:
    rng = np.random.default_rng(5)
    asked_in_turn = [np.arange(4, dtype=np.uint64), np.arange(3, 9, dtype=np.uint64), np.arange(20, 22, dtype=np.uint64)]
    for _ in range(15):
        asked = [asked_in_turn[at] for at in rng.choice(3, size=9, p=[0.6, 0.25, 0.15])]
        times = {label(night): datetime.fromisoformat(label(night)) for night in range(9)}
        chosen = set()
        for _ in range(3):
            made = []
            for night, items in enumerate(asked):
                ones = np.ones(len(items))
                made.append(Snapshot(label(night), items, rng.random(len(items)), ones, ones, ones))
            found = build_panels(made, BASELINE, times, lambda items: items)
            chosen.add(tuple(tuple(one.label for one in panel.snapshots) for panel in found))
        assert len(chosen) == 1
