"""The code version and configuration to which a stored response, or a pair of responses, can be traced."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dtef_pipeline.asking.request import AskingRun
from dtef_pipeline.errors import NewerSchema
from dtef_pipeline.identity import digest
from resources.settings import Settings, find_shipped
from resources.votes.game_documents import DOCUMENT_KINDS, read_documents_if_present

_SOURCES_ROOT = Path(__file__).parents[1]
_HASHED_FOLDERS = ("dtef_pipeline", "resources", "assets")
_RELEASED_AS = "dtef-pipeline"


@cache
def code_version() -> str:
    """Return the version with 16 digits of the hash of all sources: 0.1.0+1a2b3c4d5e6f7081."""
    try:
        release = version(_RELEASED_AS)
    except PackageNotFoundError:
        release = "unknown"
    hasher = hashlib.sha256()
    for path in sorted(source for folder in _HASHED_FOLDERS for source in (_SOURCES_ROOT / folder).rglob("*.py")):
        hasher.update(f"{path.relative_to(_SOURCES_ROOT).as_posix()}\n{_hash(path)}\n".encode())
    return f"{release}+{hasher.hexdigest()[:16]}"


def config_hash(settings: Settings) -> str:
    """Return the hash of all settings that determine requests and models: model list, panel, scenario and persona files, and
    documents made over HTTP without drafts, as those are not used.

    The hash is stored in the database of the documents: if they cannot be read, it cannot be stored either, so it is never computed without
    them. Raises StoreError if the database cannot be read.
    """
    places = (
        find_shipped("models.yaml"),
        settings.models,
        settings.panel,
        find_shipped("scenarios"),
        find_shipped("personas"),
    )
    states = []
    for place in (*places, settings.scenarios, settings.personas):
        files = [] if place is None else sorted(place.rglob("*.yaml")) if place.is_dir() else [place] if place.is_file() else []
        states.append([[file.name, _hash(file)] for file in files])
    return digest("configuration", *states, *_list_document_states(settings))


def _list_document_states(settings: Settings) -> list[object]:
    """Return the states of the stored versions that are no drafts, an empty list without any, or one marker if newer code wrote them."""
    try:
        documents = read_documents_if_present(settings.responses_url)
    except NewerSchema:
        # Other families continue, because they use no document of the store.
        return ["of a newer dtef-pipeline"]
    bodies = {(entry.kind, entry.id, entry.version): entry.body for entry in documents.versions}
    states = [
        [kind, *key, status, bodies.get((kind, *key))]
        for kind in DOCUMENT_KINDS
        for key, status in sorted(documents.map_statuses(kind).items())
        if status != "draft"
    ]
    return [states] if states else []


def _hash(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        # A missing hash must not lose responses that were paid for.
        return "unreadable"


def describe_this_run() -> AskingRun:
    """Return the current code version and configuration hash."""
    return AskingRun(code_version(), config_hash(Settings.read_environment()))
