"""The documented drift rule over runs of one run label."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pytest

from dtef_pipeline.drift.rule import build_rule_table
from dtef_pipeline.rubric.rubric_drift import WATCHED
from tests.dtef_pipeline.rubric.score_tables import scores_of

START = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = ("s1", "s2", "s3")


def drift_of(
    cells: Sequence[dict[str, Any]],
    hours: float = 24,
    labels: dict[str, str] | None = None,
    weights: dict[str, float] | None = None,
) -> list[dict[str, Any]]:
    table = scores_of(*({"blueprint": "b", **cell} for cell in cells), weights=weights)
    runs = table[["blueprint", "snapshot"]].drop_duplicates()
    runs = runs.assign(run_hash=[(labels or {}).get(day, "one") for day in runs["snapshot"]])
    times = {day: START + at * timedelta(hours=hours) for at, day in enumerate(DAYS)}
    runs = runs.assign(judges=[["j"]] * len(runs), answered_at=[times[day] for day in runs["snapshot"]])
    with duckdb.connect() as connection:
        for name, frame in (("rubric_scores", table), ("rubric_runs", runs), ("rubric_responses", runs)):
            connection.register(name, frame)
        return build_rule_table(connection, WATCHED).to_pylist()


def runs(*values: float | None, **rest: Any) -> list[dict[str, Any]]:
    return [{"snapshot": day, "prompt": "p", "score": value, **rest} for day, value in zip(DAYS, values, strict=False)]


@pytest.mark.parametrize(("hours", "flagged"), [(23 - 1 / 3600, False), (23, True)])
def test_runs_are_to_span_23_hours(hours: float, flagged: bool) -> None:
    (row,) = drift_of(runs(0.3, 0.9), hours=hours)
    assert row["flagged"] is flagged
    assert row["reason"].startswith("not compared: the snapshots span") is not flagged


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


def test_a_model_that_was_not_in_every_run_is_not_compared() -> None:
    found = drift_of([*runs(0.5, 0.5, 0.5), *runs(0.1, 0.9, model="n")])
    assert [(row["model"], row["flagged"]) for row in found] == [("m", False), ("n", False)]
    assert found[1]["reason"].startswith("not compared: no score for half of the prompts in s3")


def test_the_order_of_the_rows_does_not_matter() -> None:
    cells = [*runs(0.31, 0.52), *runs(0.3, 0.9, prompt="q"), *runs(0.77, 0.13, model="n")]
    assert drift_of(cells[::-1]) == drift_of(cells)
