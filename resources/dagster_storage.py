"""Dagster's SQLite storage with persistent connections and one claim of a pool slot at a time. Named in `dagster.yaml`.

Dagster's own opens a database and compiles the statement for each of a run's thousands of small statements: with it, `dtef run` of GD4
takes 1.6 times the processor time. The files are the same, so a DAGSTER_HOME can change between the two.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import sqlalchemy as sa

# Dagster's own storage, whose connections are kept open here: `_connect`, `_initdb`, `_initialized_dbs` and `_db_lock` open a file.
# Replaced by: a setting of Dagster that keeps connections.
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage

# How long a connection waits for another one's write. Replaced by: as above.
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage

# Constructor argument of classes named in `dagster.yaml`. Replaced by: the same name in `dagster`.
from dagster._serdes import ConfigurableClassData

# Result of a claim on a pool's slot. Replaced by: the same name in `dagster`.
from dagster._utils.concurrency import ConcurrencyClaimStatus
from filelock import FileLock

_OPEN_FILES = 8
"""Databases kept open: the index, and those of the runs written or read last (each run has a file)."""


class _Engines:
    """The SQLAlchemy engines of recently used SQLite files, each with one open connection and its compiled statements."""

    def __init__(self) -> None:
        self._engines: OrderedDict[str, sa.Engine] = OrderedDict()
        self._lock = Lock()

    def get_engine(self, url: str) -> sa.Engine:
        with self._lock:
            # One connection is kept open; further ones are closed after use.
            engine = self._engines.pop(url, None) or _create_engine(url)
            self._engines[url] = engine
            while len(self._engines) > _OPEN_FILES:
                self._engines.popitem(last=False)[1].dispose()
            return engine

    def dispose(self) -> None:
        with self._lock:
            for engine in self._engines.values():
                engine.dispose()
            self._engines.clear()


def _create_engine(url: str) -> sa.Engine:
    engine = sa.create_engine(url, connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS}, pool_size=1)

    @sa.event.listens_for(engine, "connect")
    def flush_at_checkpoints(connection: Any, _: Any) -> None:
        # A run makes about a thousand commits. With a flush to the disk in each, it spends more time waiting for the disk than computing.
        # Without flushes, a power cut can lose the last events of a run but breaks no file, and a killed process loses nothing:
        # https://sqlite.org/wal.html.
        connection.execute("PRAGMA synchronous=NORMAL")

    return engine


class EventLog(SqliteEventLogStorage):
    """The event log: an index file and one file per run."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines = _Engines()
        self._claiming = FileLock(Path(base_dir, "claims.lock"))
        super().__init__(base_dir, inst_data)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[sa.Connection]:
        with self._db_lock:
            engine = self._engines.get_engine(self.conn_string_for_shard(shard))
            if shard not in self._initialized_dbs:
                self._initdb(engine)
                self._initialized_dbs.add(shard)
            with engine.begin() as connection:
                yield connection

    def claim_concurrency_slot(
        self, concurrency_key: str, run_id: str, step_key: str, priority: int | None = None
    ) -> ConcurrencyClaimStatus:
        """Claim a slot, one at a time over all processes: Dagster needs row locks, which SQLite lacks, and gives one slot to two runs."""
        with self._claiming:
            return super().claim_concurrency_slot(concurrency_key, run_id, step_key, priority)

    def wipe(self) -> None:
        super().wipe()
        self._engines.dispose()  # their files are gone

    def dispose(self) -> None:
        super().dispose()
        self._engines.dispose()


class RunStorage(SqliteRunStorage):
    """Runs, their tags and backfills, in one file."""

    def __init__(self, conn_string: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines = _Engines()
        super().__init__(conn_string, inst_data)

    @contextmanager
    def connect(self) -> Iterator[sa.Connection]:
        with self._engines.get_engine(self._conn_string).begin() as connection:
            yield connection

    def dispose(self) -> None:
        super().dispose()
        self._engines.dispose()


class SqliteStorage(DagsterSqliteStorage):
    """All of Dagster's storage, in the files of its default storage."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(base_dir, inst_data)
        self._run_storage = RunStorage.from_local(os.path.join(base_dir, "history", ""))  # noqa: PTH118
        self._event_log_storage = EventLog(os.path.join(base_dir, "history", "runs", ""))  # noqa: PTH118

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> SqliteStorage:
        return cls(inst_data=inst_data, **config_value)
