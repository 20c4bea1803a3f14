"""Runs as Celery tasks (`deploy/celery/dagster.yaml`): the run launcher, and the worker that executes them on any machine (`celery --app
assets.celery_runs worker`).

Dagster's own launcher relies on the last state in Celery's result backend. A lost worker records no more states, so its run would stay
`STARTED` forever; and a message that Redis delivers late starts a second task for a running run. Therefore a run's process writes
heartbeats to the backend and polls there for a request to end: both work even if the run's worker is being stopped or has lost the broker
temporarily.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import dagster as dg
from celery.signals import task_failure, task_postrun, task_prerun, worker_init
from celery.states import READY_STATES
from dagster_celery.config import TASK_EXECUTE_JOB_NAME
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG as TASK_TAG
from dagster_celery.tasks import create_execute_job_task
from kombu.exceptions import OperationalError
from redis.exceptions import AuthenticationError, RedisError

from assets.stage.dagster_internals import (
    CheckRunHealthResult,
    ConfigurableClassData,
    ExecuteRunArgs,
    LaunchRunContext,
    WorkerStatus,
    load_run_launcher,
    read_storage_settings,
    unpack_value,
)
from resources.failures import describe_start_failure, find_first_line, links
from resources.settings import Settings

SETTINGS: Mapping[str, Any] = {
    # A process per run, as with Dagster's own launcher, so that memory is freed at its end.
    "worker_max_tasks_per_child": 1,
    "worker_concurrency": 1,
    # A run stays in the queue until a worker is free, instead of waiting behind a busy one's run.
    "worker_prefetch_multiplier": 1,
    "worker_disable_prefetch": True,
    # Dagster captures output from the file descriptors, which these would hide, and has its own loggers.
    "worker_redirect_stdouts": False,
    "worker_hijack_root_logger": False,
    # Task states must be kept as long as the longest run; Celery's default is a day.
    "result_expires": 30 * 24 * 3600,
    "broker_connection_retry_on_startup": True,
    # Wait without limit for a restarting broker.
    "broker_connection_max_retries": None,
    # Detect a silently cut connection before the run counts as gone.
    "redis_socket_timeout": 15.0,
}
"""Celery's settings. `config_source` in `dagster.yaml` overrides them."""
AWAIT_BROKER_S = 3600.0
"""Seconds for which a launch waits for an unreachable broker."""
REPORT_FOR_S = 1800.0
"""Seconds for which reporting a run that did not begin is retried."""
BEAT_S = 2.0
_GONE_AFTER = "gone_after_seconds"
_FORGOTTEN_AFTER_S = 24 * 3600.0
_WORKER_PID = os.getpid()
"""In a worker: the process whose forks execute the runs."""
_ended: dict[str, threading.Event] = {}
"""Events by task, set when it ends."""
_reports: list[subprocess.Popen[bytes]] = []


def sign_key(task_id: str) -> str:
    """Return the key under which a run's process writes a new value every few seconds."""
    return f"dtef-alive-{task_id}"


def end_key(task_id: str) -> str:
    """Return the key that, once it has a value, tells a run's process to end."""
    return f"dtef-end-{task_id}"


def report_not_begun(run_id: str, reason: str) -> None:
    """Report a run whose process ended before it began as failed. Run monitoring would give it an hour to start."""
    deadline = time.monotonic() + REPORT_FOR_S
    while time.monotonic() < deadline:
        with suppress(Exception), dg.DagsterInstance.get() as instance:  # storage is unreachable; retried
            run = instance.get_run_by_id(run_id)
            if run is not None and run.status == dg.DagsterRunStatus.STARTING:
                instance.report_run_failed(run, f"The process of the run ended before the run began: {reason}")
            return
        time.sleep(1.0)


class _Sign(NamedTuple):
    """The last heartbeat, and the time since which it is unchanged, by this process's clock."""

    heartbeat: Any
    unchanged_since: float


