"""The Celery application of a worker (`celery --app assets.celery_worker worker`), with the settings of the run launcher in `dagster.yaml`.

What the process of a run does beside the run stands here too: it gives signs of life, looks whether it is to end, and says so where it could
not begin.
"""

import os
import signal
import threading
import time
from contextlib import suppress
from typing import Any

import dagster as dg
from celery.signals import task_failure, task_postrun, task_prerun
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG
from dagster_celery.tasks import create_execute_job_task

import assets.definitions  # noqa: F401 - what every run needs, and a fork of this process has: five seconds of a core
import resources.gateway.direct_client  # noqa: F401 - a second more
from assets.celery_runs import WatchedCeleryRunLauncher, end_key, sign_key
from assets.stage.dagster_internals import named_run_launcher
from dtef_pipeline.errors import ConfigError
from resources.settings import Settings

__all__ = ["app"]

BEAT_S = 2.0
REPORT_FOR_S = 1800.0
_WORKER_PID = os.getpid()
"""Runs are in forks of this process."""
_ended: dict[str, threading.Event] = {}
"""By task, set when it is over."""


def _launcher() -> WatchedCeleryRunLauncher:
    home = Settings.from_environment().dagster_home
    launcher = named_run_launcher(home)
    if not isinstance(launcher, WatchedCeleryRunLauncher):
        named = f"{type(launcher).__module__}.{type(launcher).__name__}"
        raise ConfigError(
            f"{home / 'dagster.yaml'} has the run launcher {named}; a worker needs that of deploy/celery/dagster.yaml"
        )
    return launcher


def _require_storage() -> None:
    """A worker that cannot write down what becomes of its runs takes none."""
    with dg.DagsterInstance.get() as instance:
        instance.get_runs_count()


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
def _over(task_id: str, **_: Any) -> None:
    _ended.pop(task_id, threading.Event()).set()


@task_failure.connect(weak=False)
def _failed(task_id: str, exception: BaseException, **_: Any) -> None:
    """Sent in the process of the run, or by the worker, where that process is gone."""
    reporting = threading.Thread(target=_report, args=(task_id, exception))
    reporting.start()
    if os.getpid() != _WORKER_PID:
        reporting.join()  # The process would end with it; and until the failure is known, no further run fails here.


def _report(task_id: str, exception: BaseException) -> None:
    """A run that was never begun has failed. Nobody else would notice: run monitoring gives it hours to start."""
    deadline = time.monotonic() + REPORT_FOR_S
    while time.monotonic() < deadline:
        with suppress(Exception), dg.DagsterInstance.get() as instance:  # the storage is away, and this is tried again
            for run in instance.get_runs(dg.RunsFilter(tags={DAGSTER_CELERY_TASK_ID_TAG: task_id}), limit=1):
                if run.status == dg.DagsterRunStatus.STARTING:
                    instance.report_run_failed(run, f"The run's process ended before the run began: {exception!r}")
                return
        time.sleep(BEAT_S)


app = _launcher().celery
create_execute_job_task(app)
_require_storage()
