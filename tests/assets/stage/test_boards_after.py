"""The boards of a family follow a run that scored, unless a command makes them itself."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from assets.qa.automation import qa_boards_after_run
from assets.rubric.automation import rubric_boards_after_run
from assets.stage.partitions import PROCESS_TAG


@pytest.mark.parametrize(("family", "sensor"), [("qa", qa_boards_after_run), ("rubric", rubric_boards_after_run)])
def test_boards_follow_each_run_that_no_command_started(family: str, sensor: Any) -> None:
    @dg.job
    def finished() -> None:
        pass

    assert sensor.name == f"{family}_boards_after_run"
    assert {job.name for job in sensor._monitored_jobs} == {f"{family}_pipeline", f"{family}_night"}
    with dg.DagsterInstance.ephemeral() as instance:
        for tags in ({}, {PROCESS_TAG: "1"}):
            result = finished.execute_in_process(instance=instance, tags=tags)
            run = instance.get_run_by_id(result.run_id)
            (ended,) = instance.all_logs(result.run_id, of_type={dg.DagsterEventType.RUN_SUCCESS})
            assert run is not None
            assert ended.dagster_event is not None
            asked = sensor(dg.build_run_status_sensor_context(sensor.name, ended.dagster_event, instance, run))
            if tags:
                assert isinstance(asked, dg.SkipReason)
            else:
                assert asked.run_key == f"{family} roll-ups after {result.run_id}"
