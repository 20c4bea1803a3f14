"""The documented rule of drift: thresholds, exact at the boundary; series to be looked into; reasons counted together."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.drift.models import drift_checks
from dtef_pipeline.drift.rule import DriftVerdict, apply_drift_rule, build_rule_table
from dtef_pipeline.drift.verdict_tables import DRIFT_RULE
from dtef_pipeline.drift.verdict_text import group_reasons
from dtef_pipeline.survey.drift_subject import SUBJECT
from tests.made.scores import scores_table
from tests.made.snapshots import nights


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


def row(model: str, gap: float | None, partition: str = "S1/a", test: str = "t") -> dict[str, Any]:
    named = {"partition": partition, "test": test, "model": model, "setting": "plain"}
    return {**named, "gap": gap, "flagged": gap is not None and gap >= 0.2}


def test_the_flagged_series_with_the_largest_gap_of_its_partition_and_test_is_to_be_investigated() -> None:
    rows = [row("m", 0.2), row("n", 0.6), row("o", 0.1), row("first", 0.3, "S1/b"), row("equal", 0.3, "S1/b")]
    rows += [row("other", 0.2, test="u"), row("alone", 0.1, "S1/c"), row("lacks", None, "S1/c")]
    with duckdb.connect() as connection:
        found = build_rule_table(connection, replace(SUBJECT, rule=lambda _: rows))
    assert found.schema == DRIFT_RULE
    assert [one["model"] for one in found.to_pylist() if one["is_largest_gap"]] == ["n", "first", "other"]
    assert set(found["family"].to_pylist()) == {"survey"}


def test_of_surveys_it_is_what_the_stage_found_in_each_segment() -> None:
    checks = drift_checks(scores_table([*nights([0.8, 0.8, 0.5]), *nights([0.6] * 3, model="steady")]), SUBJECT)
    with duckdb.connect() as connection:
        assert len(build_rule_table(connection, SUBJECT)) == 0, "the stage has not run yet"
        connection.register("drift_checks", checks)
        found = build_rule_table(connection, SUBJECT).to_pylist()
    assert [(one["partition"], one["model"], one["setting"], one["is_largest_gap"]) for one in found] == [
        ("S1/country:kenya", "m", "context 0", True),
        ("S1/country:kenya", "steady", "context 0", False),
    ]
    for one, stored in zip(found, checks.to_pylist(), strict=True):
        assert {name: one[name] for name in ("lowest", "highest", "gap", "reason")} == {
            name: stored[name] for name in ("lowest", "highest", "gap", "reason")
        }
        assert one["test"] == ""


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
    few = {f"equal; {n} of 1,200 prompts of base are compared: the baseline has no others": 1 for n in (3, 4)}
    assert group_reasons(few) == [("equal; not all prompts of base are compared: the baseline has no others", 2)]
