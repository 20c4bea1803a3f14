"""Personas and scenarios that were made over HTTP, as the response database has them: append-only versions and statuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from dtef_pipeline.errors import DtefError

if TYPE_CHECKING:
    import sqlalchemy as sa


GameDocumentKind = Literal["persona", "scenario"]
DOCUMENT_KINDS: tuple[GameDocumentKind, ...] = get_args(GameDocumentKind)


FIRST_STATUS: Mapping[GameDocumentKind, str] = MappingProxyType({"persona": "draft", "scenario": "experimental"})
"""What every version begins with."""


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


def stored_documents(location: str) -> StoredDocuments:
    """What a response database has of them, without making anything: nothing of a file or of tables that are not there.

    `location`: as `ResponseStore` takes it. Raises StoreError where the database is there and cannot be read.
    """
    if (file := _file_of(location)) is not None and not file.is_file():
        return NO_DOCUMENTS
    from resources.database_stores import read_if_there

    return read_if_there(location, _found_documents, NO_DOCUMENTS)


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
    return documents_in(connection)


def documents_in(connection: sa.Connection, kind: str | None = None, document_id: str | None = None) -> StoredDocuments:
    """What the tables have, which are there: of this kind and id, where these are given."""
    import sqlalchemy as sa

    from resources import game_document_tables as tables
    from resources.vote_tables import BEGINNING, time_of

    def rows(table: sa.Table) -> Any:
        statement = sa.select(table).order_by(table.c.place)
        for column, wanted in ((table.c.kind, kind), (table.c.id, document_id)):
            statement = statement if wanted is None else statement.where(column == wanted)
        return connection.execute(statement).mappings()

    versions = [
        DocumentVersion(
            row["kind"], row["id"], row["version"], json.loads(row["body"]), row["who"], time_of(row["made_at"]) or BEGINNING
        )
        for row in rows(tables.document_versions)
    ]
    statuses = [
        SaidStatus(row["kind"], row["id"], row["version"], row["status"], row["who"], time_of(row["said_at"]) or BEGINNING)
        for row in rows(tables.document_statuses)
    ]
    return StoredDocuments(tuple(versions), tuple(statuses))
