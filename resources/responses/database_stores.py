"""The shared base of stores with tables in the response store's database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa

from resources.responses.database import ResponseDatabase, Result, Work
from resources.responses.engines import PATIENCE_S, parse_database_url


def get_utc_now() -> datetime:
    """Return the current time, the default clock."""
    return datetime.now(UTC)


def read_if_there(location: str | Path, work: Work[Result], otherwise: Result, *, patience_s: float = PATIENCE_S) -> Result:
    """Return the work's result on a database that may not exist, without creating it; `otherwise` if its SQLite file is missing.

    `patience_s`, ConfigError and StoreError: see `ResponseDatabase`.
    """
    url = parse_database_url(location)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).is_file():
        return otherwise
    database = ResponseDatabase(location, prepare=False, patience_s=patience_s)
    try:
        return database.read(work)
    finally:
        database.close()


class DatabaseStore:
    """A store over an open database, or one that it opens and closes itself. Safe to use from several threads and processes at once."""

    def __init__(self, location: str | Path | ResponseDatabase, clock: Callable[[], datetime] = get_utc_now) -> None:
        """Open the database.

        Args:
            location: as for `ResponseStore`, or an open database, which is not closed here.
            clock: returns the current time.

        Raises:
            ConfigError: the URL names no database that can hold responses.
            StoreError: the database cannot be opened, or was written by newer code.
        """
        self._is_own = not isinstance(location, ResponseDatabase)
        self.database = location if isinstance(location, ResponseDatabase) else ResponseDatabase(location)
        self.clock = clock

    def close(self) -> None:
        if self._is_own:
            self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def rows(self, statement: sa.Select[Any]) -> Sequence[Mapping[str, Any]]:
        """Return the rows of a statement, from one reading transaction. Raises StoreError if they cannot be read."""
        return self.database.read(lambda connection: connection.execute(statement).mappings().all())  # type: ignore[arg-type, return-value]
