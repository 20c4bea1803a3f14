"""The sensor that starts evaluations requested over HTTP, and stores their results."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import dagster as dg

from assets.evaluations.run_log import CANCELLED_TAG, DagsterRunLog, add_call_counts, ending
from assets.stage.dagster_internals import MAX_RETRIES_TAG
from assets.stage.partitions import SNAPSHOT_TAG, build_partition_tags
from assets.stage.resources import Store
from dtef_pipeline.errors import DtefError
from resources.evaluations.evaluation_calls import count_calls_left, sum_reported_calls
from resources.evaluations.evaluation_store import (
    QUEUE_SENSOR,
    QUEUE_TAG,
    Evaluation,
    EvaluationStore,
    has_evaluations,
    sum_call_costs_by,
)
from resources.failures import format_one_line, links
from resources.responses.database import ResponseDatabase

MAX_REQUESTS = 20
"""How often a run is requested if it does not appear."""
_IS_ALIVE = (
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
)


def build_queue_sensor(jobs: Sequence[Any]) -> dg.SensorDefinition:
    """Return the sensor `evaluation_queue`. `jobs`: the scoring jobs of all families; an evaluation's plan names one of them."""

    def process_queue(context: dg.SensorEvaluationContext, store: Store) -> dg.SensorResult | dg.SkipReason:
        """Request one run per evaluation. Creates nothing if none was requested yet."""
        location = store.responses_url or store.settings.responses_url
        if not has_evaluations(location):
            return dg.SkipReason("no evaluation has been requested yet")
        database = ResponseDatabase(location)
        try:
            return _process_evaluations(context, EvaluationStore(database, DagsterRunLog(context.instance)))
        finally:
            database.close()

    return dg.sensor(
        name=QUEUE_SENSOR,
        jobs=list(jobs),
        minimum_interval_seconds=5,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Starts the evaluations that were requested over HTTP, one run each, cancels evaluations on request, "
        "and stores their outcomes.",
    )(process_queue)


def _process_evaluations(context: dg.SensorEvaluationContext, store: EvaluationStore) -> dg.SensorResult | dg.SkipReason:
    evaluations = store.open_evaluations()
    if not evaluations:
        return dg.SkipReason("no evaluation is waiting or running")
    ids = [evaluation.queue_id for evaluation in evaluations]
    request_counts = _read_request_counts(context)
    tick = _Tick(context, store, _find_newest_runs(context.instance, ids), store.cancels(ids), request_counts)
    requests, counts = list[dg.RunRequest](), dict[str, int | None]()
    for evaluation in evaluations:
        if (request := _process_evaluation_safely(tick, evaluation)) is not None:
            requests.append(request)
            counts[evaluation.queue_id] = (request_counts.get(evaluation.queue_id) or 0) + 1
        elif evaluation.queue_id in tick.runs:
            counts[evaluation.queue_id] = None
    waits = dg.SkipReason(f"evaluations waiting or running: {len(evaluations):,}")
    return dg.SensorResult(run_requests=requests or None, skip_reason=None if requests else waits, cursor=json.dumps(counts))


class _Tick(NamedTuple):
    """The state of all unended evaluations, by queue id."""

    context: dg.SensorEvaluationContext
    store: EvaluationStore
    runs: Mapping[str, dg.RunRecord]
    """The newest run of each evaluation."""
    cancels: Mapping[str, str]
    requested: Mapping[str, int | None]
    """Number of requests so far if no run has appeared; None if there was one at the last tick."""


def _find_newest_runs(instance: dg.DagsterInstance, ids: Sequence[str]) -> dict[str, dg.RunRecord]:
    runs: dict[str, dg.RunRecord] = {}
    for record in instance.get_run_records(dg.RunsFilter(tags={QUEUE_TAG: list(ids)})):
        runs.setdefault(record.dagster_run.tags[QUEUE_TAG], record)
    return runs


def _read_request_counts(context: dg.SensorEvaluationContext) -> dict[str, int | None]:
    """Return the counts stored by the previous tick."""
    try:
        counts = json.loads(context.cursor or "{}")
        return {str(name): None if number is None else int(number) for name, number in counts.items()}
    except (ValueError, AttributeError, TypeError):
        return {}  # the cursor was edited in the UI


class _CannotRun(DtefError):
    """The plan of an evaluation cannot be run at present."""


