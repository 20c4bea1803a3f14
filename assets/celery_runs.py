"""The run launcher of several machines (`deploy/celery/dagster.yaml`): each run is a task of Celery, which a worker on any machine takes.

Dagster's own launcher goes by what Celery's result backend noted last. A worker whose machine is gone notes nothing more, so its run would
stay `STARTED` for good. This one asks the workers themselves.
"""

import time
from collections.abc import Mapping
from typing import Any, cast

import dagster as dg
from celery.states import READY_STATES
from dagster_celery.config import TASK_EXECUTE_JOB_NAME
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG as TASK_TAG

from assets.stage.dagster_internals import CheckRunHealthResult, ConfigurableClassData, LaunchRunContext, WorkerStatus

SETTINGS: Mapping[str, Any] = {
    # A process per run, as with Dagster's own launcher: what a run leaves in memory ends with it.
    "worker_max_tasks_per_child": 1,
    "worker_concurrency": 1,
    # A run stays in the queue until a worker has a place for it, instead of waiting behind the run of one that is busy.
    "worker_prefetch_multiplier": 1,
    "worker_disable_prefetch": True,
    # Dagster takes what a run prints from the file descriptors, which these would hide, and has loggers of its own.
    "worker_redirect_stdouts": False,
    "worker_hijack_root_logger": False,
    # The note that a task was started is kept as long as any run may take: Celery's own rule is a day.
    "result_expires": 30 * 24 * 3600,
    "broker_connection_retry_on_startup": True,
    # A broker that restarts is waited for, however long it takes.
    "broker_connection_max_retries": None,
}
"""Of Celery. `config_source` in `dagster.yaml` goes before them."""
ANSWER_S = 2.0
"""How long workers are given to answer."""
_GONE_AFTER = "gone_after_seconds"


class WatchedCeleryRunLauncher(CeleryRunLauncher):
    """Launches runs as tasks of Celery, and knows of those that were started whether a worker is at work on them."""

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
        self._silent_since: dict[str, float] = {}

    @classmethod
    def config_type(cls) -> Any:
        said = "Seconds of silence after which the worker of a run is gone, and its run is started again."
        gone_after = dg.Field(dg.IntSource, is_required=False, default_value=90, description=said)
        return {**cast(Mapping[str, Any], super().config_type()), _GONE_AFTER: gone_after}

    def launch_run(self, context: LaunchRunContext) -> None:
        # Dagster's launcher makes the task anew for each run, of which Celery warns.
        self.celery.tasks.pop(TASK_EXECUTE_JOB_NAME, None)
        super().launch_run(context)

    @property
    def supports_resume_run(self) -> bool:
        """A run whose worker is gone is started again as a new run: its steps are in one process, which cannot be joined in the middle."""
        return False

    def terminate(self, run_id: str) -> bool:
        """Have the run end in order: calls in flight are given time, and what they bring is kept."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished or TASK_TAG not in run.tags:
            return False
        # Otherwise a run that ends because it was told to would count as one whose worker died, and be started again.
        self._instance.report_run_canceling(run)
        self.celery.control.revoke(run.tags[TASK_TAG], terminate=True, signal="SIGTERM")
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Raises an error of Celery's where the broker is away: nothing is known then, and run monitoring leaves the run alone."""
        if (task_id := run.tags.get(TASK_TAG)) is None:
            return CheckRunHealthResult(WorkerStatus.RUNNING, "its task has not been noted yet")
        noted = self.celery.AsyncResult(task_id)
        state, about = noted.state, noted.info
        if state in READY_STATES:
            return CheckRunHealthResult(WorkerStatus.FAILED, f"its task has ended without it: {state} {about or ''}".strip())
        worker = about.get("hostname") if isinstance(about, dict) else None
        inspection = self.celery.control.inspect(timeout=ANSWER_S, destination=[worker] if worker else None)
        answers = inspection.query_task(task_id) or {}
        if any(task_id in tasks for tasks in answers.values()):
            self._silent_since.pop(run.run_id, None)
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        if worker in answers:
            return CheckRunHealthResult(
                WorkerStatus.NOT_FOUND, f"the worker {worker} was started again, and knows nothing of it"
            )
        silent_s = time.monotonic() - self._silent_since.setdefault(run.run_id, time.monotonic())
        who = f"the worker {worker}" if worker else "any worker that is at work on it"
        if silent_s < self._gone_after_s:
            return CheckRunHealthResult(WorkerStatus.RUNNING, f"no sign of {who} for {silent_s:.0f} s")
        return CheckRunHealthResult(WorkerStatus.NOT_FOUND, f"no sign of {who} for {silent_s:.0f} s")

    def get_run_worker_debug_info(self, run: dg.DagsterRun, include_container_logs: bool | None = True) -> str | None:
        """What Celery noted last. (Dagster's own asks a result for its worker, which has none until the task has ended.)"""
        task_id = run.tags.get(TASK_TAG)
        return None if task_id is None else f"Celery's task {task_id}: {self.celery.AsyncResult(task_id).state}"
