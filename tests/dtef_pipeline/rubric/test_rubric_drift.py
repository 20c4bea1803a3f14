"""Drift of models on rubrics by the project's evidence, and the judges' part in it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dtef_pipeline.drift.models import compute_model_drift
from dtef_pipeline.drift.rule import build_rule_table
from dtef_pipeline.drift.settings import WatchOptions
from dtef_pipeline.rubric.rubric_drift import WATCHED
from tests.dtef_pipeline.rubric.scored_rows import scores_of

NIGHTS = [f"2026-01-{night:02d}" for night in range(1, 15)]
PROMPTS = [f"p{prompt}" for prompt in range(30)]


def tables(
    shift: float, since: int = 7, labels: tuple[str, str] = ("same", "same"), nights: int = 14
) -> duckdb.DuckDBPyConnection:
    """Two models on one blueprint. From night `since` on, `moved` scores `shift` less, and for some `nights` the run label may be another."""
    rng = np.random.default_rng(3)
    levels = rng.uniform(0.4, 0.8, len(PROMPTS))
    cells = [
        ("b", night, prompt, model, f"openai/{model}[temperature=0]", 0.0, 0, level + rng.normal(0, 0.03) - lost)
        for at, night in enumerate(NIGHTS)
        for model in ("moved", "steady")
        for lost in [shift if model == "moved" and at >= since else 0.0]
        for prompt, level in zip(PROMPTS, levels, strict=True)
    ]
    names = ["blueprint", "snapshot", "prompt", "model", "model_variant", "temperature", "system_index", "hybrid"]
    scores = pd.DataFrame(cells, columns=names).assign(level="cell", weight=1.0, reasons=None)
    runs = pd.DataFrame(
        [("b", night, labels[since <= at < since + nights], ["standard(j)"]) for at, night in enumerate(NIGHTS)],
        columns=["blueprint", "snapshot", "run_hash", "judges"],
    )
    runs["answered_at"] = [datetime.fromisoformat(f"{night}T02:00:00").replace(tzinfo=UTC) for night in NIGHTS]
    responses = scores.merge(runs[["snapshot", "answered_at"]], on="snapshot").assign(served_model="m", fingerprint=None)
    connection = duckdb.connect()
    for name, frame in (("rubric_scores", scores), ("rubric_runs", runs), ("rubric_responses", responses)):
        connection.register(name, frame)
    return connection


def test_a_planted_shift_is_found_with_its_night_and_the_other_model_is_left_alone() -> None:
    rows = {row["model"]: row for row in compute_model_drift(tables(0.2), WATCHED).checks.to_pylist()}
    assert rows["moved"]["verdict"] == "drift"
    assert rows["moved"]["first_snapshot"] == NIGHTS[7]
    assert rows["moved"]["shift"] == pytest.approx(-0.2, abs=0.03)
    assert rows["steady"]["verdict"] == "none"
    assert rows["moved"]["top_changes"][0]["item"].startswith("b/p")


def test_runs_of_another_label_are_not_compared() -> None:
    connection = tables(0.2, labels=("old", "new"))
    assert "drift" not in {row["verdict"] for row in compute_model_drift(connection, WATCHED).checks.to_pylist()}
    documented = build_rule_table(connection, WATCHED).to_pylist()
    assert [(row["test"], row["model"], row["n_snapshots"]) for row in documented] == [
        (label, model, n) for label, n in (("new", 7), ("old", 7)) for model in ("moved", "steady")
    ]
    assert not any(row["flagged"] for row in documented)


def test_a_run_of_another_label_is_left_out_for_its_label_and_not_for_its_prompts() -> None:
    """The reason named other prompts, although the prompts were the same and only the embedder was another."""
    connection = tables(0.0, since=5, labels=("same", "another"), nights=1)
    reasons = [row["reason"] for row in compute_model_drift(connection, WATCHED).checks.to_pylist()]
    assert all(
        f"{NIGHTS[5]} (had too few comparable prompts, or another test, judges or policy)" in reason for reason in reasons
    )
    reasons = [row["reason"] for row in compute_model_drift(tables(0.0, labels=("old", "new")), WATCHED).checks.to_pylist()]
    assert all(f"{NIGHTS[7]} was scored against other rubrics, judges or policies" in reason for reason in reasons)


def test_the_documented_rule_names_the_two_runs_to_look_into() -> None:
    rows = {row["model"]: row for row in build_rule_table(tables(0.2), WATCHED).to_pylist()}
    assert rows["moved"]["flagged"]
    assert rows["moved"]["is_largest_gap"]
    assert rows["moved"]["highest_snapshot"] < NIGHTS[7] <= rows["moved"]["lowest_snapshot"]


def anchored(shift: float) -> pa.Table:
    """A judge's points of stored answers, lower by `shift` from the eighth night on."""
    rows = [
        (night, "b", f"p{item % 10}", f"item{item}", "standard(j)", "j", "j:t=0", "", 0.75 - (shift if at >= 7 else 0.0))
        for at, night in enumerate(NIGHTS)
        for item in range(40)
    ]
    names = ["snapshot", "partition", "item", "anchor", "judge", "judge_model", "judge_variant", "evaluator", "score"]
    return pa.Table.from_pandas(pd.DataFrame(rows, columns=names))


