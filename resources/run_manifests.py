"""Which code and which configuration is at work: what a stored response, or a pair of them, can be followed back to."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dtef_pipeline.asking.asking_run import AskingRun
from dtef_pipeline.errors import DtefError
from dtef_pipeline.identity import digest
from resources.game_documents import DOCUMENT_KINDS, stored_documents
from resources.settings import Settings, shipped

_SOURCES_ROOT = Path(__file__).parents[1]
_HASHED_FOLDERS = ("dtef_pipeline", "resources", "assets")
_RELEASED_AS = "dtef-pipeline"


@cache
def code_version() -> str:
    """The version with 16 digits of the hash of all source files: 0.1.0+1a2b3c4d5e6f7081."""
    try:
        released = version(_RELEASED_AS)
    except PackageNotFoundError:
        released = "unknown"
    hashed = hashlib.sha256()
    for path in sorted(one for folder in _HASHED_FOLDERS for one in (_SOURCES_ROOT / folder).rglob("*.py")):
        hashed.update(f"{path.relative_to(_SOURCES_ROOT).as_posix()}\n{_hash(path)}\n".encode())
    return f"{released}+{hashed.hexdigest()[:16]}"


def config_hash(settings: Settings) -> str:
    """Hash of what says what is asked and of whom: models, panel, batteries, scenarios and personas, shipped, one's own, and made over HTTP."""
    places = (
        shipped("models.yaml"),
        settings.models,
        settings.panel,
        settings.batteries,
        shipped("scenarios"),
        shipped("personas"),
    )
    found = []
    for place in (*places, settings.scenarios, settings.personas):
        files = [] if place is None else sorted(place.rglob("*.yaml")) if place.is_dir() else [place] if place.is_file() else []
        found.append([[one.name, _hash(one)] for one in files])
    return digest("configuration", *found, *_documents_hashed(settings))


def _documents_hashed(settings: Settings) -> list[object]:
    """Versions and statuses that were made over HTTP; an empty list where there are none, as before there could be any."""
    try:
        stored = stored_documents(settings.responses_url)
    except DtefError:
        return ["unreadable"]
    versions = sorted([one.kind, one.id, one.version, one.body] for one in stored.versions)
    statuses = sorted([kind, *key, status] for kind in DOCUMENT_KINDS for key, status in stored.status_of(kind).items())
    return [[versions, statuses]] if versions or statuses else []


def _hash(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        # Nothing that was bought is lost for want of a hash.
        return "unreadable"


def this_run() -> AskingRun:
    """What is at work now."""
    return AskingRun(code_version(), config_hash(Settings.from_environment()))
