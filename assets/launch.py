"""Runs started from the command line: Dagster runs in this process, on the instance the UI shows."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from typing import Any

import dagster as dg

from assets import plugin_assets
from assets.stage.dagster_internals import (
    MAX_RETRIES_TAG,
    filter_storage_messages,
    shield_output_mirrors,
    use_code_location,
    watch_steps,
)
from assets.stage.partitions import (
    PROCESS_TAG,
    build_partition_tags,
    describe_stage_failure,
    format_failures,
    get_stage_verb,
    parse_partition_failures,
    process_of,
)
from assets.stage.resources import SKIPPED_TAG
from dtef_pipeline.errors import DtefError, Interrupted
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.record import Family
from dtef_pipeline.family.stage import TAKEN_AWAY
from resources.failures import add_remedy
from resources.responses.processes import Process
from resources.settings import find_shipped

defs: dg.Definitions | None = None
"""Definitions for tests that change them; None: those of the family."""
_INTERRUPTS = (dg.DagsterExecutionInterruptedError.__name__, "InterruptException")


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """The result of a command's runs. `failures`: messages, empty if all succeeded."""

    run_ids: tuple[str, ...]
    failures: tuple[str, ...]
    superseded: int = 0
    """Number of earlier predictions removed because their prompts changed."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Unreadable files that were skipped, each with its log line."""
    done: tuple[str, ...] = ()
    """The partitions for which the last asset was materialized."""
    taken_away: tuple[str, ...] = ()
    """Partitions that lost an outdated summary and its grades, because no analyst was named."""

    def __add__(self, later: "LaunchResult") -> "LaunchResult":
        return LaunchResult(*(before + after for before, after in zip(astuple(self), astuple(later), strict=True)))


def materialize(
    instance: dg.DagsterInstance,
    names: Sequence[str],
    keys: Sequence[str],
    config: Mapping[str, Mapping[str, Any]],
    tags: Mapping[str, str] | None = None,
    on_step: Callable[[str], None] | None = None,
    family: str = "survey",
) -> LaunchResult:
    """Materialize assets of a family, for its partitions `keys`, in one run.

    `config`: configuration by asset name. Assets without partitions take no keys. `on_step`: called with the name of each asset when it
    begins. Raises Interrupted after a Ctrl-C.
    """
    close_abandoned_runs(instance)
    partition_tags = _select_partitions(instance, FAMILY_BY_NAME[family], keys) if keys else {}
    result = _run(instance, family, names, {**partition_tags, **(tags or {})}, config, on_step)
    if _is_interrupted(result):
        raise Interrupted("interrupted; every response that arrived is kept, and the same command continues")
    entries = instance.all_logs(result.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    events, last = [entry.asset_materialization for entry in entries if entry.asset_materialization], dg.AssetKey(names[-1])
    run = instance.get_run_by_id(result.run_id)
    superseded = [event.metadata["superseded"].value for event in events if "superseded" in event.metadata]
    return LaunchResult(
        (result.run_id,),
        tuple(_list_failures(result, keys, instance.root_directory)),
        sum(number for number in superseded if isinstance(number, int)),
        tuple(json.loads(run.tags.get(SKIPPED_TAG, "{}")).items() if run else ()),
        tuple(dict.fromkeys(event.partition for event in events if event.asset_key == last and event.partition)),
        tuple(str(event.partition) for event in events if TAKEN_AWAY in event.metadata),
    )


def _select_partitions(instance: dg.DagsterInstance, family: Family, keys: Sequence[str]) -> dict[str, str]:
    """Return run tags that select partitions. Raises DtefError if one is not registered."""
    known_keys = list(instance.get_dynamic_partitions(family.space.name))
    if unknown := [key for key in keys if key not in set(known_keys)]:
        command = f"dtef {family.name} {'run' if family.name == 'games' else 'add'}"
        raise DtefError(f"not registered with Dagster: {', '.join(unknown)}; `{command}` registers a {family.part}")
    return build_partition_tags(known_keys, keys)


def _run(
    instance: dg.DagsterInstance,
    family: str,
    names: Sequence[str],
    tags: Mapping[str, str],
    config: Mapping[str, Mapping[str, Any]],
    on_step: Callable[[str], None] | None,
) -> dg.ExecuteInProcessResult:
    run_config = {
        "ops": {name: {"config": dict(config[name])} for name in names if name in config},
        # The command reports failures itself; details are in the UI.
        "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
    }
    job = (defs or _load_definitions(family)).resolve_implicit_global_asset_job_def()
    # A killed command is continued by repeating it, not by the daemon.
    process_tags = {PROCESS_TAG: json.dumps(Process.current()._asdict()), MAX_RETRIES_TAG: "0"}
    run_id = str(uuid.uuid4())
    if on_step:
        watch_steps(instance, run_id, on_step)
    with (
        use_code_location(instance, job.name, find_shipped("workspace.yaml")),
        filter_storage_messages(),
        shield_output_mirrors(),
    ):
        return job.execute_in_process(
            instance=instance,
            asset_selection=[dg.AssetKey(name) for name in names],
            run_config=run_config,
            tags={**tags, **process_tags},
            raise_on_error=False,
            run_id=run_id,
        )


@cache
def _load_definitions(family: str) -> dg.Definitions:
    loaded = plugin_assets.load_definitions(family)
    # Jobs and sensors, which no command uses, take time to resolve.
    return dg.Definitions(loaded.assets, asset_checks=loaded.asset_checks, resources=loaded.resources, executor=loaded.executor)


def close_abandoned_runs(instance: dg.DagsterInstance) -> None:
    """Mark runs of killed command-line processes on this machine as failed; otherwise the UI would show them as running."""
    run_filter = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])
    for run in instance.get_runs(run_filter):
        if (process := process_of(run)) is None or not process.is_dead():
            continue
        now = instance.get_run_by_id(run.run_id)
        if (
            now is not None and now.status == dg.DagsterRunStatus.STARTED
        ):  # a process may have ended well since the list was read
            instance.report_run_failed(run, "The process of this run was killed. The same command continues where it stopped.")


def _is_interrupted(result: dg.ExecuteInProcessResult) -> bool:
    for event in result.all_events:
        error = event.step_failure_data.error if event.is_step_failure else None
        while error:
            # DuckDB raises its own error for a Ctrl-C during a query.
            if error.cls_name in _INTERRUPTS or "Query interrupted" in error.message:
                return True
            error = error.cause
    return False


def _list_failures(result: dg.ExecuteInProcessResult, keys: Sequence[str], home: str) -> list[str]:
    """Return a line for each failed stage, in order."""
    failures = [event for event in result.all_events if event.is_step_failure]
    if not result.success and not failures:
        return [f"run {result.run_id} failed; its log is in the Dagster UI"]
    lines = []
    for event in failures:
        data = event.step_failure_data
        reasons = parse_partition_failures(data)
        text = (
            describe_stage_failure(data, result.dagster_run, home) if reasons is None else format_failures(reasons, len(keys))
        )
        lines.append(add_remedy(f"{get_stage_verb(str(event.step_key))}: {text}"))
    return lines
