"""The Celery application of a worker (`celery --app assets.celery_worker worker`), with the settings of the run launcher in `dagster.yaml`.

What the process of a run does beside the run stands here too: it gives signs of life, looks whether it is to end, and says so where it could
not begin.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import dagster as dg
from celery.signals import task_failure, task_postrun, task_prerun, worker_init
from dagster_celery.tasks import create_execute_job_task

import assets.definitions  # noqa: F401 - what every run needs, and a fork of this process has: five seconds of a core
import resources.gateway.direct_client  # noqa: F401 - likewise: a second of a core
from assets.celery_runs import WatchedCeleryRunLauncher, end_key, report_not_begun, sign_key
from assets.stage.dagster_internals import ExecuteRunArgs, named_run_launcher, storage_settings, unpack_value
from dtef_pipeline.errors import ConfigError
from resources.broker import VARIABLE, fault, launcher_of, without_password
from resources.failures import does_not_start, first_line, links
from resources.settings import Settings

__all__ = ["app"]

BEAT_S = 2.0
_WORKER_PID = os.getpid()
"""Runs are in forks of this process."""
_ended: dict[str, threading.Event] = {}
"""By task, set when it is over."""
_reports: list[subprocess.Popen[bytes]] = []


def _launcher(home: Path) -> WatchedCeleryRunLauncher:
    """That of `dagster.yaml`. Raises ConfigError where it names another one, or no broker."""
    if not (home / "dagster.yaml").is_file():
        raise ConfigError(f"there is no {home / 'dagster.yaml'}; copy deploy/celery/dagster.yaml there, or mend DAGSTER_HOME")
    try:
        storage_settings(home)
        launcher = named_run_launcher(home)
    except Exception as error:  # Dagster has many
        raise ConfigError(does_not_start(home, error)) from error
    if not isinstance(launcher, WatchedCeleryRunLauncher):
        named = f"{type(launcher).__module__}.{type(launcher).__name__}"
        raise ConfigError(
            f"{home / 'dagster.yaml'} has the run launcher {named}; a worker needs that of deploy/celery/dagster.yaml"
        )
    if not launcher.broker:  # Celery would look for one of its own kind on this machine, for ever
        raise ConfigError(f"{home / 'dagster.yaml'} names no broker, or a variable that is empty, such as DTEF_BROKER")
    return launcher


def _celery(launcher: WatchedCeleryRunLauncher, source: str) -> Any:
    """Celery's application. Raises ConfigError for an address that Celery does not take: it would end in a trace, with the password."""
    broker = launcher.broker or ""
    if wrong := fault(broker, source):
        raise ConfigError(f"{wrong.found}; {wrong.remedy}")
    try:
        celery = launcher.celery
        celery.connection_for_read().transport_cls  # noqa: B018 - looks for what the address names
        celery.backend.as_uri()
    except Exception as error:  # of any of Celery's transports
        said = without_password(without_password(f"{type(error).__name__}: {error}", broker), launcher.backend or broker)
        raise ConfigError(f"Celery does not take the address in {source}, or that of its results: {said}") from error
    return celery


def _application() -> Any:
    """Celery's, with the settings of the launcher. One line says why there is none."""
    try:
        home = Settings.from_environment().dagster_home
        launcher = _launcher(home)
        named = launcher_of(home)
        variable = named.variable if named else VARIABLE
        return _celery(launcher, variable or f"broker in {home / 'dagster.yaml'}")
    except ConfigError as error:
        raise SystemExit(f"dtef: no worker can be started here: {error} (docs/several-machines.md)") from None


@worker_init.connect(weak=False)
def _require_storage(**_: Any) -> None:
    """A worker that cannot write down what becomes of its runs takes none."""
    try:
        with dg.DagsterInstance.get() as instance:
            instance.get_runs_count()
    except Exception as error:
        said = first_line(links(error)[0])
        raise SystemExit(f"dtef: this worker takes no run, as Dagster's storage cannot be reached: {said}") from None


def _beat(task_id: str, ended: threading.Event) -> None:
    """Give signs of life, and end the run of this process in order when it was told to: calls in flight are given time."""
    told = False
    while not ended.is_set():
        with suppress(Exception):  # the broker is away, and this is tried again
            app.backend.set(sign_key(task_id), str(time.monotonic_ns()))
            if not told and app.backend.get(end_key(task_id)):
                told = True
                os.kill(os.getpid(), signal.SIGTERM)
        ended.wait(BEAT_S)


@task_prerun.connect(weak=False)
def _begun(task_id: str, **_: Any) -> None:
    _ended[task_id] = threading.Event()
    threading.Thread(target=_beat, args=(task_id, _ended[task_id]), daemon=True).start()


@task_postrun.connect(weak=False)
def _over(task_id: str, kwargs: Mapping[str, Any], retval: Any = None, **_: Any) -> None:
    _ended.pop(task_id, threading.Event()).set()
    if retval != 0:  # Until its failure is known, no further run fails here.
        report_not_begun(_run_id(kwargs), f"it ended with {retval!r}")


@task_failure.connect(weak=False)
def _lost(kwargs: Mapping[str, Any], exception: BaseException, **_: Any) -> None:
    """The worker itself is told of a run whose process is gone. It reports in a process of its own, which holds nothing up."""
    if os.getpid() == _WORKER_PID:
        report = "import sys; from assets.celery_runs import report_not_begun; report_not_begun(*sys.argv[1:])"
        command = [sys.executable, "-c", report, _run_id(kwargs), repr(exception)]
        _reports.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))  # noqa: S603 - our own interpreter and arguments


def _run_id(kwargs: Mapping[str, Any]) -> str:
    """Of the arguments of Dagster's task."""
    return str(unpack_value(kwargs["execute_job_args_packed"], as_type=ExecuteRunArgs).run_id)


app = _application()
create_execute_job_task(app)
