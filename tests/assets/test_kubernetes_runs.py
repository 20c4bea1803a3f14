"""The run launcher of a cluster: what it takes a run for, by what Kubernetes answers of its job."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.launcher import WorkerStatus
from dagster._daemon.monitoring.run_monitoring import monitor_started_run
from kubernetes.client import V1JobStatus
from kubernetes.client.rest import ApiException

from assets.kubernetes_runs import WatchedK8sRunLauncher
from tests.assets.launched import instance_with, status_of


class Jobs:
    """What Kubernetes answers of a job, in place of a cluster."""

    def __init__(self) -> None:
        self.answer: V1JobStatus | Exception = V1JobStatus(active=1)
        self.asked: list[tuple[str, str]] = []

    def read_namespaced_job_status(self, name: str, namespace: str) -> Any:
        self.asked.append((name, namespace))
        if isinstance(self.answer, Exception):
            raise self.answer
        return SimpleNamespace(status=self.answer)


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    config = {"service_account_name": "dtef-runs", "instance_config_map": "dtef-dagster", "job_namespace": "evaluations"}
    watched = {"run_monitoring": {"enabled": True}}
    folder = tmp_path_factory.mktemp("kubernetes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dagster_k8s.launcher.load_kubernetes_config", lambda **_: None)
        with instance_with(folder, "assets.kubernetes_runs", "WatchedK8sRunLauncher", config, **watched) as made:
            yield made


@pytest.fixture
def launcher(instance: dg.DagsterInstance) -> WatchedK8sRunLauncher:
    assert isinstance(instance.run_launcher, WatchedK8sRunLauncher)
    return instance.run_launcher


@pytest.fixture
def jobs(launcher: WatchedK8sRunLauncher, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    made = Jobs()
    monkeypatch.setattr(launcher._api_client, "batch_api", made)
    monkeypatch.setattr("dagster_k8s.client.time.sleep", lambda _: None)
    return made


@pytest.fixture
def run(instance: dg.DagsterInstance) -> dg.DagsterRun:
    return instance.run_storage.add_run(dg.DagsterRun(job_name="survey_nightly", status=dg.DagsterRunStatus.STARTED))


SILENT = {
    "the connection breaks": OSError("connection refused"),
    "it refuses the account": ApiException(status=403, reason="Forbidden"),
}


@pytest.mark.parametrize("case", SILENT)
def test_a_run_goes_on_where_kubernetes_does_not_answer(
    instance: dg.DagsterInstance, launcher: WatchedK8sRunLauncher, jobs: Jobs, run: dg.DagsterRun, case: str
) -> None:
    """Run monitoring marked it as failed, and it was started again beside its own job."""
    jobs.answer = SILENT[case]
    found = launcher.check_run_worker_health(run)
    assert found.status is WorkerStatus.RUNNING
    assert str(found.msg).startswith("nothing is known of its job: ")
    assert "\n" not in str(found.msg)
    assert watched(instance, run) is dg.DagsterRunStatus.STARTED


@pytest.mark.parametrize(
    "answer",
    [ApiException(status=404, reason="Not Found"), V1JobStatus(failed=1)],
    ids=["no such job", "failed"],
)
def test_a_run_whose_job_is_gone_or_has_ended_is_dead(
    instance: dg.DagsterInstance, launcher: WatchedK8sRunLauncher, jobs: Jobs, run: dg.DagsterRun, answer: Any
) -> None:
    assert launcher.check_run_worker_health(run).status is WorkerStatus.RUNNING
    assert jobs.asked == [(f"dagster-run-{run.run_id}", "evaluations")]
    jobs.answer = answer
    assert launcher.check_run_worker_health(run).status in (WorkerStatus.NOT_FOUND, WorkerStatus.FAILED)
    assert watched(instance, run) is dg.DagsterRunStatus.FAILURE


def watched(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dg.DagsterRunStatus:
    """The state of a run after run monitoring has looked at it."""
    (record,) = instance.get_run_records(dg.RunsFilter(run_ids=[run.run_id]))
    workspace: Any = None  # read where a run is resumed, which none is here
    monitor_started_run(instance, workspace, record, logging.getLogger("monitoring"))
    return status_of(instance, run)
