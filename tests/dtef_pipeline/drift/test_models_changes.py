"""What can change between snapshots beside the answers, each told apart: parsing, provider, prompts, survey, metric, panel."""

from __future__ import annotations

import pytest

from tests.dtef_pipeline.drift.model_drift_rows import beside, check, found, predictions, whats
from tests.made.snapshots import label, nights


def test_a_fall_of_the_parse_rate_is_reported_from_answers_that_changed() -> None:
    rows = nights([0.8] * 12, questions=60)
    lost = {f"q{number}" for number in range(20, 29)}
    for row in rows:
        if row["snapshot"] >= label(6) and row["question_id"] in {*lost, f"q{int(row['snapshot'][-2:])}"}:
            row.update(status="unparseable", score=0.0, js=None)
    (row, _), series = found([*rows, *beside(rows)])
    assert row["verdict"] == "drift"
    changed = whats(row)
    assert changed["parse_rate"]["before"] == "parsed 100.0 %"
    assert changed["parse_rate"]["after"].startswith("parsed 8")
    assert changed["answers"]["after"].endswith("(+0.0000, as before)")
    last = series[11]
    assert last["difference"] < -0.1
    assert last["parse_rate"] == pytest.approx(50 / 60)


def test_a_fingerprint_counts_when_it_was_not_seen_before_and_none_is_no_fingerprint() -> None:
    rows = nights([0.8] * 8)
    by_night = {label(2): "b", label(3): None, label(4): "a", label(6): "c"}
    _, series = found(rows, served=predictions(rows, fingerprint=lambda night: by_night.get(night, "a")))
    assert [one["fingerprints"] for one in series[2:5]] == [["b"], [], ["a"]]
    both = [*rows, *({**row, "draw": 1} for row in rows)]
    side_by_side = [
        *predictions(rows, fingerprint=lambda night: "c" if night == label(6) else "a"),
        *predictions(rows, fingerprint=lambda night: "a" if night == label(3) else "b"),
    ]
    (change,) = check(both, served=side_by_side)["changes"]
    # SharedShift 3 saw one of the two that serve: no change.
    assert change == {"kind": "fingerprint", "snapshot": label(6), "before": "a, b", "after": "b, c"}


def test_other_prompts_midway_begin_again_and_say_since_when() -> None:
    rows = [*nights([0.9] * 6), *nights([0.6] * 7, first=6, prompt_id="reworded")]
    for at, row in enumerate(rows):
        row["prompt_id"] = f"{row.get('prompt_id', 'as before')} {at % 10}"
    (row,), series = found(rows)
    assert (row["verdict"], row["n_snapshots"], row["baseline"][0]) == ("none", 7, label(6))
    (change,) = row["changes"]
    assert (change["kind"], change["snapshot"]) == ("prompts", label(6))
    assert change["before"] == f"the prompts of {label(5)}"
    assert change["after"] == "other prompts for 10 of 10 (segment, question) pairs"
    assert f"{label(6)} asked other prompts, so earlier snapshots are not compared with it" in row["reason"]
    assert [one["compared"] for one in series] == [False] * 6 + [True] * 7
    assert series[0]["score"] == pytest.approx(0.9)
    assert (series[0]["n_shared"], series[0]["n_prompts"], series[0]["difference"]) == (0, 10, None)


def test_other_survey_answers_are_no_drift_of_the_model() -> None:
    row = check([*nights([0.9] * 6), *nights([0.6] * 7, first=6, truth_id="recounted")])
    assert row["verdict"] == "none"
    assert set(whats(row)) == {"survey"}
    assert whats(row)["survey"]["after"] == "other survey answers for 10 of 10 (segment, question) pairs"
    assert "2026-01-07 was scored against other survey answers, so earlier" in row["reason"]


def test_a_panel_that_grew_is_compared_on_what_both_asked() -> None:
    rows = [*nights([0.8] * 6), *nights([0.8] * 6, first=6, questions=10)]
    rows += [{**row, "question_id": f"new{at}", "score": 0.1} for at, row in enumerate(nights([0.1], first=6, questions=2))]
    rows += nights([0.1] * 5, first=7, questions=1, question_id="new0")
    (row,), series = found(rows)
    assert (row["verdict"], row["n_prompts"]) == ("none", 10)
    assert row["shift"] == pytest.approx(0.0)
    (change,) = row["changes"]
    assert change["kind"] == "panel"
    assert change["snapshot"] == label(6)
    assert change["before"] == "10 questions in 1 segment of S1, 10 prompts"
    assert change["after"] == "12 questions in 1 segment of S1, 12 prompts (added S1/new0, S1/new1)"
    assert (series[6]["n_shared"], series[6]["n_prompts"]) == (10, 12)
