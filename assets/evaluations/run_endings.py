"""The result of an evaluation's Dagster run, as an event."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import dagster as dg

from assets.stage.dagster_internals import RETRY_NUMBER_TAG, WILL_RETRY_TAG
from assets.stage.failure_text import describe_stage_failure, parse_partition_failures
from dtef_pipeline.text.number_words import format_count
from resources.evaluations.evaluation_calls import EvaluationCalls
from resources.evaluations.evaluation_store import EventKind

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
