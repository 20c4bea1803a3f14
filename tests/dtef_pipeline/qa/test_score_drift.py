"""Drift of models on items by the project's evidence, beside the documented rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dtef_pipeline.drift.models import compute_model_drift
from dtef_pipeline.drift.rule import build_rule_table
from dtef_pipeline.qa.score_drift import QA_WATCHED
from tests.made.qa_scores import connected, night, score_row

NIGHTS = 12


def rows_of(lost: float, since: int = 6, **changed: Any) -> list[dict[str, Any]]:
    """Two models on two suites, right or wrong. From night `since` on `moved` scores `lost` less; `changed`: what items are there after."""
    rng = np.random.default_rng(1)
    hard = rng.uniform(0.3, 0.9, 80)
    rows = []
    for at in range(NIGHTS):
        for model in ("moved", "steady"):
            right = rng.random(80) < hard - (lost if model == "moved" and at >= since else 0.0)
            rows += [
                score_row(
                    float(one),
                    model=model,
                    suite="mmlu" if item % 2 else "own",
                    part=f"s{item % 4}",
                    item_id=f"i{item}",
                    prompt_id=f"p{item}",
                    **night(at),
                    **(changed if at >= since else {}),
                )
                for item, one in enumerate(right)
            ]
    return rows


def checks(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = compute_model_drift(connected(rows, []), QA_WATCHED)
    return {row["model"]: row for row in found.checks.to_pylist()}


def test_a_planted_shift_is_found_with_its_night_and_the_other_model_is_left_alone() -> None:
    found = checks(rows_of(0.4))
    assert found["moved"]["verdict"] == "drift"
    assert found["moved"]["first_snapshot"] == night(6)["snapshot"]
    assert found["moved"]["shift"] == pytest.approx(-0.35, abs=0.1)
    assert found["moved"]["n_prompts"] == 80
    assert found["moved"]["setting"].startswith("letters, exact_choice by ")
    assert found["moved"]["top_changes"][0]["item"].split("/")[0] in ("mmlu", "own")
    assert found["steady"]["verdict"] != "drift"


def test_another_expected_answer_or_judge_is_no_drift() -> None:
    """A shift that comes with another measure is of the measure."""
    assert "drift" not in {row["verdict"] for row in checks(rows_of(0.4, truth_id="edited")).values()}
    series = compute_model_drift(connected(rows_of(0.4, measured_by="judge x"), []), QA_WATCHED).checks.to_pylist()
    assert len(series) == 4
    assert "drift" not in {row["verdict"] for row in series}


def test_what_served_a_model_is_reported_of_its_nights() -> None:
    rows = rows_of(0.4)
    served = [
        {
            **{name: row[name] for name in ("suite", "part", "item_id", "condition", "model", "model_variant", "snapshot")},
            "served_model": name,
        }
        for row in rows
        for name in [f"{row['model']}-{'new' if row['snapshot'] >= night(6)['snapshot'] else 'old'}"]
    ]
    found = compute_model_drift(connected(rows, served), QA_WATCHED)
    (moved,) = (row for row in found.checks.to_pylist() if row["model"] == "moved")
    assert any("moved-new" in str(change["after"]) for change in moved["changes"])
    assert len(found.series) == 2 * NIGHTS


def test_the_documented_rule_is_applied_to_each_part_at_temperature_0_alone() -> None:
    warm = [score_row(0.5, model="warm", temperature=0.7, **night(at)) for at in range(3)]
    found = build_rule_table(connected([*rows_of(0.4), *warm], []), QA_WATCHED).to_pylist()
    assert {row["model"] for row in found} == {"moved", "steady"}
    assert len(found) == 8
    flagged = [row for row in found if row["model"] == "moved"]
    assert all(row["flagged"] and row["n_items"] == 20 and row["n_snapshots"] == NIGHTS for row in flagged)
    for row in flagged:
        assert row["highest"] - row["lowest"] == pytest.approx(row["gap"])


def test_the_gap_by_hand() -> None:
    scores = {0: (1.0, 1.0, 0.0, 1.0), 1: (1.0, 0.0, 0.0, 1.0)}
    rows = [score_row(value, item_id=f"i{at}", **night(n)) for n, values in scores.items() for at, value in enumerate(values)]
    (row,) = build_rule_table(connected(rows, []), QA_WATCHED).to_pylist()
    assert (row["lowest"], row["highest"], row["gap"], row["flagged"]) == (0.5, 0.75, 0.25, True)


def test_no_scores_have_no_drift() -> None:
    assert len(build_rule_table(connected([], []), QA_WATCHED)) == 0
    assert len(compute_model_drift(connected([], []), QA_WATCHED).checks) == 0
