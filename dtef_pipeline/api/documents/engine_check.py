"""Asks engines what they make of a manifest, each time in a process of its own that is ended when it takes too long."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from dtef_pipeline.api.plans.plan import BodyFault
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.games.manifest import ScenarioManifest

ENGINE_PATIENCE_S = 20.0
_ASKED_AT_ONCE = 2
_WAIT_AT_ONCE = 2
"""Requests that wait for a place; each keeps a thread of the server, as those that are asked do."""
_WAITED_FOR_A_PLACE_S = 5.0
_LONGEST_TOLD = 1000
"""Characters of one message."""
_ENGINE_WORKER = (sys.executable, "-P", "-m", "dtef_pipeline.api.documents.engine_worker")
_places = threading.BoundedSemaphore(_ASKED_AT_ONCE)
_threads = threading.BoundedSemaphore(_ASKED_AT_ONCE + _WAIT_AT_ONCE)
_log = logging.getLogger(__name__)


def check_engine(
    manifest: ScenarioManifest, patience_s: float = ENGINE_PATIENCE_S, worker: Sequence[str] = _ENGINE_WORKER
) -> list[BodyFault]:
    """What the engine finds wrong with a manifest, each with `path` and `message`. Raises Problem 503 when too many are asked at once.

    `worker`: the command, which reads the manifest and writes the faults, as `engine_worker`.
    """
    with _reserve_place():
        return _run_check(manifest, patience_s, worker)


@contextmanager
def _reserve_place() -> Iterator[None]:
    """Raises Problem 503 at once where enough wait already, else after a while."""
    busy = Problem(503, "other scenarios are being checked; try again", {"Retry-After": "5"})
    if not _threads.acquire(blocking=False):
        raise busy
    try:
        if not _places.acquire(timeout=_WAITED_FOR_A_PLACE_S):
            raise busy
        try:
            yield
        finally:
            _places.release()
    finally:
        _threads.release()


def _run_check(manifest: ScenarioManifest, patience_s: float, worker: Sequence[str]) -> list[BodyFault]:
    try:
        faults = json.loads(_run_worker(json.dumps(manifest.model_dump()).encode(), patience_s, worker))
        return [BodyFault(path, message[:_LONGEST_TOLD]) for path, message in faults]
    except subprocess.TimeoutExpired:
        reason = f"its engine {manifest.adapter_name} took longer than {patience_s:g} s to start and play one seed"
    except (subprocess.CalledProcessError, ValueError, TypeError) as error:
        _log.warning("the engine %s failed in its own process: %s", manifest.adapter_name, error)
        reason = f"its engine {manifest.adapter_name} failed while it started or played one seed"
    return [BodyFault("adapter", f"{reason}; allowed: a manifest that its engine can play")]


def _run_worker(data: bytes, patience_s: float, worker: Sequence[str]) -> bytes:
    """What the process writes. It leads a group, which is ended with it."""
    with subprocess.Popen(  # noqa: S603 - a command of ours
        worker, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            worker_output, _ = process.communicate(data, timeout=patience_s)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, worker)
    return worker_output
