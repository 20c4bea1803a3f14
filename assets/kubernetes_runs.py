"""The run launcher of a cluster (`deploy/kubernetes/settings.yaml`): each run is a Kubernetes job.

Dagster's own launcher reports an unknown state if the Kubernetes server does not answer, and run monitoring treats that as dead: a short
outage of the server would fail all runs, and restart them while their jobs are still running.
"""

import re
from typing import cast

import dagster as dg
from dagster_k8s import K8sRunLauncher

from assets.stage.dagster_internals import CheckRunHealthResult, WorkerStatus

_NO_JOB = re.compile(r"Job \S+ could not be found")
"""The only message of Dagster's launcher if Kubernetes answered that there is no such job."""


class WatchedK8sRunLauncher(K8sRunLauncher):
    """Launches runs as Kubernetes jobs, and considers a run dead only if Kubernetes says so."""

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Return the run's health: RUNNING also if Kubernetes does not answer or refuses to, so that run monitoring checks again."""
        result = cast(CheckRunHealthResult, super().check_run_worker_health(run))
        if result.status is not WorkerStatus.UNKNOWN:
            return result
        message = (result.msg or "").strip()
        if _NO_JOB.fullmatch(message):
            return CheckRunHealthResult(WorkerStatus.NOT_FOUND, message)
        reason = message.partition("\n")[0]
        return CheckRunHealthResult(WorkerStatus.RUNNING, f"nothing is known of its job: {reason}")
