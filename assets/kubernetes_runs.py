"""The run launcher of a cluster (`deploy/kubernetes/settings.yaml`): each run is a job of Kubernetes.

Dagster's own launcher calls a job's state unknown whenever the server of Kubernetes gives no answer, and run monitoring takes what is unknown
for dead: one moment without that server would fail all runs, and start them again beside jobs that are still at work.
"""

import re
from typing import cast

import dagster as dg
from dagster_k8s import K8sRunLauncher

from assets.stage.dagster_internals import CheckRunHealthResult, WorkerStatus

_NO_JOB = re.compile(r"Job \S+ could not be found")
"""What Dagster's launcher says, and nothing else, where Kubernetes answered that there is no such job."""


class WatchedK8sRunLauncher(K8sRunLauncher):
    """Launches runs as jobs of Kubernetes, and takes a run for dead only where Kubernetes says so."""

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """RUNNING also where Kubernetes does not answer or refuses to: the next look of run monitoring asks again."""
        result = cast(CheckRunHealthResult, super().check_run_worker_health(run))
        if result.status is not WorkerStatus.UNKNOWN:
            return result
        message = (result.msg or "").strip()
        if _NO_JOB.fullmatch(message):
            return CheckRunHealthResult(WorkerStatus.NOT_FOUND, message)
        why = message.partition("\n")[0]
        return CheckRunHealthResult(WorkerStatus.RUNNING, f"nothing is known of its job: {why}")
