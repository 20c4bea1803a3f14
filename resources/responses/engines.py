"""Opening of the response store's database: an SQLite file, or PostgreSQL by URL."""

from __future__ import annotations

import sqlite3
import time
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dtef_pipeline.documents import explain_missing_folder
from dtef_pipeline.errors import ConfigError, StoreError
from dtef_pipeline.text.extras import describe_installation

PATIENCE_S = 60.0
"""Seconds to wait for another writer, or for a PostgreSQL server that restarts."""
RETRY_S = 0.25
_PLACE_S = 30.0
"""Seconds that a thread waits for a connection that other threads use."""


def parse_database_url(location: str | Path) -> sa.URL:
    """Return the database of a location. `postgresql://` means the installed driver, psycopg 3.

    Raises ConfigError for a URL of no database that can hold responses.
    """
    if isinstance(location, Path) or "://" not in location:
        return sa.URL.create("sqlite", database=str(Path(location).expanduser()))
    try:
        url = sa.make_url(location)
    except (sa.exc.ArgumentError, ValueError):
        # The URL is not repeated: it may hold a password.
        raise ConfigError(
            "the response store's URL is not readable; write a file, sqlite:///FILE or postgresql://..."
        ) from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise ConfigError(f"response store: no support for {url.drivername!r}; allowed: sqlite, postgresql+psycopg")
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise ConfigError("response store: an SQLite database in memory forgets its responses; name a file")
    return url


def create_engine_for(url: sa.URL, connects_within: int | None, patience_s: float) -> sa.Engine:
    """Return an engine. `connects_within`: seconds that a PostgreSQL server may take to answer, or None for the URL's or driver's.

    `patience_s`: seconds to wait for another SQLite writer, or for one of this process's connections.
    """
    if url.get_backend_name() != "sqlite":
        arguments: dict[str, Any] = {}
        if connects_within:
            # The same timeout detects a lost server on an existing connection.
            arguments = {"connect_timeout": connects_within, "tcp_user_timeout": connects_within * 1000}
        try:
            return sa.create_engine(url, pool_pre_ping=True, pool_timeout=min(patience_s, _PLACE_S), connect_args=arguments)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"response store: {url.drivername} needs the package {error.name!r}; {describe_installation('postgres')}"
            ) from None
    path = Path(str(url.database))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot make the folder of the response store {path}: {explain_missing_folder(path.parent, error)}; "
            "choose another place with DTEF_RESPONSES"
        ) from error
    if path.is_dir():
        raise StoreError(f"the response store {path} is a folder; name a file in DTEF_RESPONSES")
    engine = sa.create_engine(url, connect_args={"timeout": patience_s}, pool_timeout=min(patience_s, _PLACE_S))
    sa.event.listen(engine, "connect", partial(_prepare_sqlite, patience_s))
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(patience_s: float, connection: Any, _: object) -> None:
    """Allow readers beside one writer (WAL), wait for other writers, and make commits survive a power cut (FULL)."""
    # Python's module would begin transactions at other times; `_begin_sqlite` begins them.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {int(patience_s * 1000)}")
    if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        _switch_to_wal(cursor)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def _switch_to_wal(cursor: sqlite3.Cursor) -> None:
    """Retry, as SQLite ignores `busy_timeout` here: another run that just created the store may be writing its tables."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(RETRY_S)


def _begin_sqlite(connection: sa.Connection) -> None:
    """Take a writer's lock at once: after reading first, it could not get it after another's commit."""
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("writes") else "BEGIN")
