"""The run launcher of several machines: what it takes a run for, by its signs of life and by what Celery noted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin
from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import pack_value
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG as TASK_TAG
from redis.exceptions import AuthenticationError, RedisError

from assets import celery_runs
from assets.celery_runs import WatchedCeleryRunLauncher, end_key, sign_key
from assets.stage.dagster_internals import WorkerStatus
from tests.assets.launched import instance_with, status_of
from tests.conftest import ROOT

TASK, WORKER = "task-1", "worker@here"
SECRET = "SECR"
_REPOSITORY = RepositoryPythonOrigin(sys.executable, ModuleCodePointer("assets.definitions", "defs"))
_ORIGIN = JobPythonOrigin("survey_nightly", _REPOSITORY)


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    config = {"broker": "memory://", "backend": "cache+memory://", "gone_after_seconds": 60}
    with instance_with(tmp_path_factory.mktemp("celery"), "assets.celery_runs", "WatchedCeleryRunLauncher", config) as made:
        yield made


@pytest.fixture
def launcher(instance: dg.DagsterInstance) -> WatchedCeleryRunLauncher:
    assert isinstance(instance.run_launcher, WatchedCeleryRunLauncher)
    instance.run_launcher._signs.clear()
    return instance.run_launcher


@pytest.fixture
def revoked(launcher: WatchedCeleryRunLauncher, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What workers are told to leave undone, in place of telling them over a broker."""
    tasks: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(launcher.celery.control, "revoke", lambda task, **how: tasks.append((task, how)))
    return tasks


@pytest.fixture
def run(instance: dg.DagsterInstance, launcher: WatchedCeleryRunLauncher) -> dg.DagsterRun:
    """One that a worker has begun."""
    for key in (sign_key(TASK), end_key(TASK)):  # a backend in memory is one for all tests
        launcher.celery.backend.delete(key)
    launcher.celery.backend.forget(TASK)
    launcher.celery.backend.mark_as_started(TASK, hostname=WORKER, pid=1)
    started = dg.DagsterRun(job_name="survey_nightly", status=dg.DagsterRunStatus.STARTED, tags={TASK_TAG: TASK})
    return instance.run_storage.add_run(started)


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    moment = time.monotonic() + seconds
    monkeypatch.setattr("assets.celery_runs.time.monotonic", lambda: moment)


def give_sign(launcher: WatchedCeleryRunLauncher) -> None:
    launcher.celery.backend.set(sign_key(TASK), uuid.uuid4().hex)


def health(launcher: WatchedCeleryRunLauncher, run: dg.DagsterRun) -> Any:
    return launcher.check_run_worker_health(run).status


