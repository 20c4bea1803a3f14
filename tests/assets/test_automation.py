"""The `new_round` sensor and the nightly schedule: what they ask for, and when."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.automation import boards_after_run, new_round, nightly
from assets.commands import dagster_instance
from assets.definitions import defs
from assets.partitions import ROUND_SEGMENT
from assets.resources import Store
from assets.rounds import RANGE_END, RANGE_START
from tests.assets.conftest import COUNTRIES, Pipeline, write_survey

NIGHT = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)


class Landing:
    """The watched folder, and the sensor looking at it again and again."""

    def __init__(self, pipeline: Pipeline, folder: Path) -> None:
        self.pipeline, self.folder = pipeline, folder
        self.cursor: str | None = None
        folder.mkdir()

    def look(self) -> Any:
        context = dg.build_sensor_context(instance=self.pipeline.instance, cursor=self.cursor, definitions=defs)
        result = new_round(context, store=Store())
        if isinstance(result, dg.SensorResult):
            self.cursor = result.cursor
        return result

    def requests(self) -> list[dg.RunRequest]:
        return list(self.look().run_requests or [])


@pytest.fixture
def landing(pipeline: Pipeline, state: Path, monkeypatch: pytest.MonkeyPatch) -> Landing:
    for key in pipeline.keys:
        pipeline.instance.delete_dynamic_partition(str(ROUND_SEGMENT.name), key)
    monkeypatch.setenv("DTEF_SURVEYS", str(state / "landing"))
    return Landing(pipeline, state / "landing")


class TestNewRound:
    def test_what_is_still_changing_is_not_started(self, landing: Landing) -> None:
        for questions in (1, 2, 3):
            write_survey(landing.folder / "a.csv", ["A1"], questions=questions)
            assert landing.requests() == []
        assert landing.pipeline.keys == []

    def test_a_stable_round_registers_its_partitions_sorted_and_asks_for_one_run(self, landing: Landing) -> None:
        write_survey(landing.folder / "a.csv", ["A1"])
        assert landing.requests() == []
        (request,) = landing.requests()
        keys = [f"A1/country:{country.lower()}" for country in COUNTRIES]
        assert landing.pipeline.keys == keys
        assert (request.tags[RANGE_START], request.tags[RANGE_END]) == (keys[0], keys[-1])
        assert request.run_key

    def test_the_run_it_asks_for_does_the_whole_round(self, landing: Landing) -> None:
        write_survey(landing.folder / "a.csv", ["A1"], questions=1)
        landing.look()
        (request,) = landing.requests()
        result = defs.resolve_job_def("round_pipeline").execute_in_process(
            instance=landing.pipeline.instance, tags=request.tags, run_config=request.run_config
        )
        assert result.success
        for stage in ("survey_responses", "drift_checks"):
            assert set(landing.pipeline.status(stage).values()) == {"MATERIALIZED"}

    def test_an_unchanged_round_asks_for_nothing_more_even_after_the_cursor_is_lost(self, landing: Landing) -> None:
        write_survey(landing.folder / "a.csv", ["A1"])
        landing.look()
        assert len(landing.requests()) == 1
        assert landing.requests() == []
        landing.cursor = None
        assert landing.requests() == landing.requests() == []

    def test_a_changed_round_asks_again_under_another_key(self, landing: Landing) -> None:
        write_survey(landing.folder / "a.csv", ["A1"])
        landing.look()
        (first,) = landing.requests()
        write_survey(landing.folder / "a.csv", ["A1"], questions=5)
        assert landing.requests() == []
        (second,) = landing.requests()
        assert second.run_key != first.run_key
        assert second.tags == first.tags

    def test_a_broken_file_is_reported_and_the_others_go_on(
        self, landing: Landing, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
    ) -> None:
        (landing.folder / "broken.csv").write_text("a,b\n1,2\n", encoding="utf-8")
        write_survey(landing.folder / "good.csv", ["A1"])
        (landing.folder / ".partial").write_text("hidden", encoding="utf-8")
        landing.look()
        with caplog.at_level(logging.ERROR):
            requests = landing.requests()
        assert [request.tags[RANGE_START] for request in requests] == ["A1/country:chile"]
        assert "broken.csv" in caplog.text + capfd.readouterr().err
        (landing.folder / "good.csv").unlink()
        landing.look()
        assert "broken.csv" in str(landing.look().skip_reason.skip_message)

    def test_two_rounds_landing_together_are_a_run_each(self, landing: Landing) -> None:
        write_survey(landing.folder / "b.csv", ["B1"])
        write_survey(landing.folder / "a.csv", ["A1"])
        landing.look()
        assert [request.tags[RANGE_START] for request in landing.requests()] == ["A1/country:chile", "B1/country:chile"]

    def test_no_folder_is_a_reason_to_skip(self, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DTEF_SURVEYS", "/nowhere/at/all")
        result = new_round(dg.build_sensor_context(instance=pipeline.instance, definitions=defs), store=Store())
        assert isinstance(result, dg.SkipReason)
        assert "/nowhere/at/all" in str(result.skip_message)

    def test_the_cursor_is_one_hash_for_each_thing_in_the_folder(self, landing: Landing) -> None:
        write_survey(landing.folder / "a.csv", ["A1"])
        landing.look()
        assert list(json.loads(str(landing.cursor))) == ["a.csv"]


class TestNightly:
    def ask(self, pipeline: Pipeline) -> dg.RunRequest | dg.SkipReason:
        # A schedule finds its instance by reference, which one in memory has not: one on disk with the same partitions.
        with dagster_instance() as instance:
            if pipeline.keys:
                instance.add_dynamic_partitions(str(ROUND_SEGMENT.name), pipeline.keys)
            result = nightly(dg.build_schedule_context(instance=instance, scheduled_execution_time=NIGHT))
        assert isinstance(result, dg.RunRequest | dg.SkipReason)
        return result

    def test_it_asks_for_all_partitions_in_a_snapshot_named_after_the_night(
        self, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DTEF_NIGHTLY_MODELS", "gpt-4.1-mini, local")
        request = self.ask(pipeline)
        assert isinstance(request, dg.RunRequest)
        assert request.run_key == "2026-03-01"
        assert (request.tags[RANGE_START], request.tags[RANGE_END]) == (pipeline.keys[0], pipeline.keys[-1])
        night = {"snapshot": "2026-03-01"}
        assert request.run_config["ops"] == {
            "predictions": {"config": {**night, "models": ["gpt-4.1-mini", "local"]}},
            "scores": {"config": night},
            "segment_results": {"config": night},
        }

    def test_its_run_makes_the_snapshot_and_leaves_the_others(self, done: Pipeline) -> None:
        before = {name: data for name, data in done.bytes().items() if "snapshot=base" in name}
        request = self.ask(done)
        assert isinstance(request, dg.RunRequest)
        result = defs.resolve_job_def("nightly_drift").execute_in_process(
            instance=done.instance, run_config=request.run_config, tags=request.tags
        )
        assert result.success
        assert done.house.values("scores", "snapshot", round="T2", segment="country:kenya") == ["2026-03-01", "base"]
        after = done.bytes()
        assert {name: after[name] for name in before} == before
        assert set(done.status("drift_checks").values()) == {"MATERIALIZED"}

    def test_without_partitions_it_skips(self, landing: Landing) -> None:
        skipped = self.ask(landing.pipeline)
        assert isinstance(skipped, dg.SkipReason)
        assert "no round has been ingested yet" in str(skipped.skip_message)


def test_boards_follow_each_run_that_the_sensor_or_the_schedule_started() -> None:
    @dg.job
    def finished() -> None:
        pass

    with dg.DagsterInstance.ephemeral() as instance:
        result = finished.execute_in_process(instance=instance)
        context = dg.build_run_status_sensor_context(
            sensor_name="boards_after_run",
            dagster_instance=instance,
            dagster_run=result.dagster_run,
            dagster_event=result.get_run_success_event(),
        )
        asked = boards_after_run(context)
    assert asked.run_key == result.run_id
    assert {job.name for job in boards_after_run._monitored_jobs} == {"round_pipeline", "nightly_drift"}
