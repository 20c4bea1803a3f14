"""The events of an evaluation's runs, from Dagster's run storage and event log."""

from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

import dagster as dg
from sqlalchemy.exc import SQLAlchemyError

from assets.evaluations.run_endings import find_failure_reasons
from assets.stage.dagster_internals import read_event_data
from dtef_pipeline.errors import StoreError
from resources.evaluations.evaluation_store import QUEUE_TAG, RunLogEvent
from resources.failures import format_one_line, links

_RUN_ENDS = {dg.DagsterEventType.RUN_SUCCESS, dg.DagsterEventType.RUN_FAILURE, dg.DagsterEventType.RUN_CANCELED}
_READ_TYPES = {dg.DagsterEventType.RUN_START, dg.DagsterEventType.ENGINE_EVENT, *_RUN_ENDS}
_LOGGED_TOGETHER = 1_000
_MAX_RUNS_KEPT = 200
"""Most runs with cached events, so that reading continues where it stopped."""


class DagsterRunLog:
    """The log of one Dagster instance. Thread-safe."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._instance, self._lock = instance, Lock()
        self._cache: OrderedDict[str, _RunEvents] = OrderedDict()

    def events(self, queue_id: str) -> Sequence[RunLogEvent]:
        """Return the events by run, in the order of the runs' creation, without events after a run's end: the next may have begun."""
        with self._lock, _translate_storage_errors():
            records = self._instance.get_run_records(dg.RunsFilter(tags={QUEUE_TAG: queue_id}), ascending=True)
            run_events: list[RunLogEvent] = []
            for record in records:
                run = record.dagster_run
                if run.parent_run_id is not None:
                    run_events.append(self._build_restart_event(run, run.parent_run_id, record.create_timestamp))
                run_events += self._read_run_events(run.run_id)
        first = next((place for place, event in enumerate(run_events) if event.kind == "started"), None)
        return [event for place, event in enumerate(run_events) if event.kind != "started" or place == first]

    def ids_with_runs(self, queue_ids: Sequence[str]) -> Collection[str]:
        if not queue_ids:
            return ()
        with _translate_storage_errors():
            records = self._instance.get_run_records(dg.RunsFilter(tags={QUEUE_TAG: list(queue_ids)}))
        return {record.dagster_run.tags[QUEUE_TAG] for record in records if record.start_time is not None}

    def _build_restart_event(self, run: dg.DagsterRun, parent_id: str, made_at: datetime) -> RunLogEvent:
        """Return the event that Dagster restarted a run, with the reason."""
        parent = self._instance.get_run_by_id(parent_id)
        cause = find_failure_reasons(self._instance, parent)["reason"] if parent else "the run before was deleted in Dagster"
        return RunLogEvent("item", {"restarted": True, "dagster_run_id": run.run_id, "reason": cause}, _convert_to_utc(made_at))

    def _read_run_events(self, run_id: str) -> list[RunLogEvent]:
        run_events = self._cache.setdefault(run_id, _RunEvents())
        self._cache.move_to_end(run_id)
        if len(self._cache) > _MAX_RUNS_KEPT:
            self._cache.popitem(last=False)
        run_events.read_on(self._instance, run_id)
        return run_events.events


def run_log_of(home: Path) -> DagsterRunLog:
    """Return the log of a Dagster home. Raises StoreError."""
    try:
        return DagsterRunLog(dg.DagsterInstance.from_config(str(home)))
    except Exception as error:  # Dagster raises many types, and a faulty home must not fail the reader otherwise
        raise StoreError(f"the home of Dagster cannot be read: {format_one_line(links(error), str(home))}") from error


class _RunEvents:
    """The events of one run read so far."""

    def __init__(self) -> None:
        self.events: list[RunLogEvent] = []
        self._cursor: str | None = None
        self._has_ended = False

    def read_on(self, instance: dg.DagsterInstance, run_id: str) -> None:
        has_more = not self._has_ended
        while has_more:
            page = instance.get_records_for_run(run_id, self._cursor, _READ_TYPES, _LOGGED_TOGETHER)
            for record in page.records:
                self._take(record.event_log_entry)
            self._cursor, has_more = page.cursor, page.has_more and not self._has_ended

    def _take(self, entry: dg.EventLogEntry) -> None:
        event = entry.get_dagster_event()
        timestamp = datetime.fromtimestamp(entry.timestamp, UTC)
        if self._has_ended:
            return
        if event.event_type is dg.DagsterEventType.RUN_START:
            self.events.append(RunLogEvent("started", {"dagster_run_id": entry.run_id}, timestamp))
        elif (event_data := read_event_data(event)) is not None:
            self.events.append(RunLogEvent("item", event_data, timestamp))
        self._has_ended = event.event_type in _RUN_ENDS


def _convert_to_utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


@contextmanager
def _translate_storage_errors() -> Iterator[None]:
    """Raise StoreError for errors of unreachable Dagster storage."""
    try:
        yield
    except (SQLAlchemyError, OSError) as error:
        raise StoreError(f"Dagster's storage cannot be read: {type(error).__name__}") from error