class WatchedCeleryRunLauncher(CeleryRunLauncher):
    """Launches runs as Celery tasks, and checks whether started ones are alive."""

    def __init__(
        self,
        default_queue: str,
        broker: str | None = None,
        backend: str | None = None,
        include: list[str] | None = None,
        config_source: Mapping[str, Any] | None = None,
        gone_after_seconds: int = 90,
        inst_data: ConfigurableClassData | None = None,
    ) -> None:
        super().__init__(default_queue, broker, backend, include, {**SETTINGS, **(config_source or {})}, inst_data)
        self._gone_after_s = gone_after_seconds
        self._signs: dict[str, _Sign] = {}

    @classmethod
    def config_type(cls) -> Any:
        description = "Seconds without a sign of life after which a run counts as dead and is started again."
        gone_after = dg.Field(dg.IntSource, is_required=False, default_value=90, description=description)
        return {**cast(Mapping[str, Any], super().config_type()), _GONE_AFTER: gone_after}

    def launch_run(self, context: LaunchRunContext) -> None:
        # Dagster's launcher registers the task again for each run, and Celery warns of that.
        self.celery.tasks.pop(TASK_EXECUTE_JOB_NAME, None)
        if context.dagster_run.tags.get(TASK_TAG):
            self._instance.add_run_tags(context.dagster_run.run_id, {TASK_TAG: ""})  # the tag of the repeated run
        if self._await_broker(context.dagster_run):
            super().launch_run(context)

    def _await_broker(self, run: dg.DagsterRun) -> bool:
        """Wait for the broker, and return whether the run should still be launched.

        If launching failed, Dagster would fail the run, its retries and the whole queue.
        """
        deadline, is_reported = time.monotonic() + AWAIT_BROKER_S, False
        while True:
            try:
                with self.celery.connection_for_write() as connection:
                    connection.ensure_connection(max_retries=1)
                self.celery.backend.get(sign_key("nobody"))
                return True
            except (OperationalError, OSError, RedisError, RuntimeError) as error:
                if time.monotonic() > deadline or isinstance(error.__cause__ or error, AuthenticationError):
                    raise
                if not is_reported:
                    self._instance.report_engine_event(f"Waiting for the broker, which cannot be reached: {error}", run)
                    is_reported = True
            time.sleep(1.0)
            now = self._instance.get_run_by_id(run.run_id)
            if now is None or now.is_finished:
                return False
            if now.status == dg.DagsterRunStatus.CANCELING:
                self._instance.report_run_canceled(now)
                return False

    @property
    def supports_resume_run(self) -> bool:
        """False: a run whose worker is gone is restarted as a new run, since its steps share one process that cannot be resumed."""
        return False

    def terminate(self, run_id: str) -> bool:
        """Ask the run to end gracefully: calls in flight get time to finish, and their responses are stored."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        # This comes first: otherwise a run that ends on request would look like one whose worker died, and would be restarted.
        self._instance.report_run_canceling(run)
        if task_id := run.tags.get(TASK_TAG):
            self.celery.backend.set(end_key(task_id), "1")
            self.celery.control.revoke(task_id)  # if it still waits for a worker
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Return the run's health. Raises Celery's error if the broker is unreachable, so that run monitoring leaves the run alone."""
        if not (task_id := run.tags.get(TASK_TAG)):
            return CheckRunHealthResult(WorkerStatus.RUNNING, "its task is not recorded yet")
        before, now = self._signs.pop(run.run_id, None), time.monotonic()
        sign = self.celery.backend.get(sign_key(task_id))
        task = self.celery.AsyncResult(task_id)
        state, info = task.state, task.info
        if before is None or before.heartbeat != sign:
            self._signs = {
                run_id: entry for run_id, entry in self._signs.items() if now - entry.unchanged_since < _FORGOTTEN_AFTER_S
            }
            self._signs[run.run_id] = _Sign(sign, now)
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        if state in READY_STATES:
            return CheckRunHealthResult(
                WorkerStatus.FAILED, f"its task ended, but the run did not: {state} {info or ''}".strip()
            )
        worker = info.get("hostname") if isinstance(info, dict) else None
        where = f" on {worker}" if worker else ""
        silent = f"no sign of life of the run{where} for {now - before.unchanged_since:.0f} s"
        if now - before.unchanged_since < self._gone_after_s:
            self._signs[run.run_id] = before
            return CheckRunHealthResult(WorkerStatus.RUNNING, silent)
        return CheckRunHealthResult(WorkerStatus.NOT_FOUND, silent)

    def get_run_worker_debug_info(self, run: dg.DagsterRun, include_container_logs: bool | None = True) -> str | None:
        """Return Celery's last state. (Dagster's own implementation needs the result's worker, which is missing until the task ends.)"""
        task_id = run.tags.get(TASK_TAG)
        return f"Celery's task {task_id}: {self.celery.AsyncResult(task_id).state}" if task_id else None


@cache
def worker_app() -> Any:
    """Return a worker's Celery application, with the launcher's settings in `dagster.yaml`. Exits with a one-line reason if that fails."""
    home = Settings.read_environment().dagster_home
    celery = _celery(_launcher(home), home)
    # Imports that every run needs, done once for all forks: six seconds of CPU.
    import assets.definitions  # noqa: F401
    import resources.gateway.direct_transport  # noqa: F401

    create_execute_job_task(celery)
    return celery


