"""The response store's database: its tables, opening, upgrades and transactions.

SQLAlchemy Core, so that the default SQLite and PostgreSQL by URL share the code.
"""

from __future__ import annotations

import errno
import json
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, count
from math import ceil
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, Self, TypeVar, get_args, get_type_hints

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from dtef_pipeline.asking.request import Hash, Response
from dtef_pipeline.errors import NewerSchema, StoreError
from dtef_pipeline.text.number_words import format_count
from resources.responses.engines import PATIENCE_S, RETRY_S, create_engine_for, parse_database_url


def find_schema_version(connection: sa.Connection, versions: sa.Table, newest: int, label: str) -> int | None:
    """Return the schema version, or None if the tables are missing. `label`: begins the error message, such as `the votes were`.

    Raises NewerSchema if newer code wrote them: a version above `newest`.
    """
    if not sa.inspect(connection).has_table(versions.name):
        return None
    version: int | None = connection.scalar(sa.select(sa.func.max(versions.c.schema_version)))
    if version is not None and version > newest:
        raise NewerSchema(
            f"{label} written by a newer dtef-pipeline (schema version {version}; this one knows up to {newest}); "
            "upgrade dtef-pipeline, or choose another store with DTEF_RESPONSES"
        )
    return version


def refuse_earlier_schema(version: int | None, newest: int, label: str, advice: str) -> None:
    """Raise StoreError for a schema version below `newest`. `label`: as for `find_schema_version`; `advice`: how to go on."""
    if version is not None and version < newest:
        known = f"schema version {version}; this one knows {newest}"
        raise StoreError(f"{label} written by an earlier dtef-pipeline ({known}): {advice}")


def find_missing_columns(connection: sa.Connection, table: sa.Table) -> list[sa.Column[Any]]:
    """Return the columns that the table of an older database lacks."""
    names = {column["name"] for column in sa.inspect(connection).get_columns(table.name)}
    return [column for column in table.columns if column.name not in names]


def add_missing_columns(connection: sa.Connection, table: sa.Table) -> None:
    """Add missing columns, which `create_all` does not for an existing table."""
    for column in find_missing_columns(connection, table):
        ddl = sa.schema.CreateColumn(column).compile(dialect=connection.dialect)
        connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {ddl}")


def make_tables(
    database: ResponseDatabase, versions: sa.Table, newest: int, label: str, *, advice: str = "", extra: sa.Table | None = None
) -> None:
    """Create missing tables beside `versions`, with their version.

    Args:
        database: of the response store.
        versions, newest, label: as for `find_schema_version`.
        advice: as for `refuse_earlier_schema`.
        extra: another module's table, created if missing.

    Raises NewerSchema and StoreError if code of another version wrote them.
    """

    def lookup(connection: sa.Connection) -> int | None:
        version = find_schema_version(connection, versions, newest, label)
        refuse_earlier_schema(version, newest, label, advice)
        return version

    def make(connection: sa.Connection) -> None:
        # A second process waits for the first and finds its tables.
        if lookup(connection) is None:
            versions.metadata.create_all(connection)
            if extra is not None:
                extra.create(connection, checkfirst=True)
            connection.execute(sa.insert(versions).values(schema_version=newest))

    if database.read(lookup) is None:
        database.write(make, exclusive=True)


_TYPES: Mapping[Any, tuple[pa.DataType, sa.types.TypeEngine[Any]]] = {
    Hash: (pa.string(), sa.String(32)),
    str: (pa.string(), sa.Text()),
    int: (pa.int32(), sa.Integer()),
    float: (pa.float64(), sa.Double()),
    # Stored as microseconds since 1970 UTC: exact, the same in every engine, and read without parsing.
    datetime: (pa.timestamp("us", tz="UTC"), sa.BigInteger()),
}


class ResponseColumn(NamedTuple):
    """A field of `Response`."""

    name: str
    type: Any
    """A key of the type table above: the annotation without None."""
    nullable: bool
    default: str | None
    """Value for an earlier software version that does not write the column; None: no default."""

    @property
    def arrow(self) -> pa.Field:
        return pa.field(self.name, _TYPES[self.type][0])

    def sql(self) -> sa.Column[Any]:
        key = self.name == "request_key"
        return sa.Column(self.name, _TYPES[self.type][1], primary_key=key, nullable=self.nullable, server_default=self.default)


