"""All private names of Dagster that are used, in one place: each with the reason and a possible replacement.

Nothing else in the project imports `dagster._*`, except `resources/dagster_storage.py` and `resources/dagster_postgres_storage.py`, which
are Dagster storages. `pyproject.toml` limits Dagster to the minor release for which these names were checked. Before raising the limit, run
`tests/assets/stage/test_dagster_internals.py`, which reports changed names; the comments here give their use.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from copy import copy
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TextIO, cast

import click
import dagster as dg

# Validates `dagster.yaml` for the classes it names. Replaced by: as `InstanceRef` below.
from dagster._config import process_config, resolve_to_config_type

# The three parts of a provenance tag, and the two tags of a version. Needed because Dagster writes them itself only if all partitions
# of a run share one version. Replaced by: a public way to give each partition of a run its own `dg.DataVersion` and its inputs.
from dagster._core.definitions.data_version import (
    CODE_VERSION_TAG,
    DATA_VERSION_IS_USER_PROVIDED_TAG,
    DATA_VERSION_TAG,
    DEFAULT_DATA_VERSION,
    NULL_EVENT_POINTER,
    get_input_data_version_tag,
    get_input_event_pointer_tag,
)

# Selects the states of sensors. Replaced by: a public `DagsterInstance.get_sensor_state(name)`.
from dagster._core.definitions.run_request import InstigatorType

# The key that marks a result which logs no materialization of its own: stages log theirs, each partition with its own data version.
# Replaced by: a public `MaterializeResult` that logs nothing.
from dagster._core.definitions.source_asset import SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION as LOGS_NOTHING

# The error for an unreachable code server. Replaced by: a public health check of code locations.
from dagster._core.errors import DagsterUserCodeUnreachableError

# Marks an event as part of a batch, so that 50 materializations are one write. Replaced by: a public `log_events(events)` of a context.
# The parts of a run's event without an asset: the progress of an evaluation's run.
# Replaced by: a public way to log an event with metadata that concerns no asset.
from dagster._core.events import DagsterEventBatchMetadata, EngineEventData

# Starts the processes that mirror a step's output. Replaced by: as `shield_output_mirrors` below.
from dagster._core.execution import compute_logs

# Selects unfinished backfills. Replaced by: the same name in `dagster`.
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill

# Claims slots of pools like the executor: an asset has one fixed pool, but its configuration decides which providers it calls.
# Replaced by: a public way to claim and free slots of a pool from within a step.
from dagster._core.execution.plan.instance_concurrency_context import InstanceConcurrencyContext

# The parts of a failed step's event, for a step that fails partially while the run continues.
# Replaced by: a public way to report a step as failed and let the steps after it run.
from dagster._core.execution.plan.objects import ErrorSource, StepFailureData, UserFailureData

# Reads `dagster.yaml` like a starting instance. Needed because an instance creates files at start, and `dtef doctor` creates nothing.
# Replaced by: a public check of the file.
from dagster._core.instance.ref import InstanceRef

# A run launcher's answer to run monitoring on a worker's health. Replaced by: the same names in `dagster`,
# where `DefaultRunLauncher` is already.
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus

# Identifies runs of this code location, and limits how often the daemon restarts a run whose process is gone.
# Replaced by: `execute_in_process` with the code location as an argument; a public name of the tag.
from dagster._core.remote_origin import RemoteRepositoryOrigin

# A sensor's state, including its cursor and the time of its last tick, and the result of a tick. Replaced by: the
# `get_sensor_state` named above; a public `DagsterInstance.get_sensor_ticks(name)`.
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, SensorInstigatorData, TickStatus

# Two tags select a range of partitions for one run, one holds the address of the code server that started a run's worker, and tags with
# the prefix are hidden in the list of runs. Two say whether the daemon restarts a failed run, and how often it
# it did. Replaced by: a `RunRequest` for a range; a public `DagsterRun.code_server`; hidden tags; a public `DagsterRun.will_retry`.
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_END_TAG as RANGE_END
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_START_TAG as RANGE_START
from dagster._core.storage.tags import GRPC_INFO_TAG, HIDDEN_TAG_PREFIX, MAX_RETRIES_TAG, RETRY_NUMBER_TAG, WILL_RETRY_TAG
from dagster._core.workspace.load import location_origins_from_yaml_paths

# Constructor argument of classes named in `dagster.yaml`. Replaced by: the same name in `dagster`.
from dagster._serdes import ConfigurableClassData

# Changes a field of a record, here of a check's evaluation. Replaced by: as `make_nonblocking` below.
from dagster_shared.record import replace

_PROGRESS_DATA = "dtef/progress"
OWN_LINES = (
    "Exception while storing event batch: ",
    "Falling back to storing multiple single-event storage requests",
    "Exception while writing logger call to event log: ",
)
"""Prefixes of texts that Dagster writes to stderr besides raising the error: SQLAlchemy dumps, each in one call of `write`."""


def get_step(context: dg.AssetExecutionContext) -> Any:
    """Return the step behind an asset's context, which logs events and knows the versions of its inputs.

    Replaced by: a public way to log events of a step, and to read the version of an input.
    """
    return context.op_execution_context.get_step_execution_context()


def log_step_failure(context: dg.AssetExecutionContext, message: str, metadata: Mapping[str, dg.MetadataValue[Any]]) -> None:
    """Log that the step failed, without ending it: the run continues, and a re-execution "from failure" begins with this step."""
    description = UserFailureData("partitions failed", message, metadata)  # type: ignore[no-untyped-call]
    failure = StepFailureData(None, description, ErrorSource.USER_CODE_ERROR)  # type: ignore[no-untyped-call]
    dg.DagsterEvent.step_failure_event(get_step(context), failure, message)


def log_run_event(context: dg.AssetExecutionContext, message: str, data: Mapping[str, Any]) -> None:
    """Log an event of the run with this data, for `read_event_data`."""
    metadata = EngineEventData(metadata={_PROGRESS_DATA: dg.MetadataValue.json(dict(data))})
    step = context.op_execution_context.get_step_execution_context().step.key
    context.instance.report_engine_event(message, context.run, metadata, step_key=step)


def read_event_data(event: dg.DagsterEvent) -> Mapping[str, Any] | None:
    """Return the data that `log_run_event` wrote to an event, or None for other events."""
    data = event.event_specific_data
    event_note = data.metadata.get(_PROGRESS_DATA) if isinstance(data, EngineEventData) else None
    return cast(Mapping[str, Any], event_note.value) if isinstance(event_note, dg.JsonMetadataValue) else None


@contextmanager
def use_code_location(instance: dg.DagsterInstance, job: str, workspace: Path) -> Iterator[None]:
    """Assign runs of the job that this process creates meanwhile to the first code location of the workspace file.

    Without one the UI lists a run only under *Runs*, not in the timeline of its first page, and cannot re-execute it. `execute_in_process`
    creates its run by this method of the instance, and has no code location argument.
    """
    location, *_ = location_origins_from_yaml_paths([str(workspace)])
    origin = RemoteRepositoryOrigin(location, "__repository__").get_job_origin(job)
    create_run = instance.create_run_for_job
    vars(instance)["create_run_for_job"] = partial(create_run, remote_job_origin=origin)
    try:
        yield
    finally:
        del vars(instance)["create_run_for_job"]


@contextmanager
def filter_storage_messages() -> Iterator[None]:
    """Hide what Dagster writes to stderr about events that it cannot store: it retries, or raises the error, which is reported.

    Replaced by: a setting of Dagster that sends these lines to its log.
    """
    with redirect_stderr(cast(TextIO, _FilteredStream(sys.stderr))):
        yield


@contextmanager
def shield_output_mirrors() -> Iterator[None]:
    """Shield the processes that show a step's output in the terminal from Ctrl-C: each would print a traceback after the command's.

    Dagster starts `tail` and a watcher for each stream. Both end with the step, or with this process. Replaced by: a Dagster that starts
    them in another session.
    """
    original = vars(compute_logs)["subprocess"]
    replacement = SimpleNamespace(Popen=partial(subprocess.Popen, start_new_session=True))
    vars(compute_logs)["subprocess"] = replacement
    try:
        yield
    finally:
        vars(compute_logs)["subprocess"] = original


class _FilteredStream:
    """A stream that drops OWN_LINES and passes on all else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return len(text) if text.startswith(OWN_LINES) else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def watch_steps(instance: dg.DagsterInstance, run_id: str, on_step: Callable[[str], None]) -> None:
    """Call `on_step` with the key of each step of the run when it starts, in the process that executes the run.

    Replaced by: a public way to watch the events of a run that `execute_in_process` creates.
    """

    def event_note(entry: dg.EventLogEntry) -> None:
        event = entry.dagster_event
        if event is not None and event.is_step_start and event.step_key:
            on_step(event.step_key)

    instance.add_event_listener(run_id, event_note)


