"""The events and the result of an evaluation's Dagster runs, from Dagster's run storage and event log."""

import time
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import dagster as dg
from sqlalchemy.exc import SQLAlchemyError

from assets.stage.dagster_internals import RETRY_NUMBER_TAG, WILL_RETRY_TAG, read_event_data
from assets.stage.partitions import describe_stage_failure, parse_partition_failures
from dtef_pipeline.errors import StoreError
from dtef_pipeline.text.number_words import format_count
from resources.evaluations.evaluation_calls import EvaluationCalls
from resources.evaluations.evaluation_store import QUEUE_TAG, EventKind, RunLogEvent
from resources.failures import format_one_line, links

RETRY_PATIENCE_S = 600.0
"""How long a failed run may wait for its restart. The daemon restarts within seconds, if at all."""
MAX_REPORTED_PARTITIONS = 200
"""Most partitions whose failure an event explains."""
_MAX_REASON_CHARACTERS = 2_000
_WORKER_LOST = ("This run has been marked as failed from outside the execution context", "Detected run worker status")
"""Prefixes of Dagster's messages on a run whose process is gone."""
CANCELLED_TAG = "dtef/cancelled_by"
"""Tag of a run: who cancelled its evaluation."""


class Ending(NamedTuple):
    """The last event of an evaluation."""

    kind: EventKind
    data: Mapping[str, Any]


def ending(instance: dg.DagsterInstance, record: dg.RunRecord, canceller: str | None) -> Ending | None:
    """Return the ending of an evaluation with this newest run, or None if it continues. `canceller`: who cancelled it, if anybody."""
    run = record.dagster_run
    run_data = {"dagster_run_id": run.run_id}
    if run.status is dg.DagsterRunStatus.SUCCESS:
        return Ending("completed", run_data)
    if run.status is dg.DagsterRunStatus.CANCELED:
        return Ending("cancelled", {**run_data, **_describe_canceller(canceller)})
    if run.status is not dg.DagsterRunStatus.FAILURE:
        return None
    if canceller is not None and run.tags.get(CANCELLED_TAG):
        return Ending("cancelled", {**run_data, **_describe_canceller(canceller)})
    if not _is_restart_pending(instance, record):
        return Ending("failed", {**run_data, **find_failure_reasons(instance, run)})
    if canceller is None:
        return None
    # No restart is wanted. The second tag informs the next tick if this one does not finish.
    instance.add_run_tags(run.run_id, {WILL_RETRY_TAG: "false", CANCELLED_TAG: canceller})
    return Ending("cancelled", {**run_data, **_describe_canceller(canceller)})


def add_call_counts(end: Ending, reported_calls: EvaluationCalls | None, remaining: int) -> Ending:
    """Return the ending with counts of all requests; completed becomes failed without any response. `remaining`: requests not made."""
    if reported_calls is None:
        return end
    data, words = {**end.data, "calls": reported_calls.build_json()}, reported_calls.unanswered_note
    if end.kind == "cancelled" and remaining:
        note = f"at least {format_count(remaining, 'further request')} {'was' if remaining == 1 else 'were'} not made before the end"
        words = f"{words}; {note}" if words else note
    if end.kind == "completed" and reported_calls.is_without_answer:
        return Ending("failed", {**data, "reason": words})
    return Ending(end.kind, data if words is None else {**data, "warning": words})


def _describe_canceller(canceller: str | None) -> dict[str, str]:
    return {"reason": "its run was cancelled in Dagster"} if canceller is None else {"by": canceller}


def _is_restart_pending(instance: dg.DagsterInstance, record: dg.RunRecord) -> bool:
    """Return whether Dagster will restart the run. The tag follows the failure with a delay."""
    will_retry_tag = record.dagster_run.tags.get(WILL_RETRY_TAG)
    may = will_retry_tag == "true" or (will_retry_tag is None and instance.run_retries_enabled)
    return may and time.time() - (record.end_time or 0.0) < RETRY_PATIENCE_S


def find_failure_reasons(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dict[str, Any]:
    """Return `reason`, and `failed`: the reason of each failed partition, by key."""
    partition_reasons, stage_reasons = dict[str, str](), list[str]()
    for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE):
        failure = entry.get_dagster_event().step_failure_data
        if (reasons := parse_partition_failures(failure)) is not None:
            partition_reasons.update(reasons)
        else:
            stage_reasons.append(f"{entry.step_key}: {describe_stage_failure(failure, run, instance.root_directory)}")
    if partition_reasons:
        first, reason = min(partition_reasons.items())
        n_failed = len(partition_reasons)
        others = f"{format_count(n_failed, 'partition')} failed, the first: " if n_failed > 1 else ""
        stage_reasons.append(f"{others}{first}: {reason}")
    reason = "; ".join(dict.fromkeys(stage_reasons)) or _describe_worker_end(instance, run)
    failures = dict(sorted(partition_reasons.items())[:MAX_REPORTED_PARTITIONS])
    return {"reason": reason[:_MAX_REASON_CHARACTERS], **({"failed": failures} if failures else {})}


def _describe_worker_end(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """Return why a run without a failed step failed."""
    ends = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.RUN_FAILURE)
    message = next((entry.get_dagster_event().message or entry.user_message for entry in reversed(ends)), "")
    if message.startswith(_WORKER_LOST):
        n_starts = 1 + int(run.tags.get(RETRY_NUMBER_TAG, "0"))
        return f"its worker died, {format_count(n_starts, 'time')}: it was killed, or ran out of memory"
    return message or "the run failed without a reason"


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
