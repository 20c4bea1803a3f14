"""What the Dagster run of an evaluation came to, in the words of events."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import dagster as dg

from assets.stage.dagster_internals import RETRY_NUMBER_TAG, WILL_RETRY_TAG
from assets.stage.failure_words import reasons_of_partitions, words_of_a_stage
from dtef_pipeline.text.counted import counted
from resources.evaluations.evaluation_calls import EvaluationCalls
from resources.evaluations.evaluation_store import EventKind

RETRY_PATIENCE_S = 600.0
"""How long a run that failed is waited for to be started once more. The daemon does so within seconds, if it does."""
MOST_TOLD_PARTITIONS = 200
"""Partitions of which an event says why they failed."""
_LONGEST_TOLD_REASON = 2_000
_WORKER_IS_GONE = ("This run has been marked as failed from outside the execution context", "Detected run worker status")
"""How Dagster begins what it says of a run whose process is not there any more."""
CANCELLED_TAG = "dtef/cancelled_by"
"""Of a run: who wanted its evaluation to end."""


class Ending(NamedTuple):
    """The last event of an evaluation."""

    kind: EventKind
    data: Mapping[str, Any]


def ending(instance: dg.DagsterInstance, record: dg.RunRecord, asked_by: str | None) -> Ending | None:
    """How an evaluation ends whose newest run is this; None: it does not end yet. `asked_by`: who wants it to end, if somebody does."""
    run = record.dagster_run
    of_run = {"dagster_run_id": run.run_id}
    if run.status is dg.DagsterRunStatus.SUCCESS:
        return Ending("completed", of_run)
    if run.status is dg.DagsterRunStatus.CANCELED:
        return Ending("cancelled", {**of_run, **_by(asked_by)})
    if run.status is not dg.DagsterRunStatus.FAILURE:
        return None
    if asked_by is not None and run.tags.get(CANCELLED_TAG):
        return Ending("cancelled", {**of_run, **_by(asked_by)})
    if not _will_start_again(instance, record):
        return Ending("failed", {**of_run, **why_it_failed(instance, run)})
    if asked_by is None:
        return None
    # Nobody wants it to go on. The second tag tells the next tick of it, should this one not come to the end.
    instance.add_run_tags(run.run_id, {WILL_RETRY_TAG: "false", CANCELLED_TAG: asked_by})
    return Ending("cancelled", {**of_run, **_by(asked_by)})


def with_calls(end: Ending, told: EvaluationCalls | None, left: int = 0) -> Ending:
    """The ending with what became of all requests: where nothing at all was answered nothing is completed. `left`: those not made yet."""
    if told is None:
        return end
    data, words = {**end.data, "calls": told.as_json()}, told.unanswered
    if end.kind == "cancelled" and left:
        never = f"at least {counted(left, 'further request')} {'was' if left == 1 else 'were'} not made before the end"
        words = f"{words}; {never}" if words else never
    if end.kind == "completed" and told.is_without_answer:
        return Ending("failed", {**data, "reason": words})
    return Ending(end.kind, data if words is None else {**data, "warning": words})


def _by(who: str | None) -> dict[str, str]:
    return {"reason": "its run was cancelled in Dagster"} if who is None else {"by": who}


def _will_start_again(instance: dg.DagsterInstance, record: dg.RunRecord) -> bool:
    """The tag follows the failure a moment later."""
    said = record.dagster_run.tags.get(WILL_RETRY_TAG)
    may = said == "true" or (said is None and instance.run_retries_enabled)
    return may and time.time() - (record.end_time or 0.0) < RETRY_PATIENCE_S


def why_it_failed(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dict[str, Any]:
    """`reason`, and `failed`: why each partition failed that did, by key."""
    of_partitions, told = dict[str, str](), list[str]()
    for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE):
        failure = entry.get_dagster_event().step_failure_data
        if (reasons := reasons_of_partitions(failure)) is not None:
            of_partitions.update(reasons)
        else:
            told.append(f"{entry.step_key}: {words_of_a_stage(failure, run, instance.root_directory)}")
    if of_partitions:
        told.append(_of_partitions_in_words(of_partitions))
    reason = "; ".join(dict.fromkeys(told)) or _how_the_worker_ended(instance, run)
    kept = dict(sorted(of_partitions.items())[:MOST_TOLD_PARTITIONS])
    return {"reason": reason[:_LONGEST_TOLD_REASON], **({"failed": kept} if kept else {})}


def _of_partitions_in_words(reasons: Mapping[str, str]) -> str:
    """`poker/kuhn: no space left`, or `3 partitions failed, the first: poker/kuhn: no space left`."""
    first, why = min(reasons.items())
    told = f"{first}: {why}"
    return told if len(reasons) == 1 else f"{counted(len(reasons), 'partition')} failed, the first: {told}"


def _how_the_worker_ended(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """Of a run of which no step says that it failed."""
    ends = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.RUN_FAILURE)
    said = next((entry.get_dagster_event().message or entry.user_message for entry in reversed(ends)), "")
    if said.startswith(_WORKER_IS_GONE):
        return f"its worker died, {counted(_times_started(run), 'time')}: it was killed, or the memory was not enough"
    return said or "the run failed, and did not say why"


def _times_started(run: dg.DagsterRun) -> int:
    number = run.tags.get(RETRY_NUMBER_TAG, "0")
    return 1 + (int(number) if number.isdecimal() else 0)
