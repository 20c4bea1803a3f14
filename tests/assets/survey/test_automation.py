"""What follows a run: boards after one that succeeded, and after one of which a part did."""

from __future__ import annotations

from typing import Any

import dagster as dg

from assets.definitions import defs
from assets.launch import STAGE_NAMES
from assets.stage.partitions import PROCESS_TAG
from assets.survey.automation import boards_after_partial_failure, boards_after_run
from tests.assets.conftest import Pipeline

ENDED = dg.DagsterEventType.RUN_SUCCESS, dg.DagsterEventType.RUN_FAILURE


def asked_after(sensor: dg.SensorDefinition, instance: dg.DagsterInstance, run_id: str, without: str = "") -> Any:
    """What the sensor asks for when the run has ended; `without` a tag."""
    run = instance.get_run_by_id(run_id)
    (ended,) = instance.all_logs(run_id, of_type=set(ENDED))
    assert run is not None
    assert ended.dagster_event is not None
    run = run.with_tags({name: value for name, value in run.tags.items() if name != without})
    return sensor(dg.build_run_status_sensor_context(sensor.name, ended.dagster_event, instance, run))


def test_boards_follow_each_run_that_the_sensor_or_the_schedule_started() -> None:
    @dg.job
    def finished() -> None:
        pass

    with dg.DagsterInstance.ephemeral() as instance:
        result = finished.execute_in_process(instance=instance)
        asked = asked_after(boards_after_run, instance, result.run_id)
    assert asked.run_key == result.run_id
    monitored: Any = boards_after_run._monitored_jobs
    assert {job.name for job in monitored} == {"round_pipeline", "nightly_drift"}


def test_a_roll_up_that_waits_in_the_queue_is_enough() -> None:
    @dg.job
    def finished() -> None:
        pass

    with dg.DagsterInstance.ephemeral() as instance:
        result = finished.execute_in_process(instance=instance)
        waiting = instance.create_run_for_job(defs.resolve_job_def("roll_ups"))
        skipped = asked_after(boards_after_run, instance, result.run_id)
        assert isinstance(skipped, dg.SkipReason)
        assert waiting.run_id in str(skipped.skip_message)
        instance.report_run_canceled(waiting)
        assert isinstance(asked_after(boards_after_run, instance, result.run_id), dg.RunRequest)


class TestAfterAPartialFailure:
    """One bad segment used to keep the whole round off the boards."""

    def failed(self, pipeline: Pipeline, bad: list[str]) -> str:
        for key in bad:
            pipeline.file("survey_responses", key).write_bytes(b"junk")
        outcome = pipeline.run(STAGE_NAMES[1:])
        assert outcome.failures
        return outcome.run_ids[0]

    def test_boards_follow_when_some_partitions_were_scored(self, done: Pipeline) -> None:
        run_id = self.failed(done, done.keys[:1])
        asked = asked_after(boards_after_partial_failure, done.instance, run_id, without=PROCESS_TAG)
        assert isinstance(asked, dg.RunRequest)
        assert asked.run_key == run_id

    def test_nothing_scored_is_nothing_new_for_the_boards(self, done: Pipeline) -> None:
        run_id = self.failed(done, done.keys)
        asked = asked_after(boards_after_partial_failure, done.instance, run_id, without=PROCESS_TAG)
        assert isinstance(asked, dg.SkipReason)
        assert asked.skip_message == "nothing was scored in this run"

    def test_a_command_makes_its_boards_itself(self, done: Pipeline) -> None:
        run_id = self.failed(done, done.keys[:1])
        assert isinstance(asked_after(boards_after_partial_failure, done.instance, run_id), dg.SkipReason)

    def test_failed_boards_do_not_start_themselves_again(self, pipeline: Pipeline) -> None:
        job = defs.resolve_job_def("roll_ups")
        result = job.execute_in_process(instance=pipeline.instance, raise_on_error=False)
        assert not result.success  # there is nothing to make boards of
        assert isinstance(asked_after(boards_after_partial_failure, pipeline.instance, result.run_id), dg.SkipReason)
