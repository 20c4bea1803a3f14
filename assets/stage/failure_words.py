"""Why a run failed, in words: of each partition, or of a whole stage."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.stage.dagster_internals import RANGE_END, RANGE_START
from assets.stage.partitions import FAILED_BECAUSE
from resources.failures import in_words, kept_links, one_line


def reasons_of_partitions(failure: Any) -> Mapping[str, str] | None:
    """Why each partition failed, by key; None: the failure of a step is none of single partitions."""
    told = failure.user_failure_data.metadata.get(FAILED_BECAUSE) if failure.user_failure_data else None
    return told.value if isinstance(told, dg.JsonMetadataValue) and isinstance(told.value, dict) else None


def words_of_a_stage(failure: Any, run: dg.DagsterRun, home: str) -> str:
    """Of an error that is none of a single partition. `home`: the folder of Dagster's storage."""
    if failure.user_failure_data and failure.user_failure_data.description:
        return str(failure.user_failure_data.description)
    chain = list(kept_links(failure.error))
    if said := in_words(chain, home):
        return said
    tags = run.tags
    part = " to ".join(dict.fromkeys(tags[name] for name in (RANGE_START, RANGE_END) if name in tags))
    return (
        f"{f'{part}: ' if part else ''}{one_line(chain, home)}; the whole account is in the log of run {run.run_id} (`dtef ui`)"
    )
