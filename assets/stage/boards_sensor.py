"""The sensor of a family that keeps its roll-ups as new as the partitions they read."""

import json
import time
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

import dagster as dg

from assets.stage.dagster_internals import list_backfills
from assets.stage.partitions import process_of
from assets.stage.resources import READ_AFTER_TAG

LONGEST_PATIENCE_S = 600.0
"""Longest time in seconds that roll-ups wait for runs that will produce more inputs."""
_TO_END = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


class _Cursor(NamedTuple):
    """The state of the sensor between ticks."""

    requested: int = 0
    """Event log id of the newest materialization when roll-ups were last requested."""
    waits_since: float | None = None
    """Since when roll-ups have been waiting, in seconds since 1970, or None."""


Inputs = Mapping[dg.AssetKey, Set[dg.AssetKey]]
"""The assets behind each roll-up of a family, also through other roll-ups."""


def _find_inputs(roll_ups: Sequence[dg.AssetsDefinition]) -> Inputs:
    parents = {asset.key: set(asset.dependency_keys) for asset in roll_ups}

    def outside(key: dg.AssetKey) -> set[dg.AssetKey]:
        return set().union(*(outside(parent) if parent in parents else {parent} for parent in parents[key]))

    return {key: outside(key) for key in parents}


def _find_stale(instance: dg.DagsterInstance, inputs: Inputs) -> dict[dg.AssetKey, int]:
    """Return the newest input of each outdated roll-up, as a materialization's id in the event log."""
    records = instance.get_asset_records([*set().union(*inputs.values()), *inputs])
    event = {item.asset_entry.asset_key: last for item in records if (last := item.asset_entry.last_materialization_record)}
    newest = {key: max((event[dep].storage_id for dep in deps if dep in event), default=0) for key, deps in inputs.items()}
    # The last event when the run of a roll-up began to read, or 0 if unknown.
    run_ids = {key: event[key].run_id for key in inputs if key in event}
    runs = {run_id: instance.get_run_by_id(run_id) for run_id in set(run_ids.values())}
    read_after = {run_id: int(run.tags.get(READ_AFTER_TAG, "0")) if run else 0 for run_id, run in runs.items()}
    return {
        key: newest_id for key, newest_id in newest.items() if newest_id > (read_after[run_ids[key]] if key in run_ids else 0)
    }


def boards_after_run(
    name: str, roll_ups: Sequence[dg.AssetsDefinition], job: Any, scores: dg.AssetKey, description: str
) -> dg.SensorDefinition:
    """Return the sensor `name`, which runs `job` for those of the `roll_ups` that are older than their inputs.

    It depends only on the current state: any new partition makes the roll-ups outdated, whether from a command, job, backfill or click, in
    a run that succeeded or failed in part, even during a roll-up. Roll-ups wait for runs that will produce more, at most
    LONGEST_PATIENCE_S. Failed roll-ups are requested again when an input is newer. `scores`: without it there is nothing to show.
    """
    inputs = _find_inputs(roll_ups)

    def follow(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        before, instance = _Cursor(*json.loads(context.cursor or "[]")), context.instance
        stale_keys = _find_stale(instance, inputs)
        newest = max(stale_keys.values(), default=0)
        if not stale_keys or instance.get_latest_materialization_event(scores) is None:
            return _skip("nothing was scored since the boards were made", _Cursor(before.requested))
        waits_since = before.waits_since or time.time()
        run_ids, feeding = _find_blocking_runs(instance, inputs, job.name)
        if run_ids:
            return _skip(f"run {run_ids[0]} makes boards or is about to", _Cursor(before.requested))
        if newest == before.requested:
            return _skip("some of the requested boards were not made; see their run", before)
        if time.time() - waits_since < LONGEST_PATIENCE_S and (reason := feeding or _find_blocking_command(instance, inputs)):
            return _skip(f"waits: {reason}", _Cursor(before.requested, waits_since))
        selection = None if len(stale_keys) == len(inputs) else sorted(stale_keys)
        return dg.SensorResult(run_requests=[dg.RunRequest(asset_selection=selection)], cursor=json.dumps(_Cursor(newest)))

    return dg.SensorDefinition(
        name=name,
        evaluation_fn=follow,
        job=job,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=description,
    )


def _skip(reason: str, cursor: _Cursor) -> dg.SensorResult:
    return dg.SensorResult(skip_reason=dg.SkipReason(reason), cursor=json.dumps(cursor))


def _find_blocking_runs(instance: dg.DagsterInstance, inputs: Inputs, job: str) -> tuple[list[str], str]:
    """Return the runs that will make roll-ups, and why to wait for others that make their inputs; empty if there are none."""
    rolling, feeding, all_inputs = list[str](), "", set().union(*inputs.values())
    for record in instance.get_run_records(dg.RunsFilter(statuses=_TO_END)):
        run = record.dagster_run
        if _is_lost(record):
            continue
        assets = _list_run_assets(instance, run)
        if run.job_name == job or not assets.isdisjoint(inputs):
            rolling.append(run.run_id)
        elif not assets.isdisjoint(all_inputs):
            feeding = f"run {run.run_id} has not ended"
    for backfill in list_backfills(instance):
        if not set(backfill.asset_selection or ()).isdisjoint({*inputs, *all_inputs}):
            feeding = feeding or f"backfill {backfill.backfill_id} has not ended"
    return rolling, feeding


def _list_run_assets(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Set[dg.AssetKey]:
    if run.asset_selection is not None:
        return run.asset_selection
    return instance.get_asset_keys_for_run(run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED)


def _is_lost(record: dg.RunRecord) -> bool:
    """Return whether a run will never end, because its process was killed."""
    process = process_of(record.dagster_run)
    if process is not None and process.is_dead():
        return True
    is_old = time.time() - record.create_timestamp.timestamp() > LONGEST_PATIENCE_S
    return is_old and record.dagster_run.status == dg.DagsterRunStatus.NOT_STARTED


def _find_blocking_command(instance: dg.DagsterInstance, inputs: Inputs) -> str:
    """Return why to wait for a command that made the latest inputs, and makes its own roll-ups before it ends; empty if there is none."""
    records = instance.get_asset_records([*set().union(*inputs.values())])
    latest = (record.asset_entry.last_materialization_record for record in records)
    for run_id in {event.run_id for event in latest if event}:
        run = instance.get_run_by_id(run_id)
        process = process_of(run) if run else None
        if process is not None and not process.is_dead():
            return f"the command that started run {run_id} makes its own boards before it ends"
    return ""
