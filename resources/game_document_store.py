"""The store of personas and scenarios that were made over HTTP, for those who add to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dtef_pipeline.text.well_formed import well_formed
from resources import game_document_tables as tables
from resources.database_stores import DatabaseStore, utc_now
from resources.game_documents import DocumentChanged, GameDocumentKind, StoredDocuments, documents_in
from resources.responses.database import ResponseDatabase
from resources.vote_tables import make_vote_tables, microseconds, note_action, noted_action


class GameDocumentStore(DatabaseStore):
    """The documents of a response database, for those who add to them. Safe to use from several threads and processes at once."""

    def __init__(self, location: str | Path | ResponseDatabase, clock: Callable[[], datetime] = utc_now) -> None:
        """Open the documents, and make what is not there: also the tables of votes, where actions are noted.

        Arguments and errors as those of `DatabaseStore`.
        """
        super().__init__(location, clock)
        make_vote_tables(self.database)
        tables.make_document_tables(self.database)

    def all(self, kind: GameDocumentKind | None = None, document_id: str | None = None) -> StoredDocuments:
        """All there is now, of a kind or of one document where these are given, of one reading transaction."""
        return self.database.read(lambda connection: documents_in(connection, kind, document_id))

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
        self._write(kind, document, who, seen, before, is_version=True)

    def say(
        self, kind: GameDocumentKind, document: Mapping[str, Any], who: str, *, seen: int, before: Mapping[str, Any]
    ) -> None:
        """Store the status of a version; arguments and errors as those of `add`."""
        self._write(kind, document, who, seen, before, is_version=False)

    def add_all(
        self,
        kind: GameDocumentKind,
        versions: Sequence[Mapping[str, Any]],
        statuses: Sequence[Mapping[str, Any]],
        who: str,
        source: str,
        *,
        seen: StoredDocuments,
    ) -> dict[str, int]:
        """Store versions with their statuses, and statuses of versions that are known, all of them or none.

        Args:
            kind: of the documents.
            versions: their fields, with `id`, `version` and `status`.
            statuses: likewise.
            who: adds them.
            source: the file that they come from, for the record.
            seen: all documents of the kind, of when these were decided on.

        Returns how many were added, by what the record of actions calls one of them.
        Raises DocumentChanged, and stores nothing, where something of this kind was stored since.
        """
        now = self.clock()
        numbers = {f"{kind}_version": len(versions), f"{kind}_status": len(statuses)}
        new = {name: number for name, number in numbers.items() if number}
        what, noted = f"{kind}_import", {"file": source, "new": new}

        def work(connection: sa.Connection) -> bool:
            if documents_in(connection, kind) != seen:
                raise DocumentChanged(f"a {kind} has changed meanwhile")
            for one in versions:
                _insert_version(connection, kind, one, who, now)
            for one in (*versions, *statuses):
                _insert_status(connection, kind, one, who, now)
            note_action(connection, who, now, what, {}, noted)
            return True

        def landed(connection: sa.Connection) -> bool | None:
            return noted_action(connection, who, now, what) == noted or None

        if new:
            self.database.write(work, alone=True, landed=landed)
        return new

    def _write(
        self,
        kind: GameDocumentKind,
        document: Mapping[str, Any],
        who: str,
        seen: int,
        before: Mapping[str, Any] | None,
        *,
        is_version: bool,
    ) -> None:
        now = self.clock()
        what = f"{kind}_version" if is_version else f"{kind}_status"

        def work(connection: sa.Connection) -> bool:
            if documents_in(connection).revision(kind, document["id"]) != seen:
                raise DocumentChanged(f"the {kind} {document['id']} has changed meanwhile")
            if is_version:
                _insert_version(connection, kind, document, who, now)
            _insert_status(connection, kind, document, who, now)
            note_action(connection, who, now, what, before or {}, document)
            return True

        def landed(connection: sa.Connection) -> bool | None:
            return noted_action(connection, who, now, what) == document or None

        # Alone: no other writer comes between the look and the rows.
        self.database.write(work, alone=True, landed=landed)


def _insert_version(
    connection: sa.Connection, kind: GameDocumentKind, document: Mapping[str, Any], who: str, now: datetime
) -> None:
    body = {name: value for name, value in document.items() if name not in ("version", "status")}
    row = _row(kind, document, who) | {"body": _canonical_json(body), "made_at": microseconds(now)}
    connection.execute(sa.insert(tables.document_versions), row)


def _insert_status(
    connection: sa.Connection, kind: GameDocumentKind, document: Mapping[str, Any], who: str, now: datetime
) -> None:
    row = _row(kind, document, who) | {"status": document["status"], "said_at": microseconds(now)}
    connection.execute(sa.insert(tables.document_statuses), row)


def _row(kind: GameDocumentKind, document: Mapping[str, Any], who: str) -> dict[str, Any]:
    return {"kind": kind, "id": document["id"], "version": document["version"], "who": well_formed(who)}


def _canonical_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
