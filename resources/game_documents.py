"""The store of personas and scenarios that were made over HTTP, beside the responses: append-only versions and statuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, get_args

from dtef_pipeline.errors import DtefError
from dtef_pipeline.text.well_formed import well_formed

if TYPE_CHECKING:
    import sqlalchemy as sa

    from resources.responses.database import ResponseDatabase

GameDocumentKind = Literal["persona", "scenario"]
DOCUMENT_KINDS: tuple[GameDocumentKind, ...] = get_args(GameDocumentKind)


class DocumentChanged(DtefError):
    """Somebody has changed the document since it was looked at: nothing is stored."""


class DocumentVersion(NamedTuple):
    """One version of a document."""

    kind: GameDocumentKind
    id: str
    version: int
    body: Mapping[str, Any]
    """Its fields without version and status."""
    who: str
    made_at: datetime


class SaidStatus(NamedTuple):
    """What somebody said of a version, which may also be one that a file has."""

    kind: GameDocumentKind
    id: str
    version: int
    status: str
    who: str
    said_at: datetime


class StoredDocuments(NamedTuple):
    """All that the store has at one moment."""

    versions: tuple[DocumentVersion, ...] = ()
    """In the order in which they were made."""
    statuses: tuple[SaidStatus, ...] = ()
    """In the order in which they were said: the last of a version holds."""

    def of(self, kind: GameDocumentKind) -> tuple[DocumentVersion, ...]:
        return tuple(one for one in self.versions if one.kind == kind)

    def status_of(self, kind: GameDocumentKind) -> dict[tuple[str, int], str]:
        """The status that holds, by id and version; versions of which nothing was said are left out."""
        return {(one.id, one.version): one.status for one in self.statuses if one.kind == kind}

    def revision(self, kind: GameDocumentKind, document_id: str) -> int:
        """How often something was stored of a document: it grows with every change."""
        versions = sum((one.kind, one.id) == (kind, document_id) for one in self.versions)
        return versions + sum((one.kind, one.id) == (kind, document_id) for one in self.statuses)


NO_DOCUMENTS = StoredDocuments()


def _utc_now() -> datetime:
    return datetime.now(UTC)


def stored_documents(location: str) -> StoredDocuments:
    """What a response database has of them, without making anything: nothing of a file or of tables that are not there.

    `location`: as `ResponseStore` takes it. Raises StoreError where the database is there and cannot be read.
    """
    if (file := _file_of(location)) is not None and not file.is_file():
        return NO_DOCUMENTS
    from resources.responses.database import ResponseDatabase

    database = ResponseDatabase(location, prepare=False)
    try:
        return database.read(_found_documents)
    finally:
        database.close()


def _file_of(location: str) -> Path | None:
    """The SQLite file that a location names, of a location in the two usual spellings; None: that is for the database to say."""
    if "://" not in location:
        return Path(location).expanduser()
    scheme, _, place = location.partition(":///")
    return Path(place) if scheme == "sqlite" and place and "?" not in place else None


def _found_documents(connection: sa.Connection) -> StoredDocuments:
    from resources import game_document_tables as tables

    if tables.document_schema(connection) is None:
        return NO_DOCUMENTS
    return _documents_in(connection)


def _documents_in(connection: sa.Connection) -> StoredDocuments:
    import sqlalchemy as sa

    from resources import game_document_tables as tables
    from resources.vote_tables import BEGINNING, time_of

    made = connection.execute(sa.select(tables.document_versions).order_by(tables.document_versions.c.place)).mappings()
    versions = [
        DocumentVersion(
            row["kind"], row["id"], row["version"], json.loads(row["body"]), row["who"], time_of(row["made_at"]) or BEGINNING
        )
        for row in made
    ]
    said = connection.execute(sa.select(tables.document_statuses).order_by(tables.document_statuses.c.place)).mappings()
    statuses = [
        SaidStatus(row["kind"], row["id"], row["version"], row["status"], row["who"], time_of(row["said_at"]) or BEGINNING)
        for row in said
    ]
    return StoredDocuments(tuple(versions), tuple(statuses))


class GameDocumentStore:
    """Safe to use from several threads and processes at once."""

    def __init__(self, location: str | Path | ResponseDatabase, clock: Callable[[], datetime] = _utc_now) -> None:
        """Open the documents in a response database, and make what is not there: also the tables of votes, where actions are noted.

        Args:
            location: as `ResponseStore` takes it, or a database that is open; that one is not closed here.
            clock: says when something is made.

        Raises:
            ConfigError: the URL names no database that can hold responses.
            StoreError: the database cannot be opened, or was written by newer code.
        """
        from resources.game_document_tables import make_document_tables
        from resources.responses.database import ResponseDatabase
        from resources.vote_tables import make_vote_tables

        self._is_own = not isinstance(location, ResponseDatabase)
        self.database = location if isinstance(location, ResponseDatabase) else ResponseDatabase(location)
        self.clock = clock
        make_vote_tables(self.database)
        make_document_tables(self.database)

    def all(self) -> StoredDocuments:
        """All there is now, of one reading transaction."""
        return self.database.read(_documents_in)

    def add(
        self,
        kind: GameDocumentKind,
        document: Mapping[str, Any],
        who: str,
        *,
        seen: int,
        before: Mapping[str, Any] | None = None,
    ) -> None:
        """Store a version with its first status.

        Args:
            kind: of the document.
            document: its fields, with `id`, `version` and `status`.
            who: made it.
            seen: `StoredDocuments.revision` of when the version was decided on.
            before: the version before it.

        Raises DocumentChanged, and stores nothing, where something of the document was stored since.
        """
        body = {name: value for name, value in document.items() if name not in ("version", "status")}
        self._write(kind, document, who, seen, before, body)

    def say(
        self, kind: GameDocumentKind, document: Mapping[str, Any], who: str, *, seen: int, before: Mapping[str, Any]
    ) -> None:
        """Store the status of a version; arguments and errors as those of `add`."""
        self._write(kind, document, who, seen, before, None)

    def _write(
        self,
        kind: GameDocumentKind,
        document: Mapping[str, Any],
        who: str,
        seen: int,
        before: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
    ) -> None:
        import sqlalchemy as sa

        from resources import game_document_tables as tables
        from resources.vote_tables import microseconds, note_action

        now = self.clock()
        row = {"kind": kind, "id": document["id"], "version": document["version"], "who": well_formed(who)}

        def work(connection: sa.Connection) -> None:
            if _documents_in(connection).revision(kind, row["id"]) != seen:
                raise DocumentChanged(f"the {kind} {row['id']} has changed meanwhile")
            if body is not None:
                made = {**row, "body": _canonical_json(body), "made_at": microseconds(now)}
                connection.execute(sa.insert(tables.document_versions), made)
            said = {**row, "status": document["status"], "said_at": microseconds(now)}
            connection.execute(sa.insert(tables.document_statuses), said)
            what = f"{kind}_status" if body is None else f"{kind}_version"
            note_action(connection, who, now, what, before or {}, document)

        # Alone: no other writer comes between the look and the rows.
        self.database.write(work, alone=True)

    def close(self) -> None:
        if self._is_own:
            self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _canonical_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