def __getattr__(name: str) -> Any:
    """Return `app`, which Celery looks up in this module. Only workers have one."""
    if name == "app":
        return worker_app()
    raise AttributeError(name)


def _launcher(home: Path) -> WatchedCeleryRunLauncher:
    if not (home / "dagster.yaml").is_file():
        raise _startup_error(
            f"there is no {home / 'dagster.yaml'}; copy deploy/celery/dagster.yaml there, or correct DAGSTER_HOME"
        )
    try:
        read_storage_settings(home)
        launcher = load_run_launcher(home)
    except Exception as error:  # Dagster raises many types
        raise _startup_error(describe_start_failure(home, error)) from None
    if not isinstance(launcher, WatchedCeleryRunLauncher):
        named = f"{type(launcher).__module__}.{type(launcher).__name__}"
        raise _startup_error(
            f"{home / 'dagster.yaml'} has the run launcher {named}; a worker needs that of deploy/celery/dagster.yaml"
        )
    if not launcher.broker:  # Celery would retry its default broker on this machine forever
        raise _startup_error(f"{home / 'dagster.yaml'} names no broker, or a variable that is empty, such as DTEF_BROKER")
    return launcher


def _celery(launcher: WatchedCeleryRunLauncher, home: Path) -> Any:
    """Return Celery's application after checking the addresses. Errors may contain their passwords, so only the error's type is shown."""
    try:
        celery = launcher.celery
        for address in (launcher.broker, launcher.backend):
            urlsplit(address or "").port  # noqa: B018 - raises ValueError
        celery.connection_for_read().transport_cls  # noqa: B018 - resolves the address's transport
        celery.backend.as_uri()
    except Exception as error:  # from any of Celery's transports
        raise _startup_error(
            f"Celery does not accept the broker that {home / 'dagster.yaml'} names ({type(error).__name__}): an address is as "
            "redis://:PASSWORD@HOST:6379/0 or rediss://...?ssl_cert_reqs=required; in a password, write %40 for @ and %2F for /"
        ) from None
    return celery


def _startup_error(reason: str) -> SystemExit:
    return SystemExit(f"dtef: no worker can be started here: {reason} (docs/how-to/several-machines.md)")


@worker_init.connect(weak=False)
def _require_storage(**_: Any) -> None:
    """Stop a worker that cannot reach Dagster's storage, before it takes runs."""
    try:
        with dg.DagsterInstance.get() as instance:
            instance.get_runs_count()
    except Exception as error:
        reason = find_first_line(links(error)[0])
        raise SystemExit(f"dtef: this worker accepts no runs, because Dagster's storage cannot be reached: {reason}") from None


def _send_heartbeats(task_id: str, stop: threading.Event) -> None:
    """Send heartbeats. On a request to end, end this process's run gracefully: calls in flight get time to finish."""
    is_reported = False
    while not stop.is_set():
        with suppress(Exception):  # broker is unreachable; retried
            backend = worker_app().backend
            backend.set(sign_key(task_id), str(time.monotonic_ns()))
            if not is_reported and backend.get(end_key(task_id)):
                is_reported = True
                os.kill(os.getpid(), signal.SIGTERM)
        stop.wait(BEAT_S)


@task_prerun.connect(weak=False)
def _start_heartbeat(task_id: str, **_: Any) -> None:
    _ended[task_id] = threading.Event()
    threading.Thread(target=_send_heartbeats, args=(task_id, _ended[task_id]), daemon=True).start()


@task_postrun.connect(weak=False)
def _stop_heartbeat(task_id: str, kwargs: Mapping[str, Any], retval: Any = None, **_: Any) -> None:
    _ended.pop(task_id, threading.Event()).set()
    if retval != 0:  # Accept no further run until this failure is reported.
        report_not_begun(_run_id(kwargs), f"it ended with {retval!r}")


@task_failure.connect(weak=False)
def _report_lost_worker(kwargs: Mapping[str, Any], exception: BaseException, **_: Any) -> None:
    """Report a run whose process is gone. Celery calls this in the worker; a separate process reports, to not block the worker."""
    if os.getpid() == _WORKER_PID:
        report = "import sys; from assets.celery_runs import report_not_begun; report_not_begun(*sys.argv[1:])"
        command = [sys.executable, "-c", report, _run_id(kwargs), repr(exception)]
        _reports.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))  # noqa: S603 - our own interpreter and arguments


def _run_id(kwargs: Mapping[str, Any]) -> str:
    """Return the run id in the arguments of Dagster's task."""
    return str(unpack_value(kwargs["execute_job_args_packed"], as_type=ExecuteRunArgs).run_id)
