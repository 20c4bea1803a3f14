"""The sensor of a family that brings its boards up to date after a run that scored something."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from assets.stage.partitions import process_tag


def boards_after_run(family: str, scoring: Sequence[Any], roll_ups: Any, description: str) -> dg.SensorDefinition:
    """The sensor `FAMILY_boards_after_run`. `scoring`: the jobs that score; `roll_ups`: the job that is asked for after one of them."""

    def asked(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        """What a `dtef` command started makes its own boards."""
        if process_tag(context.dagster_run):
            return dg.SkipReason("a `dtef` command started this run, and makes the boards itself")
        return dg.RunRequest(run_key=f"{family} roll-ups after {context.dagster_run.run_id}")

    return dg.run_status_sensor(
        run_status=dg.DagsterRunStatus.SUCCESS,
        name=f"{family}_boards_after_run",
        monitored_jobs=list(scoring),
        request_job=roll_ups,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=description,
    )(asked)