def test_one_that_gives_signs_of_life_is_alive_whatever_its_task_is_noted_as(
    launcher: WatchedCeleryRunLauncher, run: dg.DagsterRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that was delivered twice is a task that ends at once, while the run goes on under the first."""
    launcher.celery.backend.store_result(TASK, 0, "SUCCESS")
    for number in range(4):
        give_sign(launcher)
        later(monkeypatch, 1000.0 * number)
        assert health(launcher, run) == WorkerStatus.RUNNING


def test_one_without_a_sign_is_gone_after_a_while(
    launcher: WatchedCeleryRunLauncher, run: dg.DagsterRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster's own launcher went by the note that it was started, for good. A sign in between, or one that is forgotten, begins anew."""
    for begin in (lambda: give_sign(launcher), lambda: launcher.celery.backend.delete(sign_key(TASK))):
        begin()
        assert health(launcher, run) == WorkerStatus.RUNNING
        later(monkeypatch, 59)
        assert health(launcher, run) == WorkerStatus.RUNNING
    later(monkeypatch, 300)
    found = launcher.check_run_worker_health(run)
    assert found.status == WorkerStatus.NOT_FOUND
    assert f"no sign of life of the run on {WORKER} for " in str(found.msg)


def test_while_the_broker_is_away_silence_does_not_count(
    launcher: WatchedCeleryRunLauncher, run: dg.DagsterRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    health(launcher, run)

    def away(key: str) -> None:
        raise RedisError(key)

    with monkeypatch.context() as patch:
        patch.setattr(launcher.celery.backend, "get", away)
        with pytest.raises(RedisError):
            health(launcher, run)
    later(monkeypatch, 1000)
    assert health(launcher, run) == WorkerStatus.RUNNING


@pytest.mark.parametrize("state", ["SUCCESS", "FAILURE"])
def test_one_whose_task_has_ended_without_it_has_failed(
    launcher: WatchedCeleryRunLauncher, run: dg.DagsterRun, state: str
) -> None:
    """A process that was killed for want of memory, under a worker that lives."""
    give_sign(launcher)
    launcher.celery.backend.store_result(TASK, 1 if state == "SUCCESS" else RuntimeError("killed"), state)
    health(launcher, run)
    found = launcher.check_run_worker_health(run)
    assert found.status == WorkerStatus.FAILED
    assert f"its task ended, but the run did not: {state}" in str(found.msg)


def test_one_whose_task_was_not_noted_yet_is_left_alone(
    instance: dg.DagsterInstance, launcher: WatchedCeleryRunLauncher
) -> None:
    run = instance.run_storage.add_run(dg.DagsterRun(job_name="survey_nightly", status=dg.DagsterRunStatus.STARTED))
    assert health(launcher, run) == WorkerStatus.RUNNING
    assert launcher.get_run_worker_debug_info(run) is None
    assert launcher.terminate(run.run_id)


def test_one_that_is_asked_to_end_is_not_taken_for_dead_and_started_again(
    instance: dg.DagsterInstance,
    launcher: WatchedCeleryRunLauncher,
    revoked: list[tuple[str, dict[str, Any]]],
    run: dg.DagsterRun,
) -> None:
    """It counted as failed, because its task had ended, and run retries started it again."""
    assert launcher.terminate(run.run_id)
    assert launcher.celery.backend.get(end_key(TASK))
    assert revoked == [(TASK, {})]
    assert status_of(instance, run) == dg.DagsterRunStatus.CANCELING
    instance.report_run_canceled(run)
    assert not launcher.terminate(run.run_id)
    assert not launcher.terminate("of nobody")


class Restarting:
    """A backend that cannot be reached for the first so many times."""

    def __init__(self, away: int, error: Exception = RedisError("connection refused")) -> None:  # noqa: B008
        self.left, self.error = away, error

    def get(self, key: str) -> None:
        self.left -= 1
        if self.left >= 0:
            raise self.error


def test_a_launch_waits_for_a_broker_that_is_away_and_says_so_but_not_with_a_wrong_password(
    instance: dg.DagsterInstance, launcher: WatchedCeleryRunLauncher, run: dg.DagsterRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run had failed, and so had its retries and what else was in the queue."""
    monkeypatch.setattr("assets.celery_runs.time.sleep", lambda seconds: None)
    monkeypatch.setattr(launcher.celery._local, "backend", Restarting(away=3))
    assert launcher._await_broker(run)
    said = [entry.message for entry in instance.all_logs(run.run_id) if "Waiting for the broker" in entry.message]
    assert len(said) == 1
    wrong = AuthenticationError("invalid username-password pair")
    monkeypatch.setattr(launcher.celery._local, "backend", Restarting(away=100, error=wrong))
    with pytest.raises(AuthenticationError):  # at once
        launcher._await_broker(run)
    monkeypatch.setattr("assets.celery_runs.AWAIT_BROKER_S", -1.0)
    monkeypatch.setattr(launcher.celery._local, "backend", Restarting(away=3))
    with pytest.raises(RedisError):
        launcher._await_broker(run)


def test_a_run_that_is_terminated_while_it_waits_for_the_broker_is_not_launched(
    instance: dg.DagsterInstance, launcher: WatchedCeleryRunLauncher, run: dg.DagsterRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets.celery_runs.time.sleep", lambda seconds: None)
    monkeypatch.setattr(launcher.celery._local, "backend", Restarting(away=100))
    instance.report_run_canceling(run)
    assert not launcher._await_broker(run)
    assert status_of(instance, run) == dg.DagsterRunStatus.CANCELED
    assert not launcher._await_broker(run)


@pytest.fixture
def worker(instance: dg.DagsterInstance, launcher: WatchedCeleryRunLauncher, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, as the process of a worker has it."""
    monkeypatch.setenv("DAGSTER_HOME", instance.root_directory)
    monkeypatch.setattr(celery_runs, "worker_app", lambda: launcher.celery)
    return celery_runs


@pytest.mark.parametrize(
    ("status", "then"),
    [
        (dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.FAILURE),
        (dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTED),
    ],
)
def test_a_run_whose_process_ended_before_it_began_has_failed(
    instance: dg.DagsterInstance, worker: Any, status: dg.DagsterRunStatus, then: dg.DagsterRunStatus
) -> None:
    """It waited for six hours, and held a place. Of one that had begun run monitoring tells."""
    run = instance.run_storage.add_run(dg.DagsterRun(job_name="survey_nightly", status=status))
    packed = pack_value(ExecuteRunArgs(_ORIGIN, run.run_id, None))
    worker._stop_heartbeat(task_id="task-2", kwargs={"execute_job_args_packed": packed}, retval=RuntimeError("no password"))
    assert status_of(instance, run) == then
    failures = [entry.message for entry in instance.all_logs(run.run_id) if "no password" in entry.message]
    assert len(failures) == (status == dg.DagsterRunStatus.STARTING)


def test_a_worker_reports_a_run_whose_process_was_killed_before_it_began(instance: dg.DagsterInstance, worker: Any) -> None:
    """In a process of its own; a fork of the worker is told by nobody but itself."""
    run = instance.run_storage.add_run(dg.DagsterRun(job_name="survey_nightly", status=dg.DagsterRunStatus.STARTING))
    packed = pack_value(ExecuteRunArgs(_ORIGIN, run.run_id, None))
    worker._report_lost_worker(kwargs={"execute_job_args_packed": packed}, exception=RuntimeError("signal 9"))
    until(lambda: status_of(instance, run) == dg.DagsterRunStatus.FAILURE)
    assert [report.wait(60) for report in worker._reports] == [0]
    assert any("signal 9" in entry.message for entry in instance.all_logs(run.run_id))


def test_the_process_of_a_run_gives_signs_until_it_is_over_and_ends_when_it_is_asked_to(
    worker: Any, launcher: WatchedCeleryRunLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, backend = threading.Event(), launcher.celery.backend
    killed: list[tuple[int, int]] = []

    def kill(pid: int, number: int) -> None:
        killed.append((pid, number))
        told.set()

    monkeypatch.setattr("assets.celery_runs.os.kill", kill)
    monkeypatch.setattr(worker, "BEAT_S", 0.01)
    worker._start_heartbeat(task_id="task-3")
    until(lambda: backend.get(sign_key("task-3")))
    first = backend.get(sign_key("task-3"))
    until(lambda: backend.get(sign_key("task-3")) != first)
    assert not killed
    backend.set(end_key("task-3"), "1")
    assert told.wait(60)
    later_sign = backend.get(sign_key("task-3"))
    until(lambda: backend.get(sign_key("task-3")) != later_sign)
    worker._stop_heartbeat(task_id="task-3", kwargs={}, retval=0)
    assert killed == [(os.getpid(), signal.SIGTERM)]


def until(reached: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_celery_noted_last_is_reported_of_a_run_that_did_not_start(
    launcher: WatchedCeleryRunLauncher, run: dg.DagsterRun
) -> None:
    assert launcher.get_run_worker_debug_info(run) == f"Celery's task {TASK}: STARTED"


@pytest.mark.parametrize(
    ("settings", "broker", "named"),
    [
        ("dagster.yaml", None, "assets.run_launcher.WatchedRunLauncher"),
        ("celery/dagster.yaml", None, "DTEF_BROKER, which is not set"),
        ("celery/dagster.yaml", "", "names no broker"),
        ("celery/dagster.yaml", f"rediss://:{SECRET}@127.0.0.1:1/0", "ssl_cert_reqs"),
        ("celery/dagster.yaml", f"redis://:{SECRET}/ETPW@127.0.0.1:1/0", "(ValueError)"),
        ("celery/dagster.yaml", f"foo://:{SECRET}@h/0", "(KeyError)"),
        (None, None, "copy deploy/celery/dagster.yaml there"),
    ],
)
def test_a_worker_that_cannot_start_says_why_in_one_line_without_a_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str | None, broker: str | None, named: str
) -> None:
    """It ended with a trace of fifty lines, or with a piece of the password every few seconds."""
    for name, value in {"DAGSTER_HOME": str(tmp_path), "DAGSTER_POSTGRES_URL": "postgresql://u:p@127.0.0.1:1/d"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DTEF_BROKER", raising=False)
    if broker is not None:
        monkeypatch.setenv("DTEF_BROKER", broker)
    if settings:
        shutil.copyfile(ROOT / "deploy" / settings, tmp_path / "dagster.yaml")
    with pytest.raises(SystemExit) as ended:
        celery_runs.worker_app()
    said = str(ended.value)
    assert named in said
    assert "\n" not in said
    assert SECRET not in said


def test_celery_finds_the_application_in_the_module(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "celery", "--app", "assets.celery_runs", "worker"]
    environment = {"DAGSTER_HOME": str(tmp_path), "PATH": "", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