def _build_columns() -> Iterator[ResponseColumn]:
    annotations = get_type_hints(Response, include_extras=True)
    for field in fields(Response):
        annotation = annotations[field.name]
        nullable = NoneType in get_args(annotation)
        kind = next(part for part in get_args(annotation) if part is not NoneType) if nullable else annotation
        yield ResponseColumn(field.name, kind, nullable, None if field.default is MISSING else field.default)


RESPONSE_COLUMNS = tuple(_build_columns())
"""Columns of responses, in the order of the fields."""


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SCHEMA_VERSION = 2
"""1: the first version. 2: responses have `fingerprint` and `reasoning`; claims. Later columns have a default or may be null under the same
version, so that older code can share the database."""

_LOOK_S = 5
_WRITERS_AT_ONCE = 5
"""Maximum number of writers of one process on PostgreSQL: readers get one of the 15 connections even while many writers wait. SQLite has one
writer."""
_CHUNK = 5_000
_CANNOT_OPEN = "unable to open database file"

# An arbitrary number that no other program on the same PostgreSQL database is likely to lock.
_WRITERS_LOCK = 0x64746566

metadata = sa.MetaData()
versions = sa.Table("response_store", metadata, sa.Column("schema_version", sa.Integer, primary_key=True))
responses = sa.Table(
    "responses",
    metadata,
    *(column.sql() for column in RESPONSE_COLUMNS),
    # The run that stored the response; null if the response is from a file or an earlier version.
    sa.Column("run_id", sa.String(32)),
)
# Claims on requests in progress, deleted when the responses are stored. `resources/responses/claims.py` has the rules.
claimants = sa.Table(
    "claimants",
    metadata,
    sa.Column("owner", sa.String(32), primary_key=True),
    sa.Column("machine", sa.Text, nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("started", sa.Text),
    # Microseconds since 1970 UTC.
    sa.Column("seen_at", sa.BigInteger, nullable=False),
)
claims = sa.Table(
    "claims",
    metadata,
    sa.Column("request_key", sa.String(32), primary_key=True),
    sa.Column("owner", sa.String(32), nullable=False),
)

# Removed responses, which will be requested again; their cost was spent.
forgotten_responses = sa.Table(
    "forgotten_responses",
    metadata,
    *(
        sa.Column(column.name, column.type, primary_key=column.primary_key, nullable=column.nullable)
        for column in responses.columns
    ),
    # Microseconds since 1970 UTC: the same request may be forgotten again.
    sa.Column("forgotten_at", sa.BigInteger, primary_key=True),
)

# Calls without a response that the provider may have billed. Once the request has a response, its cost includes them.
lost_attempts = sa.Table(
    "lost_attempts",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("request_key", sa.String(32), nullable=False, index=True),
    sa.Column("role", sa.Text, nullable=False),
    # Microseconds since 1970 UTC.
    sa.Column("ended_at", sa.BigInteger, nullable=False),
    sa.Column("cost_usd", sa.Double),
    sa.Column("most_usd", sa.Double),
    # The evaluation whose run made the call; null: none.
    sa.Column("queue_id", sa.String(32), index=True),
)

# The runs that `run_id` of a response refers to.
asking_runs = sa.Table(
    "asking_runs",
    metadata,
    sa.Column("run_id", sa.String(32), primary_key=True),
    sa.Column("code_version", sa.Text, nullable=False),
    sa.Column("config_hash", sa.String(32), nullable=False),
)
# The evaluation whose run requested a response. Without a row: none, or the response is older than this table.
evaluation_responses = sa.Table(
    "evaluation_responses",
    metadata,
    sa.Column("request_key", sa.String(32), primary_key=True),
    sa.Column("queue_id", sa.String(32), nullable=False, index=True),
)

Result = TypeVar("Result")
"""The result of work on the store."""
Work = Callable[[sa.Connection], Result]
"""The statements of one transaction, which may be repeated from the start, so they change nothing but the database."""


class ResponseDatabase:
    """An open response database. Safe to use from several threads and processes at once."""

    def __init__(self, location: str | Path, *, prepare: bool = True, patience_s: float = PATIENCE_S) -> None:
        """Open the database and create what is missing.

        `prepare`: False to only look at a PostgreSQL database, without long waits: nothing is created. `patience_s`: how long to wait for
        another writer, or an unreachable PostgreSQL server.

        Raises:
            ConfigError: the URL names no database that can hold responses.
            StoreError: the database cannot be opened, or was written by newer code.
        """
        connects_within = ceil(patience_s) if patience_s < PATIENCE_S else None
        self._patience_s = patience_s
        self._engine = create_engine_for(parse_database_url(location), connects_within if prepare else _LOOK_S, patience_s)
        # For a store that is dropped without being closed, as by Dagster, or that failed to open.
        weakref.finalize(self, self._engine.dispose)
        self.name = self._engine.url.render_as_string(hide_password=True)
        self.is_postgresql = self._engine.dialect.name == "postgresql"
        self._writers = threading.BoundedSemaphore(_WRITERS_AT_ONCE if self.is_postgresql else 1)
        try:
            if prepare:
                self._prepare()
        except sa.exc.SQLAlchemyError as error:
            raise self._build_store_error("open", error) from None

    def schema_version(self) -> int | None:
        """Return the schema version, or None without a store. Raises StoreError if newer code wrote it."""
        try:
            return self._read_once(self._read_version)
        except sa.exc.SQLAlchemyError as error:
            raise self._build_store_error("open", error) from None

    def read(self, work: Work[Result]) -> Result:
        """Return the work's result, in one reading transaction."""
        return self._run_patiently("read", lambda: self._read_once(work))

    def write(
        self, work: Work[Result], *, exclusive: bool = False, find_committed: Work[Result | None] | None = None
    ) -> Result:
        """Return the work's result, in one writing transaction, committed completely or not at all.

        `exclusive`: without any other writer (in SQLite always). `find_committed`: called before a retry, as the previous commit may have
        succeeded unconfirmed; returns the work's result then, or None if it is not stored.
        """
        tries = count()

        def attempt() -> Result:
            is_first = next(tries) == 0
            return self._write_once(
                work if is_first or find_committed is None else partial(_run_unless_committed, find_committed, work), exclusive
            )

        return self._run_patiently("write to", attempt)

    def query(self, statement: sa.Executable, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Return the rows of a statement, from one reading transaction, as the driver's tuples: no column of responses needs conversion."""

        def fetch(connection: sa.Connection) -> list[tuple[Any, ...]]:
            with connection.execute(statement, parameters or {}) as result:
                assert result.cursor is not None
                return list(result.cursor.fetchall())

        return self.read(fetch)

    def query_chunks(self, statement: sa.Executable, keys: Iterable[str]) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of a statement with `among`, for chunks of these request keys; each chunk is its own transaction."""
        for chunk in chunks(list(dict.fromkeys(keys))):
            yield self.query(statement, self.keys(chunk))

    def query_keys(self, statement: sa.Executable, keys: Iterable[str]) -> Iterator[tuple[Any, ...]]:
        """Yield each row of `query_chunks`."""
        return chain.from_iterable(self.query_chunks(statement, keys))

    def insert(self, table: sa.Table) -> Any:
        """Return the engine's insert statement, which supports ON CONFLICT."""
        return postgresql.insert(table) if self.is_postgresql else sqlite.insert(table)

    @property
    def key_query(self) -> sa.Select[tuple[str]]:
        """A select of the request keys of `keys(...)`, passed as one parameter. Thousands of parameters are slow to compile."""
        if self.is_postgresql:
            return sa.select(sa.func.unnest(sa.bindparam("keys", type_=postgresql.ARRAY(sa.Text))))
        return sa.select(sa.func.json_each(sa.bindparam("keys")).table_valued("value").c.value)

    def among(self, column: sa.Column[Any]) -> sa.ColumnElement[bool]:
        """Return the condition that the column is one of the request keys of `keys(...)`.

        PostgreSQL knows the size of an array, but not of a list that it must build first: taking a sometimes empty table of claims for
        empty, it scanned the whole list for each claim.
        """
        if self.is_postgresql:
            return column == sa.any_(sa.bindparam("keys", type_=postgresql.ARRAY(sa.Text)))
        return column.in_(self.key_query)

    def keys(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the parameters of a statement with `among` or `key_query`."""
        return {"keys": list(keys) if self.is_postgresql else json.dumps(list(keys))}

    @property
    def file(self) -> Path | None:
        """The file of an SQLite store, or None on a server."""
        return None if self.is_postgresql else Path(str(self._engine.url.database)).absolute()

    @property
    def folder(self) -> Path | None:
        """The folder of that file."""
        return None if self.file is None else self.file.parent

    def size(self) -> int:
        """Return the responses' bytes on disk."""
        if self.is_postgresql:
            statement = sa.select(sa.func.pg_total_relation_size(responses.name))
            return self.read(lambda connection: int(connection.execute(statement).scalar_one()))
        path = str(self._engine.url.database)
        return sum(file.stat().st_size for file in (Path(path), Path(f"{path}-wal")) if file.exists())

    def close(self) -> None:
        self._engine.dispose()

    def _read_once(self, work: Work[Result]) -> Result:
        with self._engine.connect() as connection:
            return work(connection)

    def _write_once(self, work: Work[Result], exclusive: bool) -> Result:
        with self._wait_for_turn(), self._engine.connect().execution_options(writes=True) as connection, connection.begin():
            if self.is_postgresql:
                # A claim must see a whole commit or nothing of it, and transactions must lock rows in one order to avoid deadlocks.
                lock = sa.func.pg_advisory_xact_lock if exclusive else sa.func.pg_advisory_xact_lock_shared
                connection.execute(sa.select(lock(_WRITERS_LOCK)))
            return work(connection)

    @contextmanager
    def _wait_for_turn(self) -> Iterator[None]:
        """Wait, without a connection, until fewer threads of this process write. Raises StoreError."""
        if not self._writers.acquire(timeout=self._patience_s):
            duration = format_count(ceil(self._patience_s), "second")
            raise StoreError(
                f"cannot write to the response store {self.name}: other processes have been writing for {duration}"
            )
        try:
            yield
        finally:
            self._writers.release()

    def _run_patiently(self, action: str, attempt: Callable[[], Result]) -> Result:
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return attempt()
            except sa.exc.SQLAlchemyError as error:
                if not self._is_passing(error) or time.monotonic() > deadline:
                    raise self._build_store_error(action, error) from None
            time.sleep(RETRY_S)

    def _is_passing(self, error: sa.exc.SQLAlchemyError) -> bool:
        """Return whether to retry: responses are paid for, so a restarting server is worth waiting for. SQLite has waited by itself."""
        return self.is_postgresql and isinstance(error, sa.exc.OperationalError)

    def _build_store_error(self, action: str, error: sa.exc.SQLAlchemyError) -> StoreError:
        message = _format_one_line(str(getattr(error, "orig", None) or error))
        if message == _CANNOT_OPEN and (refusal := _find_refusal(Path(str(self._engine.url.database)))):
            elsewhere = "; choose another place with DTEF_RESPONSES" if refusal.errno in (errno.ENOENT, errno.ENOTDIR) else ""
            message = f"{refusal.strerror}{elsewhere}"
        return StoreError(f"cannot {action} the response store {self.name}: {message}")

    def _prepare(self) -> None:
        if not self._read_once(self._is_up_to_date):
            self._write_once(self._bring_up_to_date, exclusive=True)

    def _is_up_to_date(self, connection: sa.Connection) -> bool:
        tables = set(sa.inspect(connection).get_table_names())
        return (
            self._read_version(connection) == SCHEMA_VERSION
            and tables >= set(metadata.tables)
            and not find_missing_columns(connection, responses)
        )

    def _read_version(self, connection: sa.Connection) -> int | None:
        """Return the schema version, or None without one. Raises StoreError if newer code wrote it."""
        return find_schema_version(connection, versions, SCHEMA_VERSION, f"response store {self.name}:")

    def _bring_up_to_date(self, connection: sa.Connection) -> None:
        """Create missing tables and columns. A second process waits for the first, and finds nothing left to do."""
        if self._is_up_to_date(connection):
            return
        metadata.create_all(connection)
        add_missing_columns(connection, responses)
        connection.execute(sa.delete(versions))
        connection.execute(sa.insert(versions).values(schema_version=SCHEMA_VERSION))


def _run_unless_committed(find_committed: Work[Result | None], work: Work[Result], connection: sa.Connection) -> Result:
    result = find_committed(connection)
    return work(connection) if result is None else result


def microseconds(moment: datetime) -> int:
    """Return microseconds since 1970 UTC."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def chunks(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the keys in pieces for one statement each."""
    for start in range(0, len(keys), _CHUNK):
        yield keys[start : start + _CHUNK]


def _format_one_line(message: str) -> str:
    """Join the lines of a message, without SQLAlchemy's statements and links, and without hints to programmers."""
    lines = (line.strip() for line in message.splitlines())
    relevant = (line for line in lines if not line.startswith(("[SQL: ", "(Background on this error")))
    return " ".join(line for line in relevant if line and not line.endswith("?"))


def _find_refusal(path: Path) -> OSError | None:
    """Return the system's reason, omitted by SQLite, for not opening or creating a file, or None."""
    try:
        path.open("ab").close()
    except OSError as error:
        return error
    return None


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
