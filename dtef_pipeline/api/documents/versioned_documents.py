"""Documents with versions and statuses, of files and made over HTTP: listed, made, changed and approved. What personas and scenarios share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, NamedTuple

from fastapi import Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from dtef_pipeline.api.etags import header_of, require_match, tagged, weak_etag
from dtef_pipeline.api.problems import OVER_HTTP, SENT_BODY, Problem, as_errors, fault_of_line, faulty
from dtef_pipeline.api.services import Services
from dtef_pipeline.documents import reasons
from dtef_pipeline.errors import SourceError
from dtef_pipeline.games.document_lines import document_lines, new_documents, read_document_lines
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.personas import Persona
from dtef_pipeline.identity import versions_in_play
from resources.settings import Settings
from resources.votes.game_documents import (
    DocumentChanged,
    DocumentVersion,
    GameDocumentKind,
    GameDocumentStore,
    SaidStatus,
    StoredDocuments,
)

Versioned = Persona | ScenarioManifest
ByVersion = Mapping[tuple[str, int], Versioned]
DOCUMENTS_LISTED, MOST_DOCUMENTS_LISTED = 100, 1000
"""Documents of a list where no `limit` says otherwise, and at most."""
LARGEST_VERSION = 2**31 - 1
MADE_HERE = ("version", "status")
"""Fields of a document that nobody sends."""
Cursor = Annotated[str | None, Query(description="`next` of the part of the list before this one.")]
Limit = Annotated[int, Query(ge=1, le=MOST_DOCUMENTS_LISTED)]
VersionAsked = Annotated[int | None, Query(ge=1, le=LARGEST_VERSION, description="None: the latest.")]
_ECHOED_OF_BODY, _MOST_FAULTS = 80, 20


@dataclass(frozen=True, slots=True)
class DocumentsOfKind:
    """What tells personas and scenarios apart here."""

    kind: GameDocumentKind
    plural: str
    model: type[Versioned]
    statuses: tuple[str, ...]
    """From the first to the last: each may follow the one before it, and nothing else."""
    known: Callable[[Settings, StoredDocuments, dict[str, str]], ByVersion]
    """All versions, in their order; the last argument takes, by id, what is wrong with a version that a file has."""
    faults: Callable[[Versioned], list[dict[str, str]]] = lambda _: []
    """What else is wrong with a document that fits its model, each with `path` and `message`."""
    most_imported: int | None = None
    """New versions of one import over HTTP; None: any number."""

    def location(self, document_id: str) -> str:
        return f"/api/{self.plural}/{document_id}"


class VersionTold(NamedTuple):
    """A version of a document, with who made it and what was said of it."""

    version: int
    status: str
    made: DocumentVersion | None
    """None: a file has it."""
    said: Sequence[SaidStatus]


@dataclass(frozen=True, slots=True)
class KnownDocuments:
    """All versions at one moment, of all documents of a kind or of one: of others then those alone that files have."""

    of: DocumentsOfKind
    versions: ByVersion
    stored: StoredDocuments
    conflicts: Mapping[str, str]
    """By id, what is wrong where a version of a file says something else than the one made before it, which holds."""

    @classmethod
    def now(cls, of: DocumentsOfKind, services: Services, document_id: str | None = None) -> KnownDocuments:
        return cls.of_store(of, services.settings, services.documents, document_id)

    @classmethod
    def of_store(
        cls, of: DocumentsOfKind, settings: Settings, store: GameDocumentStore, document_id: str | None = None
    ) -> KnownDocuments:
        stored, conflicts = store.all(of.kind, document_id), dict[str, str]()
        return cls(of, of.known(settings, stored, conflicts), stored, conflicts)

    def latest(self) -> dict[str, Versioned]:
        """The latest version of each document, by id, in the order of ids."""
        return {name: one for (name, _), one in self.versions.items()}

    def in_play(self) -> dict[str, Versioned]:
        """The version of each document that evaluations take, by id: the latest that is past the first status."""
        return versions_in_play(self.versions.values(), self.of.statuses[0])

    def one(self, document_id: str, version: int | None = None) -> Versioned:
        """A version; None: the latest. Raises Problem 404."""
        latest = self.latest().get(document_id)
        if latest is None:
            raise Problem(404, f"there is no {self.of.kind} {document_id[:80]!r}; those there are: GET /api/{self.of.plural}")
        if version is None:
            return latest
        if (found := self.versions.get((document_id, version))) is None:
            there = ", ".join(str(number) for name, number in self.versions if name == document_id)
            raise Problem(404, f"the {self.of.kind} {document_id} has no version {version}; there are: {there}")
        return found

    def revision(self, document_id: str) -> int:
        return self.stored.revision(self.of.kind, document_id)

    def history(self, document_id: str) -> list[VersionTold]:
        """All versions of a document, in their order; none of one that is not there."""
        made = {one.version: one for one in self.stored.of(self.of.kind) if one.id == document_id}
        said = [one for one in self.stored.statuses if (one.kind, one.id) == (self.of.kind, document_id)]
        return [
            VersionTold(version, one.status, made.get(version), [each for each in said if each.version == version])
            for (name, version), one in self.versions.items()
            if name == document_id
        ]


def body_of(document: Versioned) -> dict[str, Any]:
    """A document as JSON."""
    return document.model_dump(mode="json")


def listed(
    of: DocumentsOfKind, request: Request, services: Services, status: str | None, cursor: str | None, limit: int
) -> Response:
    """The latest version of each document, of those alone that have the status; `cursor`: the id that the list goes on after."""
    found = [one for one in KnownDocuments.now(of, services).latest().values() if status in (None, one.status)]
    rest = [one for one in found if cursor is None or one.id > cursor]
    after = rest[limit - 1].id if len(rest) > limit else None
    return tagged(request, {of.plural: [body_of(one) for one in rest[:limit]], "next": after})


def shown(of: DocumentsOfKind, request: Request, services: Services, document_id: str, version: int | None) -> Response:
    """A version; None: the latest. Raises Problem 404."""
    return tagged(request, body_of(KnownDocuments.now(of, services, document_id).one(document_id, version)))


def history(of: DocumentsOfKind, request: Request, services: Services, document_id: str) -> Response:
    """Who made which version, and what was said of its status. Of a version that a file has, the file alone is told. Raises Problem 404."""
    known = KnownDocuments.now(of, services, document_id)
    known.one(document_id)
    versions = [
        {
            "version": one.version,
            "status": one.status,
            "from": "store" if one.made else "file",
            "made_by": one.made.who if one.made else None,
            "made_at": one.made.made_at.isoformat() if one.made else None,
            "statuses": [{"status": each.status, "who": each.who, "said_at": each.said_at.isoformat()} for each in one.said],
        }
        for one in known.history(document_id)
    ]
    return tagged(request, {"id": document_id, "versions": versions})


def make(of: DocumentsOfKind, services: Services, given: object, who: str) -> Response:
    """Store version 1 of what was sent, with the first status. Raises Problem: 422 for faults, 409 for an id that is there."""
    document = _checked(of, given, 1)
    known = KnownDocuments.now(of, services, document.id)
    if document.id in known.latest():
        raise _there_already(of, document.id)
    _require_playable(of, document)
    try:
        services.documents.add(of.kind, body_of(document), who, seen=known.revision(document.id))
    except DocumentChanged:
        raise _there_already(of, document.id) from None
    body = body_of(document)
    return JSONResponse(body, 201, {"Location": of.location(document.id), "ETag": weak_etag(body), "Cache-Control": "no-cache"})


def _there_already(of: DocumentsOfKind, document_id: str) -> Problem:
    where = of.location(document_id)
    return Problem(409, f"the {of.kind} {document_id} is there already; allowed: another id, or PUT {where} for a new version")


def change(of: DocumentsOfKind, request: Request, services: Services, document_id: str, given: object, who: str) -> Response:
    """Store what was sent as the next version, with the first status.

    Raises Problem: 404 unknown, 428 without If-Match, 412 where that names another state than the latest version's, 422 for faults and for
    another id.
    """
    known = KnownDocuments.now(of, services, document_id)
    before = known.one(document_id)
    require_match(request, weak_etag(body_of(before)))
    document = _checked(of, given, before.version + 1)
    if document.id != document_id:
        raise faulty([{"path": "id", "message": f"got {document.id!r}; allowed: {document_id}, as the path has it"}])
    _require_playable(of, document)
    try:
        services.documents.add(of.kind, body_of(document), who, seen=known.revision(document_id), before=body_of(before))
    except DocumentChanged:
        etag = weak_etag(body_of(KnownDocuments.now(of, services, document_id).one(document_id)))
        raise Problem(412, f"it has changed since: the ETag is now {etag}", {"ETag": etag}) from None
    return _now(body_of(document))


def export_answer(of: DocumentsOfKind, services: Services) -> Response:
    """All versions of all documents as JSON lines, of files and made here."""
    lines = document_lines(of.kind, KnownDocuments.now(of, services).versions.values())
    sent = {"Cache-Control": "no-store", "Content-Disposition": f'attachment; filename="{of.plural}.jsonl"'}
    return Response(lines, headers=sent, media_type="application/jsonl")


async def import_answer(of: DocumentsOfKind, request: Request, services: Services, who: str) -> Response:
    """201 with what was added. Raises Problem: 422 for the first line with a fault, 409 where something has changed meanwhile."""
    data = await request.body()

    def add() -> AddedDocuments:
        try:
            return import_documents(
                of, services.settings, services.documents, data, SENT_BODY, who, source=OVER_HTTP, most=of.most_imported
            )
        except SourceError as error:
            raise fault_of_line(error) from None
        except DocumentChanged as error:
            raise Problem(409, f"{error}; send the lines again") from None

    return JSONResponse((await run_in_threadpool(add))._asdict(), 201)


class AddedDocuments(NamedTuple):
    """What an import has added, by what the record of actions calls it, and how many lines said nothing new."""

    added: dict[str, int]
    known: int


def import_documents(
    of: DocumentsOfKind,
    settings: Settings,
    store: GameDocumentStore,
    data: bytes,
    where: str,
    who: str,
    *,
    source: str | None = None,
    most: int | None = None,
) -> AddedDocuments:
    """Store the versions and later statuses that JSON lines have and nothing here has, all of them or none.

    `where` and `source`: what errors and the record of actions call the lines; None: the same. `most`: new versions; None: any number.
    Raises DocumentChanged, Problem 503, and SourceError, with the line, for what is no such document, contradicts what is there or cannot be
    played.
    """
    given = read_document_lines(of.kind, data, where)
    known = KnownDocuments.of_store(of, settings, store)
    new = new_documents(given, known.versions.values(), where, of.statuses)
    versions = {line: one for line, one in new.items() if (one.id, one.version) not in known.versions}
    _require_importable(of, versions, where, most)
    later = [body_of(one) for line, one in new.items() if line not in versions]
    bodies = [body_of(one) for one in versions.values()]
    return AddedDocuments(store.add_all(of.kind, bodies, later, who, source or where, seen=known.stored), len(given) - len(new))


def _require_importable(of: DocumentsOfKind, versions: Mapping[int, Versioned], where: str, most: int | None) -> None:
    """Raises SourceError for the first line with what cannot be stored or played."""
    for line, one in versions.items():
        if one.version > LARGEST_VERSION:
            raise SourceError(f"version: got {one.version}", where=where, line=line, allowed=f"at most {LARGEST_VERSION}")
    if most is not None and len(versions) > most:
        said = f"{of.kind} {most + 1} of those that are new, which all are tried by their engines"
        raise SourceError(said, where=where, line=sorted(versions)[most], allowed=f"{most} new ones in a request")
    for line, one in versions.items():
        if found := of.faults(one):
            said = "; ".join(f"{each['path']}: {each['message']}" for each in found)
            raise SourceError(said, where=where, line=line)


def move(
    of: DocumentsOfKind, request: Request, services: Services, document_id: str, status: str, version: int | None, who: str
) -> Response:
    """Store a status of a version; None: of the latest.

    Raises Problem: 404 unknown, 409 for a status that does not follow the present one, 412 where an If-Match names another state.
    """
    known = KnownDocuments.now(of, services, document_id)
    before = known.one(document_id, version)
    if header_of(request, "if-match") is not None:
        require_match(request, weak_etag(body_of(before)))
    steps = steps_from(of, before.status)
    if status not in steps:
        allowed = ", ".join(steps) or "none, as this is the last"
        said = f"the {of.kind} {document_id}, version {before.version}, is {before.status} and cannot become {status}"
        raise Problem(409, f"{said}; allowed: {allowed}", allowed=list(steps))
    after = {**body_of(before), "status": status}
    try:
        services.documents.say(of.kind, after, who, seen=known.revision(document_id), before=body_of(before))
    except DocumentChanged:
        raise Problem(409, f"the {of.kind} {document_id} has changed meanwhile; look at it again") from None
    return _now(after)


def steps_from(of: DocumentsOfKind, status: str) -> Sequence[str]:
    """The statuses that may follow one."""
    at = of.statuses.index(status)
    return of.statuses[at + 1 : at + 2]


def _now(body: Mapping[str, Any]) -> Response:
    return JSONResponse(body, headers={"ETag": weak_etag(body), "Cache-Control": "no-cache"})


def _checked(of: DocumentsOfKind, given: object, version: int) -> Versioned:
    """The document of a body as `version`, with the first status. Raises Problem 422."""
    known = [name for name in of.model.model_fields if name not in MADE_HERE]
    if not isinstance(given, Mapping):
        arrived = "no JSON" if isinstance(given, bytes) else json.dumps(given, ensure_ascii=False)[:_ECHOED_OF_BODY]
        raise faulty(
            [{"path": "body", "message": f"got {arrived}; allowed: application/json, a mapping with {', '.join(known)}"}]
        )
    told = f"unknown key; known: {', '.join(known)}"
    faults = [{"path": name[:_ECHOED_OF_BODY], "message": told} for name in given if name not in known][:_MOST_FAULTS]
    if version > LARGEST_VERSION:
        raise Problem(409, f"the {of.kind} has version {version - 1}, after which there is no other")
    values = {name: one for name, one in given.items() if name in known}
    try:
        document = of.model.model_validate({**values, "version": version, "status": of.statuses[0]})
    except ValidationError as error:
        raise faulty([*faults, *as_errors(islice(reasons(error, of.model), _MOST_FAULTS))][:_MOST_FAULTS]) from None
    if faults:
        raise faulty(faults)
    return document


def _require_playable(of: DocumentsOfKind, document: Versioned) -> None:
    if found := of.faults(document):
        raise faulty(found)
