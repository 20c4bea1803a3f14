"""Personas and scenarios made over HTTP, in the database of the response store.

The tables are append-only: a change is a new version, and a status holds until the next one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import sqlalchemy as sa

from dtef_pipeline.errors import DtefError
from dtef_pipeline.text.number_words import list_first_names
from dtef_pipeline.text.well_formed import replace_surrogates
from resources.responses.database import (
    DatabaseStore,
    ResponseDatabase,
    find_schema_version,
    get_utc_now,
    make_tables,
    read_if_there,
)
from resources.votes.vote_tables import (
    convert_time,
    find_noted_action,
    make_vote_tables,
    microseconds,
    record_action,
)

GameDocumentKind = Literal["persona", "scenario"]
DOCUMENT_KINDS: tuple[GameDocumentKind, ...] = get_args(GameDocumentKind)


class DocumentChanged(DtefError):
    """The document was changed since it was read: nothing is stored."""


class DocumentVersion(NamedTuple):
    """One version of a document."""

    kind: GameDocumentKind
    id: str
    version: int
    body: Mapping[str, Any]
    """The document's fields without version and status."""
    who: str
    made_at: datetime


class DocumentStatus(NamedTuple):
    """A status given to a version, which may also be from a file."""

    kind: GameDocumentKind
    id: str
    version: int
    status: str
    who: str
    said_at: datetime


class DocumentSnapshot(NamedTuple):
    """The store's content at one moment."""

    versions: tuple[DocumentVersion, ...] = ()
    """Versions in order of creation."""
    statuses: tuple[DocumentStatus, ...] = ()
    """Statuses in order of entry: the last one of a version holds."""

    def select_kind(self, kind: GameDocumentKind) -> tuple[DocumentVersion, ...]:
        return tuple(version for version in self.versions if version.kind == kind)

    def map_statuses(self, kind: GameDocumentKind) -> dict[tuple[str, int], str]:
        """Return the current status by id and version; versions without one are left out."""
        return {(entry.id, entry.version): entry.status for entry in self.statuses if entry.kind == kind}

    def revision(self, kind: GameDocumentKind, document_id: str) -> int:
        """Return how many rows are stored of a document: it grows with every change."""
        versions = sum((entry.kind, entry.id) == (kind, document_id) for entry in self.versions)
        return versions + sum((entry.kind, entry.id) == (kind, document_id) for entry in self.statuses)


DOCUMENT_SCHEMA_VERSION = 1
_WHAT_WAS_WRITTEN = "the personas and scenarios were"