def test_a_shift_is_reported_as_the_judges_where_stored_answers_moved_alike() -> None:
    found = compute_model_drift(tables(0.2), WATCHED)
    told = {
        shift: found.subtract_judge_shifts(WATCHED, anchored(shift), WatchOptions()).checks.to_pylist() for shift in (0.0, 0.25)
    }
    causes = {
        shift: {row["model"]: row["judges_note"] and row["judges_note"].partition(":")[0] for row in rows}
        for shift, rows in told.items()
    }
    assert causes == {
        0.0: {"moved": "a shift of the model", "steady": None},
        0.25: {"moved": "a shift of the judges, not of the model", "steady": None},
    }
    (moved,) = [row for row in told[0.25] if row["model"] == "moved"]
    # Coverage is .65 of the hybrid score.
    assert moved["net_shift"] == pytest.approx(moved["shift"] + 0.65 * 0.25)


def test_without_anchors_nothing_is_stated_of_judges() -> None:
    found = compute_model_drift(tables(0.2), WATCHED)
    assert found.subtract_judge_shifts(WATCHED, anchored(0.0).slice(0, 0), WatchOptions()).checks.equals(found.checks)
    assert set(found.checks["judges_note"].to_pylist()) == {None}


START = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = ("s1", "s2", "s3")


def drift_of(cells: Sequence[dict[str, Any]], weights: dict[str, float] | None = None) -> list[dict[str, Any]]:
    table = scores_of(*({"blueprint": "b", **cell} for cell in cells), weights=weights)
    runs = table[["blueprint", "snapshot"]].drop_duplicates()
    times = {day: START + timedelta(days=at) for at, day in enumerate(DAYS)}
    runs = runs.assign(run_hash="one", judges=[["j"]] * len(runs), answered_at=[times[day] for day in runs["snapshot"]])
    with duckdb.connect() as connection:
        for name, frame in (("rubric_scores", table), ("rubric_runs", runs), ("rubric_responses", runs)):
            connection.register(name, frame)
        return build_rule_table(connection, WATCHED).to_pylist()


def runs(*values: float | None, **rest: Any) -> list[dict[str, Any]]:
    return [{"snapshot": day, "prompt": "p", "score": value, **rest} for day, value in zip(DAYS, values, strict=False)]


def test_variants_at_another_temperature_are_left_out() -> None:
    found = drift_of([*runs(0.5, 0.5), *runs(0.1, 0.9, temperature=0.5)])
    assert [(row["model_variant"], row["flagged"]) for row in found] == [("m@0.0", False)]


def test_only_prompts_scored_in_every_run_are_compared_by_their_weights() -> None:
    first = [*runs(0.2, 0.4), *runs(0.8, 0.8, prompt="q"), *runs(0.9, None, prompt="r")]
    (row,) = drift_of(first, weights={"p": 3.0})
    assert (row["lowest"], row["highest"], row["n_items"]) == (pytest.approx(0.35), pytest.approx(0.5), 2)


def test_system_prompts_of_one_prompt_are_items_of_their_own() -> None:
    (row,) = drift_of([*runs(0.2, 0.4), *runs(0.4, 0.8, system_index=1)])
    assert (row["lowest"], row["highest"], row["n_items"]) == (pytest.approx(0.3), pytest.approx(0.6), 2)
