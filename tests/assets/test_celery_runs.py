"""The run launcher of several machines: what it takes a worker for, by what Celery noted and what the workers answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from assets.celery_runs import TASK_TAG, WatchedCeleryRunLauncher
from assets.stage.dagster_internals import WorkerStatus

TASK, WORKER = "task-1", "worker@here"


class Workers:
    """What workers answer, in place of asking them over a broker."""

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, Any]] | None = {WORKER: {TASK: ["active", {}]}}
        self.asked: list[list[str] | None] = []
        self.revoked: list[tuple[str, dict[str, Any]]] = []

    def inspect(self, *, timeout: float, destination: list[str] | None) -> Workers:
        self.asked.append(destination)
        return self

    def query_task(self, task: str) -> dict[str, dict[str, Any]] | None:
        assert task == TASK
        return self.answers

    def revoke(self, task: str, **how: Any) -> None:
        self.revoked.append((task, how))


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    config = {"broker": "memory://", "backend": "cache+memory://", "gone_after_seconds": 60}
    launcher = {"module": "assets.celery_runs", "class": "WatchedCeleryRunLauncher", "config": config}
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump({"telemetry": {"enabled": False}, "run_launcher": launcher}))
    with dg.DagsterInstance.from_config(str(tmp_path)) as made:
        yield made


@pytest.fixture
def launcher(instance: dg.DagsterInstance) -> WatchedCeleryRunLauncher:
    assert isinstance(instance.run_launcher, WatchedCeleryRunLauncher)
    return instance.run_launcher


@pytest.fixture
def workers(launcher: WatchedCeleryRunLauncher, monkeypatch: pytest.MonkeyPatch) -> Workers:
    made = Workers()
    monkeypatch.setattr(launcher.celery.control, "inspect", made.inspect)
    monkeypatch.setattr(launcher.celery.control, "revoke", made.revoke)
    return made


@pytest.fixture
def run(instance: dg.DagsterInstance, launcher: WatchedCeleryRunLauncher) -> dg.DagsterRun:
    """One that a worker has begun."""
    launcher.celery.backend.forget(TASK)  # a backend in memory is one for all tests
    launcher.celery.backend.mark_as_started(TASK, hostname=WORKER, pid=1)
    started = dg.DagsterRun(job_name="nightly_drift", status=dg.DagsterRunStatus.STARTED, tags={TASK_TAG: TASK})
    return instance.run_storage.add_run(started)


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    moment = time.monotonic() + seconds
    monkeypatch.setattr("assets.celery_runs.time.monotonic", lambda: moment)


def test_one_that_its_worker_is_at_work_on_is_alive(
    launcher: WatchedCeleryRunLauncher, workers: Workers, run: dg.DagsterRun
) -> None:
    assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
    assert workers.asked == [[WORKER]]


def test_one_of_a_worker_that_is_silent_is_gone_after_a_while(
    launcher: WatchedCeleryRunLauncher, workers: Workers, run: dg.DagsterRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster's own launcher went by the note that it was started, for good."""
    workers.answers = None
    assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
    later(monkeypatch, 59)
    assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
    later(monkeypatch, 120)
    found = launcher.check_run_worker_health(run)
    assert found.status == WorkerStatus.NOT_FOUND
    assert f"no sign of the worker {WORKER} for 1" in str(found.msg)


def test_silence_that_was_broken_does_not_count(
    launcher: WatchedCeleryRunLauncher, workers: Workers, run: dg.DagsterRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, workers.answers = workers.answers, None
    launcher.check_run_worker_health(run)
    later(monkeypatch, 100)
    workers.answers = known
    assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
    workers.answers = None
    assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING


def test_one_of_a_worker_that_was_started_again_is_gone_at_once(
    launcher: WatchedCeleryRunLauncher, workers: Workers, run: dg.DagsterRun
) -> None:
    workers.answers = {WORKER: {}}
    found = launcher.check_run_worker_health(run)
    assert found.status == WorkerStatus.NOT_FOUND
    assert "was started again" in str(found.msg)


def test_where_the_broker_forgot_the_note_all_workers_are_asked(
    launcher: WatchedCeleryRunLauncher, workers: Workers, run: dg.DagsterRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher.celery.backend.forget(TASK)
    assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
    assert workers.asked == [None]
    workers.answers = {"another@there": {}}
    assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
    later(monkeypatch, 100)
    assert launcher.check_run_worker_health(run).status == WorkerStatus.NOT_FOUND


@pytest.mark.parametrize("state", ["SUCCESS", "FAILURE", "REVOKED"])
def test_one_whose_task_has_ended_without_it_has_failed(
    launcher: WatchedCeleryRunLauncher, workers: Workers, run: dg.DagsterRun, state: str
) -> None:
    """A process that was killed for want of memory, under a worker that lives."""
    launcher.celery.backend.store_result(TASK, 1 if state == "SUCCESS" else RuntimeError("killed"), state)
    found = launcher.check_run_worker_health(run)
    assert found.status == WorkerStatus.FAILED
    assert f"its task has ended without it: {state}" in str(found.msg)
    assert workers.asked == []


def test_one_whose_task_was_not_noted_yet_is_left_alone(
    instance: dg.DagsterInstance, launcher: WatchedCeleryRunLauncher, workers: Workers
) -> None:
    run = instance.run_storage.add_run(dg.DagsterRun(job_name="nightly_drift", status=dg.DagsterRunStatus.STARTED))
    assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
    assert not launcher.terminate(run.run_id)
    assert launcher.get_run_worker_debug_info(run) is None


def test_one_that_is_told_to_end_is_not_taken_for_dead_and_started_again(
    instance: dg.DagsterInstance, launcher: WatchedCeleryRunLauncher, workers: Workers, run: dg.DagsterRun
) -> None:
    """It counted as failed, because its task had ended, and run retries started it again."""
    assert launcher.terminate(run.run_id)
    assert workers.revoked == [(TASK, {"terminate": True, "signal": "SIGTERM"})]
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    assert found.status == dg.DagsterRunStatus.CANCELING
    instance.report_run_canceled(found)
    assert not launcher.terminate(run.run_id)
    assert not launcher.terminate("of nobody")


def test_what_celery_noted_last_is_told_of_a_run_that_did_not_start(
    launcher: WatchedCeleryRunLauncher, run: dg.DagsterRun
) -> None:
    assert launcher.get_run_worker_debug_info(run) == f"Celery's task {TASK}: STARTED"