def _process_evaluation_safely(tick: _Tick, evaluation: Evaluation) -> dg.RunRequest | None:
    """Process one evaluation: an error ends at most this one."""
    try:
        return _process_evaluation(tick, evaluation)
    except _CannotRun as error:
        cause = error.__cause__ or error
        tick.context.log.error(f"evaluation {evaluation.queue_id} has ended", exc_info=not isinstance(cause, DtefError))
        reason = f"it cannot be run: {format_one_line(links(cause))}"[:2_000]
        tick.store.end(evaluation.queue_id, "failed", {"reason": reason})
    except Exception as error:
        # The store or Dagster's own database is unreachable: the next tick retries.
        tick.context.log.warning(f"evaluation {evaluation.queue_id}: {format_one_line(links(error))}", exc_info=True)
    return None


def _process_evaluation(tick: _Tick, evaluation: Evaluation) -> dg.RunRequest | None:
    record, canceller = tick.runs.get(evaluation.queue_id), tick.cancels.get(evaluation.queue_id)
    if record is None:
        return _handle_missing_run(tick, evaluation, canceller)
    run = record.dagster_run
    if canceller is not None and run.status in _IS_ALIVE:
        _cancel(tick.context, run, canceller)
    elif (end := ending(tick.context.instance, record, canceller)) is not None:
        events = tick.store.events(evaluation.queue_id)
        end = add_call_counts(end, sum_reported_calls(events), count_calls_left(events))
        tick.store.end(
            evaluation.queue_id, end.kind, {**end.data, "call_costs": sum_call_costs_by(tick.store, evaluation.queue_id)}
        )
    return None


def _cancel(context: dg.SensorEvaluationContext, run: dg.DagsterRun, canceller: str) -> None:
    """Cancel a queued or running run. If the worker is unreachable, run monitoring ends the run, or the next tick retries.

    A starting worker, which cannot end by itself, fails: its run must not be restarted.
    """
    if CANCELLED_TAG not in run.tags:
        context.instance.add_run_tags(run.run_id, {MAX_RETRIES_TAG: "0", CANCELLED_TAG: canceller})
    try:
        context.instance.run_coordinator.cancel_run(run.run_id)
    except Exception as error:
        context.log.warning(f"run {run.run_id} could not be cancelled: {format_one_line(links(error))}")


def _handle_missing_run(tick: _Tick, evaluation: Evaluation, canceller: str | None) -> dg.RunRequest | None:
    if canceller is not None:
        tick.store.end(evaluation.queue_id, "cancelled", {"by": canceller})
        return None
    requests = tick.requested.get(evaluation.queue_id, 0)
    if requests is None:
        tick.store.end(evaluation.queue_id, "failed", {"reason": "its run was deleted in Dagster"})
    elif requests >= MAX_REQUESTS:
        reason = f"Dagster created no run after {MAX_REQUESTS} requests; the ticks of the sensor {QUEUE_SENSOR} have the reason"
        tick.store.end(evaluation.queue_id, "failed", {"reason": reason})
    else:
        return _request(tick.context, evaluation)
    return None


def _request(context: dg.SensorEvaluationContext, evaluation: Evaluation) -> dg.RunRequest:
    """Return the run of an evaluation's plan. Raises _CannotRun."""
    plan = evaluation.plan
    try:
        stages = [dg.AssetKey(name) for name in plan["config"]]
        config = {"ops": {name: {"config": options} for name, options in plan["config"].items()}}
        if context.repository_def is not None:
            job = context.repository_def.get_job(plan["job"]).get_subset(asset_selection=frozenset(stages))
            dg.validate_run_config(job, config)
        if not (keys := list(plan["keys"])):
            raise DtefError("the plan names no partition")
    except Exception as error:  # faulty plans raise many types; no database is involved
        raise _CannotRun(str(error)) from error
    known_keys = list(context.instance.get_dynamic_partitions(plan["space"]))
    if new := [key for key in keys if key not in set(known_keys)]:
        if not plan["new_keys"]:
            raise _CannotRun(f"not registered with Dagster: {', '.join(new)}")
        context.instance.add_dynamic_partitions(plan["space"], new)
        known_keys += new
    return dg.RunRequest(
        run_key=f"evaluation {evaluation.queue_id}",
        job_name=plan["job"],
        tags={**build_partition_tags(known_keys, keys), SNAPSHOT_TAG: plan["snapshot"], QUEUE_TAG: evaluation.queue_id},
        run_config=config,
        asset_selection=stages,
    )
