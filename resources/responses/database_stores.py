"""What stores share that keep their tables in the database of the response store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa

from resources.responses.database import ResponseDatabase, Returned, Work
from resources.responses.engines import PATIENCE_S, parse_database_url


def get_utc_now() -> datetime:
    """The time of now, where no other clock is given."""
    return datetime.now(UTC)


def read_if_there(
    location: str | Path, work: Work[Returned], otherwise: Returned, *, patience_s: float = PATIENCE_S
) -> Returned:
    """What the work returns of a database that may not be there: nothing is made of it. `otherwise`: of an SQLite file that is missing.

    `patience_s`: as of `ResponseDatabase`. Raises ConfigError and StoreError as `ResponseDatabase`.
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
    """A store over a database that is open, or that it opens and closes itself. Safe to use from several threads and processes at once."""

    def __init__(self, location: str | Path | ResponseDatabase, clock: Callable[[], datetime] = get_utc_now) -> None:
        """Open the database.

        Args:
            location: as `ResponseStore` takes it, or a database that is open; that one is not closed here.
            clock: says when something happens.

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
        """The rows of a statement, of one reading transaction. Raises StoreError when they cannot be read."""
        return self.database.read(lambda connection: connection.execute(statement).mappings().all())  # type: ignore[arg-type, return-value]
