"""The code version and configuration to which a stored response, or a pair of responses, can be traced."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import yaml

from dtef_pipeline.asking.asking_run import AskingRun
from dtef_pipeline.errors import NewerSchema
from dtef_pipeline.identity import digest, select_versions_in_play
from resources.settings import Settings, find_shipped
from resources.votes.game_documents import (
    DOCUMENT_KINDS,
    FIRST_STATUS,
    DocumentSnapshot,
    GameDocumentKind,
    read_documents_if_present,
)

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
    """Return the hash of all settings that determine requests and models: model list, panel, scenario and persona files; of documents made
    over HTTP only the versions in play, as drafts are not used.

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
    """Return the states of the stored versions in play, an empty list without any, or one marker if newer code wrote them."""
    try:
        documents = read_documents_if_present(settings.responses_url)
    except NewerSchema:
        # Other families continue, because they use no document of the store.
        return ["of a newer dtef-pipeline"]
    states = [state for kind in DOCUMENT_KINDS for state in _list_stored_states(kind, documents, settings)]
    return [states] if states else []


class _VersionState(NamedTuple):
    id: str
    version: int
    status: str


def _list_stored_states(kind: GameDocumentKind, documents: DocumentSnapshot, settings: Settings) -> list[list[object]]:
    """Return kind, id, version and status of each document in play with a status in the store, and the body if made over HTTP."""
    bodies, statuses = (
        {(entry.id, entry.version): entry.body for entry in documents.select_kind(kind)},
        documents.map_statuses(kind),
    )
    if not statuses:
        return []
    initial = {**_read_file_statuses(kind, settings), **dict.fromkeys(bodies, FIRST_STATUS[kind])}
    versions = [_VersionState(*key, statuses.get(key, status)) for key, status in initial.items()]
    current_states = select_versions_in_play(versions, FIRST_STATUS[kind]).values()
    stored_states = [state for state in current_states if (state.id, state.version) in statuses]
    return [[kind, *state, bodies.get((state.id, state.version))] for state in stored_states]


def _read_file_statuses(kind: GameDocumentKind, settings: Settings) -> dict[tuple[str, int], str]:
    """Return statuses by id and version. A user's scenario replaces the shipped one of its id; invalid files are left out."""
    own_folder = settings.personas if kind == "persona" else settings.scenarios
    defaults, own_statuses = _read_folder_statuses(kind, find_shipped(f"{kind}s")), _read_folder_statuses(kind, own_folder)
    names = {name for name, _ in own_statuses} if kind == "scenario" else set()
    return {key: status for key, status in defaults.items() if key[0] not in names} | own_statuses


def _read_folder_statuses(kind: GameDocumentKind, folder: Path | None) -> dict[tuple[str, int], str]:
    statuses = {}
    for path in sorted(folder.rglob("*.yaml")) if folder and folder.is_dir() else ():
        try:
            values = yaml.safe_load(path.read_text(encoding="utf-8"))
            statuses[str(values["id"]), int(values["version"])] = str(values.get("status", FIRST_STATUS[kind]))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError):
            continue
    return statuses


def _hash(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        # A missing hash must not lose responses that were paid for.
        return "unreadable"


def describe_this_run() -> AskingRun:
    """Return the current code version and configuration hash."""
    return AskingRun(code_version(), config_hash(Settings.read_environment()))
