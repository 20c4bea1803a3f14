"""The run launcher of `dagster.yaml`: Dagster's own, plus a check whether a run's worker is alive.

The code server notices a killed worker. If the code server is gone too, as after a restart of the machine, Dagster's launcher does not: the
run stays `STARTED` forever, and keeps its slot in the queue. Run monitoring uses this launcher's check.
"""

import json
import time

import dagster as dg

from assets.stage.dagster_internals import (
    GRPC_INFO_TAG,
    CheckRunHealthResult,
    ConfigurableClassData,
    WorkerStatus,
    is_server_up,
)
from resources.responses.processes import is_running_since

_LOCAL = ("localhost", "127.0.0.1", "::1")
SETTLED_S = 90.0
"""Seconds for which a code server must be back before a run is restarted on it. The daemon reloads code servers once a minute, and abandons a
restart on one that is absent."""


class WatchedRunLauncher(dg.DefaultRunLauncher):
    """Launches runs as processes of the code server, and checks whether those on this machine are alive."""

    def __init__(self, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(inst_data)
        self._back_since: dict[str, float] = {}

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Return the run's health: RUNNING also if unknown, with a remote code server or before the worker has logged its process id."""
        server = json.loads(run.tags.get(GRPC_INFO_TAG, "{}"))
        # A socket has the host `localhost`.
        worker = self._read_worker_process(run) if server.get("host") in _LOCAL else None
        if worker is None or is_running_since(*worker):
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        if server.get("port") and not self._is_settled(run.run_id, server["host"], server["port"]):
            return CheckRunHealthResult(WorkerStatus.RUNNING, "dead; its code server does not answer, or did not a moment ago")
        return CheckRunHealthResult(WorkerStatus.NOT_FOUND, f"the process {worker[0]} no longer runs on this machine")

    def _is_settled(self, run_id: str, host: str, port: int) -> bool:
        """Return whether the code server answers, and did SETTLED_S ago. A socket's name is new at every start, and never reused."""
        if not is_server_up(host, port):
            self._back_since.pop(run_id, None)
            return False
        return time.monotonic() - self._back_since.setdefault(run_id, time.monotonic()) >= SETTLED_S

    def _read_worker_process(self, run: dg.DagsterRun) -> tuple[int, float] | None:
        """Return the process id that the worker logged last, and when, in seconds since 1970."""
        entries = self._instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
        for entry in reversed(entries):
            data = entry.get_dagster_event().engine_event_data
            if "pid" in data.metadata:
                return int(str(data.metadata["pid"].value)), entry.timestamp
        return None
