"""Checks manifests with their engines, each in its own process with a time limit."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

from dtef_pipeline.api.plans.plan import BodyFault
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.games.manifest import ScenarioManifest

ENGINE_PATIENCE_S = 20.0
_MAX_CONCURRENT = 2
_MAX_WAIT_S = 2.0
"""How long a request waits for others, which occupies a thread of the server."""
_LONGEST_MESSAGE = 1000
"""Largest number of characters of one message."""
_ENGINE_WORKER = (sys.executable, "-P", "-m", "dtef_pipeline.api.documents.engine_worker")
_places = threading.BoundedSemaphore(_MAX_CONCURRENT)
_log = logging.getLogger(__name__)


def check_engine(
    manifest: ScenarioManifest, patience_s: float = ENGINE_PATIENCE_S, worker: Sequence[str] = _ENGINE_WORKER
) -> list[BodyFault]:
    """Return the errors that the engine finds in a manifest, each with `path` and `message`. Raises Problem 503 for too many checks at
    once.

    `worker`: the command that reads the manifest and writes the errors, see `engine_worker`.
    """
    if not _places.acquire(timeout=_MAX_WAIT_S):
        raise Problem(503, "other scenarios are being checked; try again", {"Retry-After": "5"})
    try:
        return _run_check(manifest, patience_s, worker)
    finally:
        _places.release()


def _run_check(manifest: ScenarioManifest, patience_s: float, worker: Sequence[str]) -> list[BodyFault]:
    try:
        faults = json.loads(_run_worker(json.dumps(manifest.model_dump()).encode(), patience_s, worker))
        return [BodyFault(path, message[:_LONGEST_MESSAGE]) for path, message in faults]
    except subprocess.TimeoutExpired:
        reason = f"its engine {manifest.adapter_name} took longer than {patience_s:g} s to start and play one seed"
    except (subprocess.CalledProcessError, ValueError, TypeError) as error:
        _log.warning("the engine %s failed in its own process: %s", manifest.adapter_name, error)
        reason = f"its engine {manifest.adapter_name} failed while it started or played one seed"
    return [BodyFault("adapter", f"{reason}; allowed: a manifest that its engine can play")]


def _run_worker(data: bytes, patience_s: float, worker: Sequence[str]) -> bytes:
    """Return the output of the process, whose process group ends with it."""
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
