"""Whether this process alone serves a response store: what a server knows in memory, such as logins, another one does not know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from filelock import FileLock, Timeout

from dtef_pipeline.errors import StoreError
from resources.responses.engines import PATIENCE_S, database_url, engine_of

# Any number that no other program on the same PostgreSQL database is likely to lock.
_SERVER_LOCK = 0x64746170


@contextmanager
def sole_server(location: str | Path) -> Iterator[bool]:
    """Whether no other process serves the store at `location` (a file or URL). Those that start during the block learn that this one does.

    The lock ends with the block, and with the process however that ends. Where locks cannot be had the answer is True. Raises StoreError.
    """
    url = database_url(location)
    with (
        _lock_file(Path(str(url.database)).resolve()) if url.get_backend_name() == "sqlite" else _lock_database(url) as is_sole
    ):
        yield is_sole


@contextmanager
def _lock_file(store: Path) -> Iterator[bool]:
    lock = FileLock(store.with_name(f".{store.name}.server.lock"), timeout=0, mode=0o600)
    try:
        lock.acquire()
    except (Timeout, OSError, NotImplementedError) as error:
        # A folder that is read-only, or a file system without locks, says nothing of other servers.
        yield not isinstance(error, Timeout)
        return
    try:
        yield True
    finally:
        lock.release()


@contextmanager
def _lock_database(url: sa.URL) -> Iterator[bool]:
    """The lock is that of a connection, which the server ends when its client is gone."""
    engine = engine_of(url, None, PATIENCE_S).execution_options(isolation_level="AUTOCOMMIT")
    try:
        try:
            connection = engine.connect()
            is_sole = bool(connection.execute(sa.select(sa.func.pg_try_advisory_lock(_SERVER_LOCK))).scalar_one())
        except sa.exc.SQLAlchemyError as error:
            raise StoreError(f"cannot lock the response store {url!r}: {getattr(error, 'orig', None) or error}") from None
        with connection:
            yield is_sole
    finally:
        engine.dispose()