document_metadata = sa.MetaData()
document_schemas = sa.Table(
    "game_document_store", document_metadata, sa.Column("schema_version", sa.Integer, primary_key=True, autoincrement=False)
)
document_versions = sa.Table(
    "game_documents",
    document_metadata,
    # The order of creation.
    sa.Column("place", sa.Integer, primary_key=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("id", sa.String(200), nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
    # Canonical JSON: the fields without version and status.
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    # Microseconds since 1970 UTC.
    sa.Column("made_at", sa.BigInteger, nullable=False),
    # If two processes create the same version, one is stored.
    sa.UniqueConstraint("kind", "id", "version"),
)
document_statuses = sa.Table(
    "game_document_statuses",
    document_metadata,
    # The last of several statuses of a version holds.
    sa.Column("place", sa.Integer, primary_key=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("id", sa.String(200), nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("said_at", sa.BigInteger, nullable=False),
)
sa.Index("game_document_statuses_of", document_statuses.c.kind, document_statuses.c.id)
NO_DOCUMENTS = DocumentSnapshot()


def read_documents_if_present(location: str) -> DocumentSnapshot:
    """Return the documents of a response database, without creating anything; none if the file or the tables are missing.

    `location`: as for `ResponseStore`. Raises StoreError if the database exists but cannot be read.
    """
    return read_if_there(location, _read_documents, NO_DOCUMENTS)


def _read_documents(connection: sa.Connection) -> DocumentSnapshot:
    if find_schema_version(connection, document_schemas, DOCUMENT_SCHEMA_VERSION, _WHAT_WAS_WRITTEN) is None:
        return NO_DOCUMENTS
    return read_documents_from(connection)


def read_documents_from(connection: sa.Connection, kind: str | None = None, document_id: str | None = None) -> DocumentSnapshot:
    """Return the documents in the existing tables, of this kind and id if given."""

    def rows(table: sa.Table) -> Any:
        statement = sa.select(*(column for column in table.c if column.name != "place")).order_by(table.c.place)
        for column, value in ((table.c.kind, kind), (table.c.id, document_id)):
            statement = statement if value is None else statement.where(column == value)
        return connection.execute(statement).mappings()

    versions = (
        DocumentVersion(**{**row, "body": json.loads(row["body"]), "made_at": convert_time(row["made_at"])})
        for row in rows(document_versions)
    )
    statuses = (DocumentStatus(**{**row, "said_at": convert_time(row["said_at"])}) for row in rows(document_statuses))
    return DocumentSnapshot(tuple(versions), tuple(statuses))


class GameDocumentStore(DatabaseStore):
    """The documents of a response database, for adding to them. Safe to use from several threads and processes at once."""

    def __init__(self, location: str | Path | ResponseDatabase, clock: Callable[[], datetime] = get_utc_now) -> None:
        """Open the documents and create missing tables, including the tables of votes, which record actions.

        Arguments and errors as for `DatabaseStore`.
        """
        super().__init__(location, clock)
        make_vote_tables(self.database)
        make_tables(self.database, document_schemas, DOCUMENT_SCHEMA_VERSION, _WHAT_WAS_WRITTEN)

    def read_all(self, kind: GameDocumentKind | None = None, document_id: str | None = None) -> DocumentSnapshot:
        """Return all current documents, of a kind or one document if given, from one reading transaction."""
        return self.database.read(lambda connection: read_documents_from(connection, kind, document_id))

    def add(
        self,
        kind: GameDocumentKind,
        document: Mapping[str, Any],
        user: str,
        *,
        revision: int,
        before: Mapping[str, Any] | None = None,
    ) -> None:
        """Store a version with its first status.

        `document`: its fields, with `id`, `version` and `status`; `user`: made it; `revision`: `DocumentSnapshot.revision` when the version
        was decided on; `before`: the previous version. Raises DocumentChanged, and stores nothing, if the document was changed since.
        """
        self._write(
            kind, [document], [], user, (f"{kind}_version", before or {}, document), _has_revision(kind, document, revision)
        )

    def say(
        self, kind: GameDocumentKind, document: Mapping[str, Any], user: str, *, revision: int, before: Mapping[str, Any]
    ) -> None:
        """Store the status of a version; arguments and errors as for `add`."""
        self._write(kind, [], [document], user, (f"{kind}_status", before, document), _has_revision(kind, document, revision))

    def add_all(
        self,
        kind: GameDocumentKind,
        versions: Sequence[Mapping[str, Any]],
        statuses: Sequence[Mapping[str, Any]],
        user: str,
        source: str,
        *,
        snapshot: DocumentSnapshot,
    ) -> dict[str, int]:
        """Store versions with their statuses, and statuses of known versions, all or none.

        `versions`, `statuses`: fields as for `add`; `source`: the file that they come from, for the record; `snapshot`: all documents of
        the kind when these were decided on. Returns how many were added, by the name of one in the record of actions.
        Raises DocumentChanged, and stores nothing, if a document of this kind was changed since.
        """
        numbers = {f"{kind}_version": len(versions), f"{kind}_status": len(statuses)}
        new = {name: number for name, number in numbers.items() if number}
        if new:
            action = (f"{kind}_import", dict[str, Any](), {"file": source, "new": new})
            self._write(
                kind, versions, statuses, user, action, lambda connection: read_documents_from(connection, kind) == snapshot
            )
        return new

    def _write(
        self,
        kind: GameDocumentKind,
        versions: Sequence[Mapping[str, Any]],
        statuses: Sequence[Mapping[str, Any]],
        user: str,
        action: tuple[str, Mapping[str, Any], Mapping[str, Any]],
        is_unchanged: Callable[[sa.Connection], bool],
    ) -> None:
        """Store rows and the action: its name, and what was before and after it."""
        now, (name, before, after) = self.clock(), action

        def work(connection: sa.Connection) -> bool:
            if not is_unchanged(connection):
                ids = list_first_names(list(dict.fromkeys(entry["id"] for entry in (*versions, *statuses))), 3)
                raise DocumentChanged(f"the {kind} {ids} was changed by another request")
            for entry in versions:
                _write_version_row(connection, kind, entry, user, now)
            for entry in (*versions, *statuses):
                _write_status_row(connection, kind, entry, user, now)
            record_action(connection, user, now, name, before, after)
            return True

        def find_committed(connection: sa.Connection) -> bool | None:
            return find_noted_action(connection, user, now, name) == after or None

        # Exclusive, so that no other writer comes between the check and the rows.
        self.database.write(work, exclusive=True, find_committed=find_committed)


def _has_revision(kind: GameDocumentKind, document: Mapping[str, Any], revision: int) -> Callable[[sa.Connection], bool]:
    return lambda connection: read_documents_from(connection).revision(kind, document["id"]) == revision


def _write_version_row(
    connection: sa.Connection, kind: GameDocumentKind, document: Mapping[str, Any], user: str, now: datetime
) -> None:
    body = {name: value for name, value in document.items() if name not in ("version", "status")}
    row = _row(kind, document, user) | {"body": _format_canonical_json(body), "made_at": microseconds(now)}
    connection.execute(sa.insert(document_versions), row)


def _write_status_row(
    connection: sa.Connection, kind: GameDocumentKind, document: Mapping[str, Any], user: str, now: datetime
) -> None:
    row = _row(kind, document, user) | {"status": document["status"], "said_at": microseconds(now)}
    connection.execute(sa.insert(document_statuses), row)


def _row(kind: GameDocumentKind, document: Mapping[str, Any], user: str) -> dict[str, Any]:
    return {"kind": kind, "id": document["id"], "version": document["version"], "who": replace_surrogates(user)}


def _format_canonical_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
