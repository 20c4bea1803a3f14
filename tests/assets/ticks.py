"""A schedule evaluated as the daemon does at its time."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import dagster as dg

from assets.definitions import defs
from assets.stage.resources import Store


def tick(schedule: dg.ScheduleDefinition, instance: dg.DagsterInstance, at: datetime) -> Any:
    """What the schedule asks for. The context enters the instance once more, and leaves it only where it is itself a block.

    A resource that is given to the schedule instead makes a second context, which nobody can leave: the storage of the instance stayed the one
    of all later tests of the process.
    """
    with dg.build_schedule_context(instance=instance, scheduled_execution_time=at, resources={"store": Store()}) as context:
        return schedule(context)


def run_request(request: dg.RunRequest, instance: dg.DagsterInstance, job: str) -> dg.ExecuteInProcessResult:
    """The run that a tick asks for, made in this process; it may fail."""
    return defs.resolve_job_def(job).execute_in_process(
        instance=instance,
        run_config={**request.run_config, "loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        tags=request.tags,
        asset_selection=list(request.asset_selection or ()) or None,
        raise_on_error=False,
    )
