"""The documented rule on single partitions, of any family: which series of a test is to be looked into."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import duckdb

from dtef_pipeline.drift.models import drift_checks
from dtef_pipeline.drift.rule import build_rule_table
from dtef_pipeline.drift.verdict_tables import DRIFT_RULE
from dtef_pipeline.survey.drift_subject import SUBJECT
from tests.made.scores import scores_table
from tests.made.snapshots import nights


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
