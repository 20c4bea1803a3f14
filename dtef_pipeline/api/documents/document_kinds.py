"""The differences over HTTP between personas (roles of models) and scenarios (games as manifests, with an id such as `poker/kuhn`)."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, get_args

from fastapi import Path

from dtef_pipeline.api.documents.document_history import DocumentKind, DocumentsByVersion, GameDocument
from dtef_pipeline.api.plans.plan import BodyFault
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.games.manifest import ScenarioManifest, ScenarioStatus
from dtef_pipeline.games.personas import Persona, PersonaStatus
from resources.settings import Settings
from resources.votes.game_documents import DocumentSnapshot

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


LARGEST_FIRST_SEED = 2**31 - 1
MAX_SEEDS = 100_000
_TURNING = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def _load_personas(settings: Settings, snapshot: DocumentSnapshot, conflicts: dict[str, str]) -> DocumentsByVersion:
    from assets.games.game_catalog import load_known_persona_versions

    return {(entry.id, entry.version): entry for entry in load_known_persona_versions(settings, snapshot, conflicts).values()}


def _check_persona(persona: GameDocument) -> list[BodyFault]:
    """Find names that would reverse the text next to them on a terminal or a page."""
    assert isinstance(persona, Persona)
    if not _TURNING.search(name := persona.display_name):
        return []
    message = f"got {name!r}; allowed: a name without control characters and characters that change the direction of writing"
    return [BodyFault("display_name", message)]


def _persona_in_path(persona_id: Annotated[str, Path(description="Id of a persona, such as `cautious`.")]) -> str:
    return persona_id


PERSONAS = DocumentKind(
    "persona",
    "personas",
    Persona,
    get_args(PersonaStatus),
    _load_personas,
    _check_persona,
    place="/{persona_id}",
    id_in_path=_persona_in_path,
)


def _load_scenarios(settings: Settings, snapshot: DocumentSnapshot, conflicts: dict[str, str]) -> DocumentsByVersion:
    from assets.games.game_catalog import load_scenario_versions

    return load_scenario_versions(settings, snapshot, conflicts)


def _check_scenario(manifest: GameDocument) -> list[BodyFault]:
    assert isinstance(manifest, ScenarioManifest)
    for name, value, cap in (("first", manifest.seeds.first, LARGEST_FIRST_SEED), ("count", manifest.seeds.count, MAX_SEEDS)):
        if value > cap:
            return [BodyFault(f"seeds.{name}", f"got {str(value)[:80]}; allowed: at most {cap}")]
    return check_engine(manifest)


def _scenario_in_path(
    league: Annotated[str, Path(description="The part of the id before the slash, such as `poker`.")],
    name: Annotated[str, Path(description="The part of the id after the slash, such as `kuhn`.")],
) -> str:
    return f"{league}/{name}"


SCENARIOS = DocumentKind(
    "scenario",
    "scenarios",
    ScenarioManifest,
    get_args(ScenarioStatus),
    _load_scenarios,
    _check_scenario,
    place="/{league}/{name}",
    id_in_path=_scenario_in_path,
)
