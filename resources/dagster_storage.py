"""Dagster's SQLite storage with its connections kept open.

Dagster's own opens a database, and compiles every statement anew, for each of the thousands of small statements of a run: most of what a
run of 50 partitions took beyond its work. The files are the same, so a DAGSTER_HOME can change between the two. Named in `dagster.yaml`.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

import sqlalchemy as sa
from alembic.config import Config
from alembic.script import ScriptDirectory
from dagster import DagsterEventType, EventLogEntry

# Dagster's own storage, whose connections are kept open here: `_connect`, `_initdb`, `_initialized_dbs` and `_db_lock` open a file,
# `_store_asset_event` and `_store_asset_event_tags` write what belongs to an event, and INDEX_SHARD_NAME is the file of all runs.
# Replaced by: a setting of Dagster that keeps connections.
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME, SqliteEventLogStorage
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage

# Where Dagster's migrations lie, which it reads, some ninety Python files, at each opening of each database: here once per process.
# Replaced by: a Dagster that keeps what it has read.
from dagster._core.storage.sql import ALEMBIC_SCRIPTS_LOCATION

# How long a connection waits for another one's write. Replaced by: as above.
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage

# What a class named in `dagster.yaml` is constructed with. Replaced by: the same name in `dagster`.
from dagster._serdes import ConfigurableClassData

# What the claim of a pool's slot comes to. Replaced by: the same name in `dagster`.
from dagster._utils.concurrency import ConcurrencyClaimStatus
from filelock import FileLock

_OPEN_FILES = 8
"""Databases kept open: the index, and those of the runs written or read last (each run has a file)."""
_BATCHED = {
    DagsterEventType.ASSET_MATERIALIZATION,
    DagsterEventType.ASSET_OBSERVATION,
    DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
}


_read_scripts = ScriptDirectory.from_config
_migrations: dict[str, ScriptDirectory] = {}


def _scripts(config: Config) -> ScriptDirectory:
    place = config.get_main_option("script_location")
    if place != ALEMBIC_SCRIPTS_LOCATION:
        return _read_scripts(config)
    if place not in _migrations:
        _migrations[place] = _read_scripts(config)
    return _migrations[place]


ScriptDirectory.from_config = staticmethod(_scripts)  # type: ignore[method-assign]  # there is no setting for it


def last_of_each(events: Sequence[EventLogEntry]) -> list[int]:
    """Places of the last event of each kind of each asset, rising: what stands in the assets' summary rows when each is stored by itself."""
    return sorted(
        {(one.dagster_event_type, one.get_dagster_event().asset_key): place for place, one in enumerate(events)}.values()
    )


class _Engines:
    """SQLAlchemy engines of SQLite files, the last used ones: each with one open connection, and the statements it has compiled."""

    def __init__(self) -> None:
        self._engines: OrderedDict[str, tuple[tuple[int, int], sa.Engine]] = OrderedDict()
        self._lock = Lock()

    def of(self, url: str) -> sa.Engine:
        path = url.removeprefix("sqlite:///")
        with self._lock:
            found, known = _identity(path), self._engines.pop(path, None)
            # A file that was removed, or put there by someone else, is not the one that is open.
            if known is None or known[0] != found:
                if known is not None:
                    known[1].dispose()
                known = (found, _engine(url))
            self._engines[path] = known
            while len(self._engines) > _OPEN_FILES:
                self._engines.popitem(last=False)[1][1].dispose()
            return known[1]

    def dispose(self) -> None:
        with self._lock:
            for _, engine in self._engines.values():
                engine.dispose()
            self._engines.clear()


def _identity(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - asked for each of thousands of statements; a Path takes longer than the look
    except FileNotFoundError:
        Path(path).touch()  # an empty file is a new database: so it has an identity before it is first opened
        found = Path(path).stat()
    return found.st_dev, found.st_ino


def _placed(path: Path, content: bytes) -> bool:
    """Whether the file is now there with this content; False: another process was first, or the file system has no hard links."""
    temporary = path.with_name(f".{uuid.uuid4().hex}")
    temporary.write_bytes(content)
    try:
        path.hardlink_to(temporary)
    except OSError:
        return False
    finally:
        temporary.unlink()
    return True


def _engine(url: str) -> sa.Engine:
    """One connection is kept; what is needed beside it for a moment is closed again."""
    return sa.create_engine(url, connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS}, pool_size=1)


