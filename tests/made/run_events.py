"""Events of evaluation runs for tests: in memory, or in a home of Dagster that other processes read."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.events import EngineEventData

from dtef_pipeline.api.plans.plan import use_home
from resources.evaluations.evaluation_store import QUEUE_TAG, TERMINAL, EvaluationStore, EventKind, RunLogEvent
from resources.settings import find_shipped

_EVENTS: dict[str, list[RunLogEvent]] = {}


class MemoryRunLog:
    """The log of all events that `tell` recorded in this process."""

    def events(self, queue_id: str) -> Sequence[RunLogEvent]:
        return list(_EVENTS.get(queue_id, ()))

    def ids_with_runs(self, queue_ids: Sequence[str]) -> Collection[str]:
        return {one for one in queue_ids if _EVENTS.get(one)}


RUN_LOG = MemoryRunLog()


def tell(store: EvaluationStore, queue_id: str, kind: EventKind, data: Mapping[str, Any]) -> None:
    """Record an event of an evaluation of a store whose log is `RUN_LOG`."""
    if kind in TERMINAL:
        store.end(queue_id, kind, data)
    else:
        _EVENTS.setdefault(queue_id, []).append(RunLogEvent(kind, data, datetime.now(UTC)))


def made_home(folder: Path) -> dg.DagsterInstance:
    """The instance of a home of Dagster as `dtef` makes it."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(find_shipped("dagster.yaml"), folder / "dagster.yaml")
    with use_home(str(folder)):
        return dg.DagsterInstance.from_config(str(folder))


def begin_run(instance: dg.DagsterInstance, queue_id: str, before: str | None = None) -> dg.DagsterRun:
    """A run of an evaluation, which begins. `before`: the id of the run that failed, where this is the next try."""
    tags = {QUEUE_TAG: queue_id}
    run = dg.DagsterRun(job_name="games_pipeline", tags=tags, parent_run_id=before, root_run_id=before)
    instance.run_storage.add_run(run)
    instance.report_dagster_event(dg.DagsterEvent("PIPELINE_START", run.job_name), run.run_id)
    return run


def tell_in(instance: dg.DagsterInstance, run: dg.DagsterRun, data: Mapping[str, Any]) -> None:
    """What a stage of the run tells."""
    told = EngineEventData(metadata={"dtef/progress": dg.MetadataValue.json(dict(data))})
    instance.report_engine_event("told by a test", run, told)