class _NotBlocking(dg.AssetCheckResult):
    def to_asset_check_evaluation(self, step_context: Any) -> dg.AssetCheckEvaluation:
        return replace(super().to_asset_check_evaluation(step_context), blocking=False)


def make_nonblocking(result: dg.AssetCheckResult) -> dg.AssetCheckResult:
    """Return the same result, which does not block the run. Replaced by: a public `AssetCheckResult(blocking=False)`."""
    return _NotBlocking(
        passed=result.passed, severity=result.severity, metadata=result.metadata, description=result.description
    )


def list_backfills(instance: dg.DagsterInstance) -> list[PartitionBackfill]:
    """Return the backfills that have not ended. Replaced by: a public `DagsterInstance.get_backfills`."""
    return list(instance.get_backfills(status=BulkActionStatus.REQUESTED))


class SensorState(NamedTuple):
    """The state of a sensor in Dagster's storage."""

    is_stopped: bool = False
    ticked_at: float | None = None
    """When its last tick began, or when it was switched on, if later, in seconds since 1970; None if it never ticked here."""
    error: Any = None
    """The error of the last completed tick, if it failed."""
    cursor: str | None = None


def read_sensor_state(instance: dg.DagsterInstance, name: str) -> SensorState:
    """Return the state of the sensor of this name; if several code locations had it, of the most recently active one."""
    states = instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
    newest = max((state for state in states if state.instigator_name == name), key=_find_last_tick, default=None)
    if newest is None:
        return SensorState()
    data, statuses = newest.instigator_data, [TickStatus.SUCCESS, TickStatus.SKIPPED, TickStatus.FAILURE]
    sensor_data = data if isinstance(data, SensorInstigatorData) else SensorInstigatorData()
    is_well = sensor_data.last_tick_success_timestamp
    ticks = [] if is_well else instance.get_ticks(newest.instigator_origin_id, newest.selector_id, limit=1, statuses=statuses)
    error = next((tick.error for tick in ticks if tick.status is TickStatus.FAILURE), None)
    is_stopped = newest.status is InstigatorStatus.STOPPED
    return SensorState(is_stopped, _find_last_tick(newest) or None, error, sensor_data.cursor)


