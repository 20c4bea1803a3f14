"""Personas and scenarios: documents with versions and statuses, from files and created over HTTP."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Literal, NamedTuple, get_args

from fastapi import Path
from pydantic import Field, ValidationError

from dtef_pipeline.api.answer_schemas import AnswerBody
from dtef_pipeline.api.etags import compute_weak_etag, require_match
from dtef_pipeline.api.plans.plan import BodyFault
from dtef_pipeline.api.problems import Problem, convert_faults, make_fault_problem
from dtef_pipeline.api.services import Services
from dtef_pipeline.documents import reasons
from dtef_pipeline.errors import SourceError
from dtef_pipeline.games.manifest import ScenarioManifest, ScenarioStatus
from dtef_pipeline.games.pack_files import find_new_documents, read_document_lines
from dtef_pipeline.games.personas import Persona, PersonaStatus
from dtef_pipeline.identity import select_versions_in_play
from resources.settings import Settings
from resources.votes.game_documents import DocumentChanged, DocumentSnapshot, GameDocumentKind, GameDocumentStore

GameDocument = Persona | ScenarioManifest
DocumentsByVersion = Mapping[tuple[str, int], GameDocument]
LARGEST_VERSION = 2**31 - 1
SERVER_FIELDS = ("version", "status")
"""Fields of a document that are not sent."""
_ECHOED_CHARACTERS, _MAX_FAULTS = 80, 20


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """The differences between personas and scenarios."""

    kind: GameDocumentKind
    plural: str
    model: type[GameDocument]
    statuses: tuple[str, ...]
    """Statuses from first to last; each may follow only the one before it."""
    load_versions: Callable[[Settings, DocumentSnapshot, dict[str, str]], DocumentsByVersion]
    """Loads all versions, in order; the last argument receives errors of versions in files by id."""
    faults: Callable[[GameDocument], list[BodyFault]] = lambda _: []
    """Finds further errors of a valid document, each with `path` and `message`."""
    place: str = "/{document_id}"
    """Path of one document, below that of the list."""
    id_in_path: Callable[..., str] = lambda document_id: document_id
    """Builds its id from the parameters of `place`."""

    def location(self, document_id: str) -> str:
        return f"/api/{self.plural}/{document_id}"


class StatusChange(AnswerBody):
    """A status that somebody gave to a version."""

    status: str
    changed_by: str
    changed_at: datetime


class DocumentVersion(AnswerBody):
    """A version with its history of statuses."""

    version: int
    status: str
    kept_in: Literal["file", "store"] = Field(serialization_alias="from")
    """store: it was created over HTTP."""
    made_by: str | None
    """Who created it; null: it is from a file."""
    made_at: datetime | None
    """Null: it is from a file."""
    statuses: list[StatusChange]
    """History of its status, earliest first."""


class AddedRecords(NamedTuple):
    """The records that an import has added, by kind, and the number of those that existed already."""

    added: dict[str, int]
    known: int


@dataclass(frozen=True, slots=True)
class KnownDocuments:
    """All versions at one moment, of all documents of a kind or of one; for other documents then only those from files."""

    spec: DocumentKind
    versions: DocumentsByVersion
    stored: DocumentSnapshot
    conflicts: Mapping[str, str]
    """Errors by id, for a version in a file that differs from the one created earlier, which takes precedence."""

    @classmethod
    def load_current(cls, of: DocumentKind, services: Services, document_id: str | None = None) -> KnownDocuments:
        return cls.load_documents(of, services.settings, services.documents, document_id)

    @classmethod
    def load_documents(
        cls, spec: DocumentKind, settings: Settings, store: GameDocumentStore, document_id: str | None = None
    ) -> KnownDocuments:
        snapshot, conflicts = store.read_all(spec.kind, document_id), dict[str, str]()
        return cls(spec, spec.load_versions(settings, snapshot, conflicts), snapshot, conflicts)

    def latest(self) -> dict[str, GameDocument]:
        """Return the latest version of each document, by id, in the order of ids."""
        return {name: document for (name, _), document in self.versions.items()}

    def current_versions(self) -> dict[str, GameDocument]:
        """Return the version of each document that evaluations use, by id: the latest beyond the first status."""
        return select_versions_in_play(self.versions.values(), self.spec.statuses[0])

    def find_version(self, document_id: str, version: int | None = None) -> GameDocument:
        """Return a version; None: the latest. Raises Problem 404."""
        latest = self.latest().get(document_id)
        if latest is None:
            raise Problem(404, f"unknown {self.spec.kind} {document_id[:80]!r}; those there are: GET /api/{self.spec.plural}")
        if version is None:
            return latest
        if (document := self.versions.get((document_id, version))) is None:
            numbers = ", ".join(str(number) for name, number in self.versions if name == document_id)
            raise Problem(404, f"the {self.spec.kind} {document_id} has no version {version}; existing versions: {numbers}")
        return document

    def revision(self, document_id: str) -> int:
        return self.stored.revision(self.spec.kind, document_id)

    def history(self, document_id: str) -> list[DocumentVersion]:
        """Return all versions of a document, in order. A version from a file has no author and no time. Raises Problem 404."""
        self.find_version(document_id)
        entries = {entry.version: entry for entry in self.stored.select_kind(self.spec.kind) if entry.id == document_id}
        statuses = [status for status in self.stored.statuses if (status.kind, status.id) == (self.spec.kind, document_id)]
        return [
            DocumentVersion(
                version=version,
                status=document.status,
                kept_in="store" if version in entries else "file",
                made_by=entries[version].who if version in entries else None,
                made_at=entries[version].made_at if version in entries else None,
                statuses=[
                    StatusChange(status=step.status, changed_by=step.who, changed_at=step.said_at)
                    for step in statuses
                    if step.version == version
                ],
            )
            for (name, version), document in self.versions.items()
            if name == document_id
        ]


def build_document_body(document: GameDocument) -> dict[str, Any]:
    """Return a document as JSON values."""
    return document.model_dump(mode="json")


def build_etag(document: GameDocument) -> str:
    """Return the ETag of a version in its present status."""
    return compute_weak_etag(build_document_body(document))


def make(spec: DocumentKind, services: Services, body: object, user: str) -> dict[str, Any]:
    """Store version 1 of the received document, with the first status. Raises Problem: 422 for errors, 409 for an existing id."""
    document = _parse_document(spec, body, 1)
    docs = KnownDocuments.load_current(spec, services, document.id)
    if document.id in docs.latest():
        raise _make_conflict(spec, document.id)
    _require_playable(spec, document)
    try:
        services.documents.add(spec.kind, build_document_body(document), user, revision=docs.revision(document.id))
    except DocumentChanged:
        raise _make_conflict(spec, document.id) from None
    return build_document_body(document)


def _make_conflict(spec: DocumentKind, document_id: str) -> Problem:
    where = spec.location(document_id)
    return Problem(409, f"the {spec.kind} {document_id} already exists; allowed: another id, or PUT {where} for a new version")


def change(
    spec: DocumentKind, services: Services, document_id: str, body: object, user: str, if_match: str | None
) -> dict[str, Any]:
    """Store the received document as the next version, with the first status.

    Raises Problem: 404 unknown, 428 without If-Match, 412 if it names another state than that of the latest version, 422 for errors and for
    another id.
    """
    docs = KnownDocuments.load_current(spec, services, document_id)
    before = docs.find_version(document_id)
    require_match(if_match, build_etag(before))
    document = _parse_document(spec, body, before.version + 1)
    if document.id != document_id:
        raise make_fault_problem([BodyFault("id", f"got {document.id!r}; allowed: {document_id}, the id in the path")])
    _require_playable(spec, document)
    try:
        services.documents.add(
            spec.kind,
            build_document_body(document),
            user,
            revision=docs.revision(document_id),
            before=build_document_body(before),
        )
    except DocumentChanged:
        etag = build_etag(KnownDocuments.load_current(spec, services, document_id).find_version(document_id))
        raise Problem(412, f"it has changed since: the ETag is now {etag}", {"ETag": etag}) from None
    return build_document_body(document)


def import_documents(
    spec: DocumentKind,
    settings: Settings,
    store: GameDocumentStore,
    data: bytes,
    where: str,
    user: str,
) -> AddedRecords:
    """Store the new versions and later statuses in JSON lines, all of them or none.

    `where`: name of the lines in errors and in the log of actions. Raises DocumentChanged, Problem 503, and SourceError, with the line, for
    an invalid document, one that contradicts an existing one, or one that cannot be played.
    """
    entries = read_document_lines(spec.kind, data, where)
    docs = KnownDocuments.load_documents(spec, settings, store)
    new = find_new_documents(entries, docs.versions.values(), where, spec.statuses)
    versions = {line: document for line, document in new.items() if (document.id, document.version) not in docs.versions}
    for line, document in versions.items():
        if document.version > LARGEST_VERSION:
            raise SourceError(f"version: got {document.version}", where=where, line=line, allowed=f"at most {LARGEST_VERSION}")
        if faults := spec.faults(document):
            message = "; ".join(f"{fault.path}: {fault.message}" for fault in faults)
            raise SourceError(message, where=where, line=line)
    later = [build_document_body(document) for line, document in new.items() if line not in versions]
    bodies = [build_document_body(document) for document in versions.values()]
    n_added = store.add_all(spec.kind, bodies, later, user, where, snapshot=docs.stored)
    return AddedRecords(added=n_added, known=len(entries) - len(new))


def move(
    spec: DocumentKind,
    services: Services,
    document_id: str,
    step: tuple[str, int | None],
    user: str,
    if_match: str | None,
) -> dict[str, Any]:
    """Store a status of a version, both given by `step`; without a version, of the latest.

    Raises Problem: 404 unknown, 409 for a status that does not follow the present one, 412 if an If-Match names another state.
    """
    (status, version), docs = step, KnownDocuments.load_current(spec, services, document_id)
    before = docs.find_version(document_id, version)
    if if_match is not None:
        require_match(if_match, build_etag(before))
    steps = list_next_statuses(spec, before.status)
    if status not in steps:
        choices = ", ".join(steps) or "none, because this is the last"
        message = f"the {spec.kind} {document_id}, version {before.version}, is {before.status} and cannot become {status}"
        raise Problem(409, f"{message}; allowed: {choices}", allowed=list(steps))
    after = {**build_document_body(before), "status": status}
    try:
        services.documents.say(spec.kind, after, user, revision=docs.revision(document_id), before=build_document_body(before))
    except DocumentChanged:
        raise Problem(409, f"the {spec.kind} {document_id} has changed in the meantime; read it again") from None
    return after


def list_next_statuses(spec: DocumentKind, status: str) -> Sequence[str]:
    """Return the statuses that may follow a status."""
    index = spec.statuses.index(status)
    return spec.statuses[index + 1 : index + 2]


def _parse_document(spec: DocumentKind, body: object, version: int) -> GameDocument:
    """Parse the document of a body as `version`, with the first status. Raises Problem 422."""
    names = [name for name in spec.model.model_fields if name not in SERVER_FIELDS]
    if not isinstance(body, Mapping):
        excerpt = "no JSON" if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False)[:_ECHOED_CHARACTERS]
        raise make_fault_problem(
            [BodyFault("body", f"got {excerpt}; allowed: application/json, a mapping with {', '.join(names)}")]
        )
    fault_message = f"unknown key; known: {', '.join(names)}"
    faults = [BodyFault(name[:_ECHOED_CHARACTERS], fault_message) for name in body if name not in names][:_MAX_FAULTS]
    if version > LARGEST_VERSION:
        raise Problem(409, f"the {spec.kind} has version {version - 1}, which is the last one possible")
    values = {name: value for name, value in body.items() if name in names}
    try:
        document = spec.model.model_validate({**values, "version": version, "status": spec.statuses[0]})
    except ValidationError as error:
        raise make_fault_problem(
            [*faults, *convert_faults(islice(reasons(error, spec.model), _MAX_FAULTS))][:_MAX_FAULTS]
        ) from None
    if faults:
        raise make_fault_problem(faults)
    return document


def _require_playable(spec: DocumentKind, document: GameDocument) -> None:
    if faults := spec.faults(document):
        raise make_fault_problem(faults)


ENGINE_PATIENCE_S = 20.0
_LONGEST_MESSAGE = 1000
"""Largest number of characters of one message."""
_ENGINE_WORKER = (sys.executable, "-P", "-m", "dtef_pipeline.api.documents.engine_worker")
_log = logging.getLogger(__name__)


def check_engine(
    manifest: ScenarioManifest, patience_s: float = ENGINE_PATIENCE_S, worker: Sequence[str] = _ENGINE_WORKER
) -> list[BodyFault]:
    """Return the errors that the engine finds in a manifest, each with `path` and `message`.

    `worker`: the command that reads the manifest and writes the errors, see `engine_worker`.
    """
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
