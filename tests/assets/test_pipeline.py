"""All six stages for many partitions in one run: what a bad one does to the others, what reruns keep, what checks stop."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

from assets.definitions import defs
from dtef_pipeline.identity import split_partition_key
from tests.assets.conftest import Pipeline, write_survey
from tests.assets.family_state import GREEN, RED, STAGE_NAMES

DOWNSTREAM = STAGE_NAMES[1:]
BAD = "T1/country:india"


class TestOneBadPartition:
    def test_it_is_red_alone_and_says_why_and_a_rerun_after_mending_is_green(self, done: Pipeline) -> None:
        pipeline, file = done, done.file("blueprints", BAD)
        good = file.read_bytes()
        file.write_bytes(b"junk")
        outcome = pipeline.run(STAGE_NAMES[2:])
        (run_id,) = outcome.run_ids
        (failure,) = outcome.failures
        assert failure.startswith(f"drift: 1 of 6 partitions failed, the others are done: {BAD}")
        run = pipeline.instance.get_run_by_id(run_id)
        assert run
        assert run.status == dg.DagsterRunStatus.FAILURE
        messages = [entry.user_message for entry in pipeline.instance.all_logs(run_id)]
        assert any(message.startswith(f"{BAD}: cannot read ") for message in messages)
        for stage, made in (("predict", "5/6, 1 failed"), ("score", "5/5")):
            (line,) = [message for message in messages if message.startswith(f"{stage}: partitions done ")]
            assert re.fullmatch(rf".* {made}, [1-9]\d* rows, [\d.]+ s", line)
        for stage in STAGE_NAMES[2:]:
            assert pipeline.status(stage) == {key: RED if key == BAD else GREEN for key in pipeline.keys}, stage
        found = pipeline.checks(outcome)
        assert {"predictions_are_unique", "scores_are_unique", "segment_results_are_unique"} <= set(found)
        assert all(found.values())
        file.write_bytes(good)
        assert pipeline.run(STAGE_NAMES[2:]).failures == ()
        for stage in STAGE_NAMES[2:]:
            assert set(pipeline.status(stage).values()) == {GREEN}, stage

    def test_it_fails_alone_where_many_are_made_together(self, done: Pipeline) -> None:
        pipeline = done
        pipeline.file("scores", BAD, snapshot="base").write_bytes(b"junk")
        (failure,) = pipeline.run(["segment_results"]).failures
        assert failure.startswith(f"aggregate: 1 of 6 partitions failed, the others are done: {BAD} (cannot read ")
        assert pipeline.status("segment_results") == {key: RED if key == BAD else GREEN for key in pipeline.keys}

    def test_a_re_execution_tries_the_failed_partition_again(self, done: Pipeline) -> None:
        """Dagster copies a run's tags to its re-execution: the mended partition used to be skipped as failed."""
        from assets.stage.partitions import build_range_tags

        pipeline = done
        file = pipeline.file("survey_responses", BAD)
        good = file.read_bytes()
        file.write_bytes(b"junk")
        (failed_run,) = pipeline.run(STAGE_NAMES[1:2]).run_ids
        file.write_bytes(good)
        run = pipeline.instance.get_run_by_id(failed_run)
        assert run
        again = defs.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=pipeline.instance,
            asset_selection=[dg.AssetKey("blueprints")],
            tags={**run.tags, **build_range_tags(pipeline.keys)},
            raise_on_error=False,
        )
        assert again.success
        assert set(pipeline.status("blueprints").values()) == {GREEN}


def replaced(table: pa.Table, column: str, value: Any) -> pa.Table:
    """The table with one cell of a question changed."""
    rows = table.to_pylist()
    for row in rows:
        if row["question_id"] == "q1":
            row[column] = value
    return pa.Table.from_pylist(rows, schema=table.schema)


def doubled(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table, table.slice(0, 1)])


