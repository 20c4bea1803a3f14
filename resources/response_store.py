"""Every answer that was paid for, kept under its request key: append-only, shared by threads, processes and machines.

SQLAlchemy Core, so the embedded SQLite default and PostgreSQL by URL are the same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.prediction.request import Response

SCHEMA_VERSION = 1

# Both engines take this many bound parameters in one statement (SQLite 32,766, PostgreSQL 65,535).
_CHUNK = 5_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOCK_PATIENCE_MS = 60_000

_metadata = sa.MetaData()
_versions = sa.Table("response_store", _metadata, sa.Column("schema_version", sa.Integer, primary_key=True))
_responses = sa.Table(
    "responses",
    _metadata,
    sa.Column("request_key", sa.String(32), primary_key=True),
    sa.Column("prompt_id", sa.String(32), nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("model_variant", sa.Text, nullable=False),
    sa.Column("draw", sa.Integer, nullable=False),
    sa.Column("snapshot", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("finish_reason", sa.Text),
    sa.Column("served_model", sa.Text),
    sa.Column("fingerprint", sa.Text),
    sa.Column("prompt_tokens", sa.Integer),
    sa.Column("completion_tokens", sa.Integer),
    sa.Column("cost_usd", sa.Double),
    sa.Column("latency_s", sa.Double, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    # Microseconds since 1970 UTC: exact, the same in every engine, and read without parsing.
    sa.Column("answered_at", sa.BigInteger, nullable=False),
    sa.Column("reasoning", sa.Text),
)

RESPONSES = pa.schema(
    [
        ("request_key", pa.string()),
        ("prompt_id", pa.string()),
        ("model", pa.string()),
        ("model_variant", pa.string()),
        ("draw", pa.int32()),
        ("snapshot", pa.string()),
        ("text", pa.string()),
        ("finish_reason", pa.string()),
        ("served_model", pa.string()),
        ("fingerprint", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("completion_tokens", pa.int32()),
        ("cost_usd", pa.float64()),
        ("latency_s", pa.float64()),
        ("attempts", pa.int32()),
        ("answered_at", pa.timestamp("us", tz="UTC")),
        ("reasoning", pa.string()),
    ]
)
"""The columns of `ResponseStore.responses`: the fields of `Response`."""


class ResponseStore:
    """The answers of every run so far. Safe to use from several threads and processes at once."""

    def __init__(self, location: str | Path) -> None:
        """Open the store, and make it (with its parent folders) if it is not there.

        Args:
            location: a database URL (`sqlite:///...`, `postgresql+psycopg://...`), or the path of an SQLite file.

        Raises:
            ConfigError: the URL names no database that can hold responses.
            WarehouseError: the database cannot be opened, or was written by newer code.
        """
        self._engine = _engine(_url(location))
        self.name = self._engine.url.render_as_string(hide_password=True)
        insert = postgresql.insert if self._engine.dialect.name == "postgresql" else sqlite.insert
        self._insert = insert(_responses).on_conflict_do_nothing(index_elements=["request_key"])
        with self._reported("open"):
            _create(self._engine)
        self._check_version()

    def add(self, responses: Iterable[Response]) -> None:
        """Commit responses, all or none. An answer already there stays as it is."""
        rows = [_row(response) for response in responses]
        if not rows:
            return
        with self._reported("write to"), self._engine.begin() as connection:
            connection.execute(self._insert, rows)

    def known(self, keys: Iterable[str]) -> set[str]:
        """Those of the request keys that have an answer."""
        column = _responses.c.request_key
        return {row[0] for rows in self._select(sa.select(column), keys) for row in rows}

    def responses(self, keys: Iterable[str]) -> pa.Table:
        """The answers to the request keys, in the order of the keys; keys without an answer have no row."""
        wanted = list(dict.fromkeys(keys))
        chunks = [_columns(rows) for rows in self._select(sa.select(_responses), wanted) if rows]
        found = pa.Table.from_batches(chunks, schema=RESPONSES).combine_chunks()
        place = {key: row for row, key in enumerate(found["request_key"].to_pylist())}
        return found.take(pa.array([place[key] for key in wanted if key in place], pa.int64()))

    def count(self) -> int:
        """Number of answers in the store."""
        with self._reported("read"), self._engine.connect() as connection:
            return int(connection.execute(sa.select(sa.func.count()).select_from(_responses)).scalar_one())

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _select(self, columns: sa.Select[Any], keys: Iterable[str]) -> Iterator[Sequence[Sequence[Any]]]:
        statement = columns.where(_responses.c.request_key.in_(sa.bindparam("keys", expanding=True)))
        wanted = list(dict.fromkeys(keys))
        with self._reported("read"), self._engine.connect() as connection:
            for start in range(0, len(wanted), _CHUNK):
                yield connection.execute(statement, {"keys": wanted[start : start + _CHUNK]}).all()

    def _check_version(self) -> None:
        with self._reported("open"), self._engine.begin() as connection:
            insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
            found = connection.execute(sa.select(sa.func.max(_versions.c.schema_version))).scalar()
            if found is None:
                connection.execute(insert(_versions).values(schema_version=SCHEMA_VERSION).on_conflict_do_nothing())
        if found is not None and found > SCHEMA_VERSION:
            raise WarehouseError(
                f"response store {self.name}: written by a newer dtef-pipeline (schema version {found}; this one knows "
                f"up to {SCHEMA_VERSION}); upgrade dtef-pipeline, or choose another store with DTEF_RESPONSES"
            )

    @contextmanager
    def _reported(self, action: str) -> Iterator[None]:
        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error
            raise WarehouseError(f"cannot {action} the response store {self.name}: {cause}") from None


def _url(location: str | Path) -> sa.URL:
    """The database a location names. `postgresql://` means the driver that is installed, psycopg 3."""
    if isinstance(location, Path) or "://" not in location:
        return sa.URL.create("sqlite", database=str(Path(location).expanduser()))
    try:
        url = sa.make_url(location)
    except (sa.exc.ArgumentError, ValueError):
        # The URL is not repeated: it may hold a password.
        raise ConfigError(
            "the response store's URL is not readable; expected a file, sqlite:///FILE or postgresql://..."
        ) from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise ConfigError(f"response store: no support for {url.drivername!r}; allowed: sqlite, postgresql+psycopg")
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise ConfigError("response store: an SQLite database in memory forgets its answers; name a file")
    return url


def _engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() != "sqlite":
        try:
            return sa.create_engine(url, pool_pre_ping=True)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"response store: {url.drivername} needs the package {error.name!r}; pip install dtef-pipeline[postgres]"
            ) from None
    path = Path(str(url.database))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WarehouseError(f"cannot make the folder of the response store {path}: {error}") from error
    engine = sa.create_engine(url, connect_args={"timeout": _LOCK_PATIENCE_MS / 1000})
    sa.event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _: object) -> None:
    """Readers beside one writer (WAL), patience with the other writers, and a commit that survives a power cut (FULL)."""
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {_LOCK_PATIENCE_MS}")
    if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def _create(engine: sa.Engine) -> None:
    """Make the tables; two processes may do so at once, and the second then finds them made by the first."""
    for table in _metadata.sorted_tables:
        try:
            with engine.begin() as connection:
                connection.execute(CreateTable(table, if_not_exists=True))
        except (sa.exc.IntegrityError, sa.exc.ProgrammingError):
            if not sa.inspect(engine).has_table(table.name):
                raise


def _row(response: Response) -> dict[str, Any]:
    row = {field.name: getattr(response, field.name) for field in fields(response)}
    row["answered_at"] = (response.answered_at - _EPOCH) // timedelta(microseconds=1)
    return {name: _storable(value) if isinstance(value, str) else value for name, value in row.items()}


def _storable(text: str) -> str:
    """The text with what no database takes, NUL and half surrogate pairs, replaced by U+FFFD."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _columns(rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [
        pa.array(column, pa.int64()).cast(field.type) if pa.types.is_timestamp(field.type) else pa.array(column, field.type)
        for column, field in zip(columns, RESPONSES, strict=True)
    ]
    return pa.record_batch(arrays, schema=RESPONSES)