def _find_last_tick(state: InstigatorState) -> float:
    data = state.instigator_data
    if not isinstance(data, SensorInstigatorData):
        return 0.0
    return max(data.last_tick_start_timestamp or 0.0, data.last_tick_timestamp or 0.0, data.last_sensor_start_timestamp or 0.0)


def is_server_up(host: str, port: int) -> bool:
    """Return whether a code server answers at this address. Replaced by: a public health check of code locations."""
    # Imports gRPC, which only the run launcher needs.
    from dagster._grpc.client import DagsterGrpcClient

    try:
        DagsterGrpcClient(host=host, port=port).ping("")
    except DagsterUserCodeUnreachableError:
        return False
    return True


def read_storage_settings(home: Path) -> Mapping[str, Any]:
    """Return the storage settings in the `dagster.yaml` of a folder. The whole file is checked, and nothing is opened or created.

    Raises the error with which Dagster would not start.
    """
    instance = InstanceRef.from_dir(str(home))
    settings: Mapping[str, Any] = {}
    for named in (instance.run_coordinator_data, instance.run_launcher_data, instance.storage_data):
        if named is not None:
            kind = getattr(import_module(named.module_name), named.class_name)
            result = process_config(resolve_to_config_type(kind.config_type()), dict(named.config_dict))
            if not result.success:
                event_note = f"{named.class_name} in dagster.yaml"
                raise dg.DagsterInvalidConfigError(event_note, result.errors, named.config_dict)  # type: ignore[no-untyped-call]
            settings = result.value or {}
    return settings


def build_web_server_command(guard: Callable[[Any, str], Any]) -> click.Command:
    """Return `dagster-webserver`, serving `guard(application, bound host)`. Replaced by: a setting that adds middleware to the server."""
    # Imports the server, which nothing else needs.
    from dagster_webserver import cli

    create_app, command = vars(cli)["create_app_from_workspace_process_context"], copy(cli.dagster_webserver)
    serve = cast(Callable[..., None], command.callback)

    def serve_guarded(**options: Any) -> None:
        vars(cli)[create_app.__name__] = lambda *args, **named: guard(create_app(*args, **named), options["host"])
        serve(**options)

    command.callback = serve_guarded
    return command


def dev_command(web_server: str) -> click.Command:
    """Return `dagster dev`, which starts the module `web_server` instead of Dagster's. Replaced by: a setting for the web server."""
    from dagster._cli import dev

    start = vars(dev)["open_ipc_subprocess"]

    def start_ours(parts: list[str], **named: Any) -> Any:
        return start([web_server if part == "dagster_webserver" else part for part in parts], **named)

    vars(dev)[start.__name__] = start_ours
    return dev.dev_command