SPOILED: dict[str, tuple[str, Callable[[pa.Table], pa.Table]]] = {
    "distributions_sum_to_one": ("survey_responses", lambda rows: replaced(rows, "observed", [0.4, 0.3, 0.2])),
    "survey_responses_are_unique": ("survey_responses", doubled),
    "n_reaches_minimum": ("survey_responses", lambda rows: replaced(rows, "n", 9)),
    "blueprints_are_unique": ("blueprints", doubled),
    "context_excludes_targets": ("blueprints", lambda rows: replaced(rows, "context_question_ids", ["q0", "q1"])),
    "predictions_are_unique": ("predictions", doubled),
    "every_prediction_has_a_blueprint": ("predictions", lambda rows: replaced(rows, "prompt_id", "0" * 32)),
}
"""By check: what it is to see. Each in a partition of its own."""


def test_each_blocking_check_sees_what_it_is_for(done: Pipeline) -> None:
    for key, (table, spoil) in zip([*done.keys, done.keys[0]], SPOILED.values(), strict=True):
        round_id, segment = split_partition_key(key)
        at = {"round": round_id, "segment": segment} | ({"snapshot": "base"} if table == "predictions" else {})
        done.house.write(table, spoil(done.house.read(table, **at)), **at)
    chosen = dg.AssetSelection.checks_for_assets("survey_responses", "blueprints", "predictions")
    job = dg.define_asset_job("checks_alone", selection=chosen)
    found = dg.Definitions.merge(defs, dg.Definitions(jobs=[job])).resolve_job_def("checks_alone")
    evaluations = found.execute_in_process(instance=done.instance, raise_on_error=False).get_asset_check_evaluations()
    seen = {one.check_name: one.metadata["partitions"].value for one in evaluations if not one.passed}
    assert {check: seen.get(check) for check in SPOILED} == {
        check: [key] for key, check in zip([*done.keys, done.keys[0]], SPOILED, strict=True)
    }


class TestReruns:
    def test_a_rerun_writes_the_same_bytes(self, done: Pipeline) -> None:
        pipeline = done
        first = pipeline.bytes()
        pipeline.run()
        second = pipeline.bytes()
        assert first.keys() == second.keys()
        assert [name for name in first if first[name] != second[name]] == []

    def test_without_a_snapshot_all_that_there_are_are_scored_and_aggregated(self, done: Pipeline) -> None:
        pipeline = done
        night, only = {"snapshot": "2026-01-02"}, {"only_snapshot": "2026-01-02"}
        pipeline.run(DOWNSTREAM, predictions={"models": ["baseline/dirichlet"], **night}, scores=only, segment_results=only)
        pipeline.run(["scores", "segment_results"], scores={"metric": "tv"})
        for table in ("scores", "segment_results"):
            rows = pipeline.house.read(table)
            assert set(rows["snapshot"].to_pylist()) == {"base", "2026-01-02"}
            assert set(rows["metric"].to_pylist()) == {"tv"}

    def test_a_changed_survey_changes_what_it_touches_and_leaves_the_other_round(self, done: Pipeline) -> None:
        pipeline = done
        before = pipeline.bytes()
        write_survey(Path(pipeline.house.root).parent / "surveys.csv", questions=4)
        pipeline.run(keys=[key for key in pipeline.keys if key.startswith("T2")])
        after = pipeline.bytes()
        changed = {name for name in after if after[name] != before.get(name)}
        assert changed
        assert all("round=T2" in name for name in changed)
        assert len(pipeline.house.read("scores", round="T2")) == 3 * 4 * 2

    def test_only_the_chosen_partitions_are_run_and_in_one_run(self, pipeline: Pipeline) -> None:
        keys = pipeline.keys
        assert len(pipeline.run(STAGE_NAMES[:1], keys=keys[1:3]).run_ids) == 1
        assert pipeline.status("survey_responses") == {key: GREEN if key in keys[1:3] else None for key in keys}
        assert len(pipeline.run(STAGE_NAMES[:1], keys=[keys[0], keys[5], keys[2]]).run_ids) == 1
        assert pipeline.status("survey_responses") == {key: GREEN if key in {*keys[:3], keys[5]} else None for key in keys}

    def test_a_partition_that_is_not_registered_is_named(self, pipeline: Pipeline) -> None:
        from dtef_pipeline.errors import DtefError

        with pytest.raises(DtefError, match="not registered with Dagster: T9/x; `dtef survey add`"):
            pipeline.run(keys=["T9/x"])
