"""The store of personas and scenarios that were made over HTTP, for those who add to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dtef_pipeline.text.well_formed import well_formed
from resources.game_documents import DocumentChanged, GameDocumentKind, StoredDocuments, documents_in

if TYPE_CHECKING:
    import sqlalchemy as sa

    from resources.responses.database import ResponseDatabase


def _utc_now() -> datetime:
    return datetime.now(UTC)


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
        return self.database.read(documents_in)

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
            if documents_in(connection).revision(kind, row["id"]) != seen:
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
