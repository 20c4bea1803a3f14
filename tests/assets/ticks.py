"""A schedule evaluated as the daemon does at its time."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import dagster as dg

from assets.stage.resources import Store


def tick(schedule: dg.ScheduleDefinition, instance: dg.DagsterInstance, at: datetime) -> Any:
    """What the schedule asks for. The context enters the instance once more, and leaves it only where it is itself a block.

    A resource that is given to the schedule instead makes a second context, which nobody can leave: the storage of the instance stayed the one
    of all later tests of the process.
    """
    with dg.build_schedule_context(instance=instance, scheduled_execution_time=at, resources={"store": Store()}) as context:
        return schedule(context)