def _key(inserted: sa.CursorResult[Any]) -> int:
    key = inserted.inserted_primary_key
    assert key is not None, "SQLite names the key of every row it is given"
    return int(key[0])


class EventLog(SqliteEventLogStorage):
    """The event log: an index file and one file per run."""

    _empty: ClassVar[bytes | None] = None
    """The file of a run that holds no event yet. Dagster takes a tenth of a second to make one; the next ones are copies."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines = _Engines()
        self._tables: set[str] = set()
        self._claiming = FileLock(Path(base_dir, "claims.lock"))
        super().__init__(base_dir, inst_data)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[sa.Connection]:
        with self._db_lock:
            engine = None if shard in self._initialized_dbs else self._prepared(shard)
            engine = engine or self._engines.of(self.conn_string_for_shard(shard))
            with engine.begin() as connection:
                yield connection

    def _prepared(self, shard: str) -> sa.Engine:
        """With the tables of the event log."""
        path = Path(self.path_for_shard(shard))
        is_new_run = shard != INDEX_SHARD_NAME and not path.exists()
        copied = is_new_run and self._empty is not None and _placed(path, self._empty)
        engine = self._engines.of(self.conn_string_for_shard(shard))
        if not copied:
            self._initdb(engine)
            if is_new_run:
                with engine.connect() as connection:
                    held = connection.connection.driver_connection
                    assert isinstance(held, sqlite3.Connection)
                    EventLog._empty = held.serialize()
        self._initialized_dbs.add(shard)
        return engine

    def has_table(self, table_name: str) -> bool:
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)  # tables are added by migrations, and never taken away
        return table_name in self._tables

    def claim_concurrency_slot(
        self, concurrency_key: str, run_id: str, step_key: str, priority: int | None = None
    ) -> ConcurrencyClaimStatus:
        """One claim at a time, over all processes: Dagster relies on locked rows, which SQLite does not have, and gives one slot to two runs."""
        with self._claiming:
            return super().claim_concurrency_slot(concurrency_key, run_id, step_key, priority)

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        """As storing each, in two transactions; in an asset's summary row the last event of the asset stands, as it would."""
        together = [event for event in events if event.dagster_event_type in _BATCHED]
        for event in events:
            if event.dagster_event_type not in _BATCHED:
                self.store_event(event)
        if not together:
            return
        by_run: dict[str, list[sa.Insert]] = {}
        inserts = [self.prepare_insert_event(event) for event in together]
        for event, insert in zip(together, inserts, strict=True):
            by_run.setdefault(event.run_id, []).append(insert)
        for run_id, of_run in by_run.items():
            with self.run_connection(run_id) as connection:
                for insert in of_run:
                    connection.execute(insert)
        with self.index_transaction() as connection:
            ids = [_key(connection.execute(insert)) for insert in inserts]
            self._store_asset_event_tags(connection, together, ids)
            for place in last_of_each(together):
                self._store_asset_event(connection, together[place], ids[place])

    def dispose(self) -> None:
        super().dispose()
        self._engines.dispose()


class RunStorage(SqliteRunStorage):
    """Runs, their tags and backfills: one file."""

    def __init__(self, conn_string: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines = _Engines()
        super().__init__(conn_string, inst_data)

    @contextmanager
    def connect(self) -> Iterator[sa.Connection]:
        with self._engines.of(self._conn_string).begin() as connection:
            yield connection

    def dispose(self) -> None:
        super().dispose()
        self._engines.dispose()


class SqliteStorage(DagsterSqliteStorage):
    """All of Dagster's storage, in the files of its default one."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(base_dir, inst_data)
        self._run_storage = RunStorage.from_local(os.path.join(base_dir, "history", ""))  # noqa: PTH118
        self._event_log_storage = EventLog(os.path.join(base_dir, "history", "runs", ""))  # noqa: PTH118

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> SqliteStorage:
        return cls(inst_data=inst_data, **config_value)
