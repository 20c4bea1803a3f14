"""The documented rule of drift: both thresholds, exact at the boundary, over items of all snapshots."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import pandas as pd
import pytest

from dtef_pipeline.drift.checks import drift_checks
from dtef_pipeline.drift.rule import DriftVerdict, drift_verdict, of_one_snapshot
from dtef_pipeline.survey.drift_subject import SUBJECT
from tests.made.scores import scores_table

DAY_1, DAY_2 = datetime(2026, 1, 1), datetime(2026, 1, 2)


def verdict(first: list[float], second: list[float], *, temperature: float | None = 0.0, hours: float = 24) -> DriftVerdict:
    times = {"a": datetime(2026, 1, 1), "b": datetime.fromtimestamp(datetime(2026, 1, 1).timestamp() + 3600 * hours)}
    return drift_verdict(pd.DataFrame({"a": first, "b": second}), times, temperature=temperature)


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


@pytest.mark.parametrize("scores", [[0.5, 0.6], [0.5, None], [None, None], [0.5, None, None], []])
@pytest.mark.parametrize("temperature", [0.0, 0.7, None])
@pytest.mark.parametrize("time", [DAY_1, None])
def test_a_single_snapshot_is_said_to_be_what_the_rule_says_of_it(
    scores: list[float | None], temperature: float | None, time: datetime | None
) -> None:
    values = pd.DataFrame({"a": scores} if scores else {}, dtype=float)
    scored = sum(score is not None for score in scores)
    found = of_one_snapshot(len(scores), scored, is_timed=time is not None, temperature=temperature)
    assert found == drift_verdict(values, {"a": time}, temperature=temperature)


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


def test_hours_that_rest_on_the_date_of_a_label_say_so() -> None:
    """Two runs five minutes apart were said to span 11.1 h."""
    words = "(a label with a date counts as 0:00 UTC of that day)"
    for label, expected in (("2026-11-23", True), ("2026-11-23T0200", False), ("night", False)):
        times = {"base": datetime(2026, 11, 22, 12, 54), label: datetime(2026, 11, 23)}
        found = drift_verdict(pd.DataFrame({"base": [0.1], label: [0.9]}), times, temperature=0.0)
        assert "the snapshots span 11.1 h, 23 h needed" in found.reason
        assert (words in found.reason) is expected


def night(
    snapshot: str, score: float, *, model: str = "m", segment: str = "country:kenya", questions: int = 4
) -> list[dict[str, Any]]:
    return [
        {
            "snapshot": snapshot,
            "score": score,
            "model": model,
            "model_variant": model,
            "segment": segment,
            "question_id": f"q{i}",
        }
        for i in range(questions)
    ]


def test_round_series_takes_all_segments_together() -> None:
    rows = [*night("2026-01-01", 0.9), *night("2026-01-02", 0.7), *night("2026-01-01", 0.7, segment="country:chile")]
    rows += night("2026-01-02", 0.9, segment="country:chile")
    assert [row["flagged"] for row in drift_checks(scores_table(rows), SUBJECT).to_pylist()] == [True, True]
    (whole,) = drift_checks(scores_table(rows), SUBJECT, levels=1).to_pylist()
    assert (whole["segment"], whole["flagged"], whole["n_prompts"]) == (None, False, 8)


def test_questions_of_one_prompt_count_each_and_conditions_are_apart() -> None:
    rows = [{**row, "prompt_id": "batch"} for day in "12" for row in night(f"2026-01-0{day}", 0.8)]
    other = [{**row, "condition": "batch=4/attribute-label"} for row in rows]
    checks = drift_checks(scores_table([*rows, *other]), SUBJECT).to_pylist()
    assert [row["condition"] for row in checks] == ["batch=4/attribute-label", "distribution/attribute-label"]
    assert [row["n_prompts"] for row in checks] == [4, 4]
