"""Why a run failed, in words: for each partition, or for a whole stage."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.stage.dagster_internals import RANGE_END, RANGE_START
from assets.stage.partitions import FAILED_BECAUSE
from resources.failures import describe_error, format_one_line, parse_error_chain


def parse_partition_failures(failure: Any) -> Mapping[str, str] | None:
    """Return why each partition failed, by key, or None if a step failed as a whole."""
    failure_metadata = failure.user_failure_data.metadata.get(FAILED_BECAUSE) if failure.user_failure_data else None
    return (
        failure_metadata.value
        if isinstance(failure_metadata, dg.JsonMetadataValue) and isinstance(failure_metadata.value, dict)
        else None
    )


def describe_stage_failure(failure: Any, run: dg.DagsterRun, home: str) -> str:
    """Describe the failure of a whole stage. `home`: the folder of Dagster's storage."""
    if failure.user_failure_data and failure.user_failure_data.description:
        return str(failure.user_failure_data.description)
    chain = list(parse_error_chain(failure.error))
    if description := describe_error(chain, home):
        return description
    tags = run.tags
    part = " to ".join(dict.fromkeys(tags[name] for name in (RANGE_START, RANGE_END) if name in tags))
    return (
        f"{f'{part}: ' if part else ''}{format_one_line(chain, home)}; details are in the log of run {run.run_id} (`dtef ui`)"
    )
