"""Parquet between the stages, read with DuckDB.

Layout: `<root>/<table>/<level>=GD4/<level>=country%3Akenya[/snapshot=base]/part-0.parquet`. A file is written under a temporary name in the
same folder and renamed, so a reader sees the old or the new rows, never a mixture; in an object store it is uploaded under its own name,
which the store replaces atomically. Equal rows give equal bytes.
"""

from __future__ import annotations

import errno
import glob
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote

import duckdb
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from dtef_pipeline import families
from dtef_pipeline.errors import UnreadableFile, WarehouseError
from dtef_pipeline.keys import Space
from dtef_pipeline.tables import TableSpec, strip_descriptions
from dtef_pipeline.text.number_words import format_count
from resources.failures import reason
from resources.file_systems import delete_folder, fill, has_file, open_root, upload
from resources.parquet_files import build_dataset, describe_schema_difference, encode_folder_columns, find_fault, read_file
from resources.remake_commands import remake_command


def view_of(table: str, patterns: Sequence[str]) -> str:
    """Return the SQL that creates a view of these Parquet files."""
    quoted = ", ".join("'" + pattern.replace("'", "''") + "'" for pattern in patterns)
    return f"CREATE VIEW {table} AS SELECT * FROM read_parquet([{quoted}], hive_partitioning = false)"


class ViewsFile:
    """A database of views only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written: object = None

    def refresh(self, views: Mapping[str, pa.Schema | None]) -> Path:
        """Write the file if it has changed, replacing it atomically, so that no reader is ever locked out.

        Args:
            views: statements, with the columns of single-file views: a view's columns are fixed at creation.

        Raises WarehouseError if it cannot be written, and DuckDB's errors about tables' files.
        """
        if (schemas := dict(views)) == self._written and self.path.exists():
            return self.path
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_name(f".{uuid.uuid4().hex}.duckdb")
        try:
            with duckdb.connect(str(temporary)) as connection:
                for sql in views:
                    connection.execute(sql)
            temporary.replace(self.path)
        except (OSError, duckdb.Error) as error:
            if temporary.name not in str(error):  # of a table's file
                raise
            cause = reason(str(error)) if isinstance(error, OSError) else str(error).splitlines()[0].rpartition(": ")[2]
            raise WarehouseError(f"cannot write {self.path}: {cause}") from None
        finally:
            with suppress(OSError):
                temporary.unlink()
        self._written = schemas
        return self.path


TABLES: Mapping[str, TableSpec] = families.TABLES
"""The tables of all families, by name."""

_NO_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.EEXIST)
One = TypeVar("One")
Broken = Mapping[str, UnreadableFile]
"""Reasons why files cannot be read, by path."""
_FILE = "part-0.parquet"
FILES_NAMED = 5
"""Maximum number of skipped files that are named in one message."""
_TRIES = 3
"""Attempts at a query that fails without a broken file, because a file was replaced or removed while it was read."""
_NO_FAULT_OF_A_FILE = (duckdb.ParserException, duckdb.CatalogException, duckdb.InterruptException)
_REQUESTS_AT_ONCE = 8
"""Files read at the same time from an object store, where each waits for the network."""


class Warehouse:
    """The tables under one root, a folder or an object-store URL such as `s3://bucket/prefix`.

    `rows`, `query` and `connection` skip unreadable files: `skipped` lists them, and `warn` gets one line on each, with the command that
    rebuilds it.
    """

    def __init__(self, root: str | Path, warn: Callable[[str], None] = lambda line: None) -> None:
        self.fs, self.root = open_root(root)
        self._uploads = self.fs.type_name in ("s3", "gcs", "abfs")
        self._views_file = ViewsFile(Path(self.root) / "dtef.duckdb")
        self.warn = warn
        self.skipped: dict[str, str] = {}
        """Messages on skipped files, by path."""

    @property
    def is_local(self) -> bool:
        return isinstance(self.fs, pafs.LocalFileSystem)

    def folder(self, table: str, **levels: str) -> str:
        """Return the folder of a table or one of its partitions; levels are given from the left, none skipped."""
        spec = _get_spec(table)
        names = [level for level in spec.levels if level in levels]
        if names != list(spec.levels[: len(levels)]) or len(names) != len(levels):
            raise WarehouseError(f"table {table} is kept by {spec.levels}; got {tuple(levels)}")
        return "/".join([self.root, table, *(f"{level}={quote(levels[level], safe='')}" for level in names)])

    def write(self, table: str, rows: pa.Table, **levels: str) -> int:
        """Replace one partition's rows; return the bytes written. Raises WarehouseError if the columns differ."""
        spec = _get_spec(table)
        if spec.schema is not None and rows.schema.remove_metadata() != spec.schema:
            raise WarehouseError(
                f"{table}: columns differ from its schema: {describe_schema_difference(rows.schema, spec.schema)}"
            )
        folder = self.folder(table, **levels)
        if len(levels) != len(spec.levels):
            raise WarehouseError(f"{table} is written by {spec.levels}; got {tuple(levels)}")
        rows = encode_folder_columns(strip_descriptions(rows), spec.levels)
        file = f"{folder}/{_FILE}"
        if self._uploads:
            buffer = pa.BufferOutputStream()
            pq.write_table(rows, buffer, compression="zstd")
            return self.put(file, buffer.getvalue())
        with self._write_replacing(file) as temporary:
            pq.write_table(rows, temporary, filesystem=self.fs, compression="zstd")
        return int(self.fs.get_file_info(file).size)

    def put(self, path: str, content: bytes | pa.Buffer) -> int:
        """Replace one file below the root atomically; return its size. `path` begins with the root."""
        with self._write_replacing(path) as target:
            if self._uploads:
                upload(self.fs, target, content)
            else:
                fill(self.fs, target, content)
        return len(content)

    @contextmanager
    def _write_replacing(self, path: str) -> Iterator[str]:
        """Yield a name for writing a file that then replaces `path`; a failed write leaves nothing behind."""
        folder = path.rpartition("/")[0]
        temporary = path if self._uploads else f"{folder}/.{uuid.uuid4().hex}.tmp"
        with self._convert_errors("write", path):
            if temporary == path:
                yield path
                return
            self.fs.create_dir(folder, recursive=True)
            try:
                yield temporary
                self.fs.move(temporary, path)
            except BaseException:
                with suppress(OSError):
                    self.fs.delete_file(temporary)
                raise

    def read(self, table: str, *, columns: Sequence[str] | None = None, **levels: str) -> pa.Table:
        """Return the rows of the partition, or of every partition below the levels, in path order.

        Raises WarehouseError if nothing is there, and UnreadableFile, with the command that rebuilds the file, if one cannot be read.
        """
        rows = self._read_rows(table, columns, levels)
        if rows is None:
            raise WarehouseError(
                f"no {table} {self._describe_part(table, levels)}: nothing under {self.folder(table, **levels)}"
            )
        return rows

    def read_or_empty(self, table: str, *, columns: Sequence[str] | None = None, **levels: str) -> pa.Table:
        """Return rows like `read`, or none if nothing is there."""
        rows = self._read_rows(table, columns, levels)
        return make_empty_table(table, columns) if rows is None else rows

    def rows(self, table: str, *, columns: Sequence[str] | None = None, **levels: str) -> pa.Table:
        """Return rows like `read_or_empty`, without unreadable files."""
        broken: dict[str, UnreadableFile] = {}
        rows = self._read_rows(table, columns, levels, broken)
        self._skip(broken)
        return make_empty_table(table, columns) if rows is None else rows

    def query(
        self, use: Callable[[duckdb.DuckDBPyConnection], One], *, only: Iterable[str] | None = None, first: Sequence[str] = ()
    ) -> One:
        """Return the result of `use` for a connection; `only` and `first` as for `connect`.

        Files are checked only if `use` fails; it is then called again without the broken ones. Its result must not read from the connection
        any more. Raises its errors if no file is at fault.
        """

        def read(skips: Collection[str]) -> One:
            with self.connect(only=tables, first=first, skips=skips) as connection:
                return use(connection)

        tables = list(TABLES if only is None else only)
        return self._read_without_broken(read, tables, first, self._skip)

    def connection(
        self, prepare: Callable[[duckdb.DuckDBPyConnection], None], *, only: Iterable[str]
    ) -> duckdb.DuckDBPyConnection:
        """Return a connection after `prepare`, called as in `query`, which must copy what it needs from the files."""

        def read(skips: Collection[str]) -> duckdb.DuckDBPyConnection:
            connection = self.connect(only=tables, skips=skips)
            prepare(connection)
            return connection

        tables = list(only)
        return self._read_without_broken(read, tables, (), self._skip)

    def read_earlier(self, table: str, *, columns: Sequence[str] | None = None, **levels: str) -> pa.Table | None:
        """Return a partition's rows, for a stage about to replace it, or None, with a warning, if the file is damaged."""
        try:
            return self.read_or_empty(table, columns=columns, **levels)
        except UnreadableFile as error:
            if error.kind == "refused":
                raise
            self.warn(f"{error.path} cannot be read and is made again: {error.reason}")
            return None

    def remake(self, path: str) -> str:
        """Return the command that rebuilds a file, from stored responses if models were called for it."""
        table, levels = self.place(path)
        spec = _get_spec(table)
        if spec.space and ("{options}" in spec.remake or "{part}" in spec.remake):
            levels |= self._choose_snapshot(spec.space, levels)

        def tell(columns: Sequence[str]) -> pa.Table:
            names = [name for name, candidate in TABLES.items() if candidate.remake.split()[:3] == spec.remake.split()[:3]]
            matching_tables = [
                name for name in names if set(_get_spec(name).levels) == set(levels) and {*columns} <= {*_read_columns(name)}
            ]
            tables = [rows for name in matching_tables if (rows := self._read_rows(name, columns, levels, {})) is not None]
            return pa.concat_tables(tables) if tables else pa.table({name: pa.array([], pa.string()) for name in columns})

        return remake_command(spec.remake, levels, tell)

    def _choose_snapshot(self, space: Space, levels: Mapping[str, str]) -> dict[str, str]:
        """Return a snapshot with requests of the partition, or of the last partition below these levels; empty without any."""
        table = next(name for name, spec in TABLES.items() if spec.space == space and "snapshot" in spec.levels)
        place: dict[str, str] = {}
        for level in _get_spec(table).levels:
            values = [levels[level]] if level in levels else self.values(table, level, **place)
            if not values:
                return {}
            place[level] = values[-1]
        return {"snapshot": place["snapshot"]}

    def place(self, path: str) -> tuple[str, dict[str, str]]:
        """Return the table of a file and its levels."""
        return path.removeprefix(f"{self.root}/").partition("/")[0], self._parse_levels(path)

    def values(self, table: str, level: str, **levels: str) -> list[str]:
        """Return the next level's values with rows below the given levels; a space's first level in its order, others sorted."""
        prefix, below = f"{level}=", len(_get_spec(table).levels) - len(levels) - 1
        infos = [
            entry for entry in self._list(self.folder(table, **levels), recursive=False) if entry.base_name.startswith(prefix)
        ]
        names = [unquote(info.base_name[len(prefix) :]) for info in infos if has_file(self.fs, info.path, _FILE, below)]
        space = _get_spec(table).space
        return sorted(names, key=space.order) if space and level == space.first else sorted(names)

    def find_newer_values(self, table: str, level: str, output: str, family: str = "") -> list[str]:
        """Return, sorted, the values of a level of `table` with a file newer than the table `output`; none if either has no file.

        `family`: whose part of `output` counts, if that is a table over all families. File times decide: rewritten but unchanged files
        count too.
        """
        folder = self.folder(output, **build_family_levels(output, family))
        last = max((info.mtime_ns for info in self._list_infos_below(folder)), default=None)
        if last is None:
            return []
        newer = (info.path for info in self._list_infos_below(self.folder(table)) if info.mtime_ns > last)
        return sorted({self._parse_levels(path)[level] for path in newer})

    def drop(self, space: Space, key: str) -> None:
        """Remove a partition's rows from every table partitioned by all levels of the space."""
        for table, spec in TABLES.items():
            if spec.space == space and space.last in spec.levels:
                delete_folder(self.fs, self.folder(table, **space.levels(key)), self.folder(table))

    def drop_first(self, space: Space, value: str) -> None:
        """Remove the rows of a value of the space's first level from every table of the space."""
        for table, spec in TABLES.items():
            if spec.space == space:
                delete_folder(self.fs, self.folder(table, **{space.first: value}), self.folder(table))

    def clear(self, tables: Iterable[str], family: str) -> None:
        """Remove all rows of tables over all partitions, and the family's rows of tables over all families."""
        for table in tables:
            delete_folder(self.fs, self.folder(table, **build_family_levels(table, family)), self.root)

    def connect(
        self, *, only: Iterable[str] | None = None, first: Sequence[str] = (), skips: Collection[str] = ()
    ) -> duckdb.DuckDBPyConnection:
        """Return an in-memory DuckDB connection with one view for each existing table.

        `first`: values of the first level of the tables' space, such as suites, to restrict views and files to; empty for all.
        Unpartitioned tables are always complete. A query reads only the columns it needs, and the files of the levels it names. `skips`:
        files to leave out; a table left without any has no rows.
        """
        connection = duckdb.connect()
        # So that a name refers to a view, never to a variable of this process.
        connection.execute("SET python_enable_replacements = false")
        # The progress bar would mix with output for other programs.
        connection.execute("SET enable_progress_bar = false")
        for table in TABLES if only is None else only:
            if self.is_local:
                if sql := self._view_sql(table, first, skips):
                    connection.execute(sql)
                    continue
            elif files := [info for info in self._files(table, first) if info.path not in skips]:
                with self._convert_errors("read", files[0].path):
                    connection.register(table, build_dataset(self.fs, {info: self._parse_levels(info.path) for info in files}))
                continue
            if (schema := _get_spec(table).schema) and self._is_about(table, skips):
                connection.register(table, strip_descriptions(schema.empty_table()))
        return connection

    def files(self, table: str, first: Sequence[str] = ()) -> list[str]:
        """Return the files of a table, or of these values of its first level."""
        return [info.path for info in self._files(table, first)]

    def tables(self, names: Iterable[str] = TABLES) -> list[str]:
        """Return, sorted, the tables among these that have rows."""
        return sorted(
            table for table in names if (self._view_sql(table) if self.is_local else self._list_folders(self.folder(table)))
        )

    def find_tables(self, query: str) -> Iterable[str]:
        """Return the tables that a query may concern: those it names, or all if it lists tables."""
        words = set(re.findall(r"\w+", query.lower()))
        catalogue = {"show", "information_schema", "duckdb_views", "duckdb_tables", "duckdb_columns", "pg_catalog"}
        return [table for table in TABLES if table in words or words & catalogue]

    def refresh_database(self) -> Path | None:
        """Write `dtef.duckdb` for other tools: only views, without unreadable files."""
        if not self.is_local:
            return None

        def write(skips: Collection[str]) -> Path:
            statements = {table: self._view_sql(table, skips=skips) for table in TABLES}
            return self._views_file.refresh(
                {sql: self._read_single_file_columns(name) for name, sql in statements.items() if sql}
            )

        return self._read_without_broken(write, TABLES, (), lambda broken: None)

    def _read_single_file_columns(self, table: str) -> pa.Schema | None:
        """Return the schema of a single-file table, or None for other tables or during replacement. A view's columns are fixed at creation."""
        try:
            return None if _get_spec(table).levels else pq.read_schema(f"{self.folder(table)}/{_FILE}")
        except (OSError, pa.ArrowException):
            return None

    def _view_sql(self, table: str, first: Sequence[str] = (), skips: Collection[str] = ()) -> str | None:
        patterns = []
        for folder, depth in self._list_top_folders(table, first):
            if self._is_about(table, skips):
                patterns += [glob.escape(path) for path in self._list_folders(folder) if path not in skips]
            elif has_file(self.fs, folder, _FILE, depth):
                patterns.append("/".join([glob.escape(folder), *["*"] * depth, _FILE]))
        return view_of(table, patterns) if patterns else None

    def _is_about(self, table: str, paths: Collection[str]) -> bool:
        return any(path.startswith(f"{self.folder(table)}/") for path in paths)

    def _files(self, table: str, first: Sequence[str]) -> list[pafs.FileInfo]:
        return [info for folder, _ in self._list_top_folders(table, first) for info in self._list_infos_below(folder)]

    def _list_top_folders(self, table: str, first: Sequence[str]) -> list[tuple[str, int]]:
        """Return the folders of the table's files, or of these first levels, each with the number of folder levels below."""
        spec = _get_spec(table)
        if first and spec.space:
            return [(self.folder(table, **{spec.space.first: value}), len(spec.levels) - 1) for value in dict.fromkeys(first)]
        return [(self.folder(table), len(spec.levels))]

    def _parse_levels(self, file: str) -> dict[str, str]:
        parts = (part.partition("=") for part in file.removeprefix(self.root).split("/")[:-1] if "=" in part)
        return {level: unquote(value) for level, _, value in parts}

    def _read_rows(
        self,
        table: str,
        columns: Sequence[str] | None,
        levels: Mapping[str, str],
        broken: dict[str, UnreadableFile] | None = None,
    ) -> pa.Table | None:
        """Return the rows below the levels, or None if nothing is there. A complete partition is opened without checking its existence."""
        if len(levels) == len(_get_spec(table).levels):
            try:
                return self._read_together(table, [f"{self.folder(table, **levels)}/{_FILE}"], columns, broken)
            except FileNotFoundError:
                return None
        files = self._list_folders(self.folder(table, **levels))
        try:
            return self._read_together(table, files, columns, broken) if files else None
        except FileNotFoundError as error:
            raise WarehouseError(f"removed while {table} was being read: {error}; try again") from error

    def _list_folders(self, folder: str) -> list[str]:
        return [info.path for info in self._list_infos_below(folder)]

    def _list_infos_below(self, folder: str) -> list[pafs.FileInfo]:
        infos = (info for info in self._list(folder, recursive=True) if info.base_name == _FILE)
        return sorted(infos, key=lambda info: str(info.path))

    def _list(self, folder: str, *, recursive: bool) -> list[pafs.FileInfo]:
        with self._convert_errors("list", folder):
            return list(self.fs.get_file_info(pafs.FileSelector(folder, recursive=recursive, allow_not_found=True)))

    @contextmanager
    def _convert_errors(self, action: str, path: str) -> Iterator[None]:
        """Raise a WarehouseError for an unreachable or refusing object store, and for an unusable folder."""
        try:
            yield
        except OSError as error:
            if not self.is_local:
                raise WarehouseError(f"cannot {action} {path} in the object store: {error}") from error
            hint = "; choose another place with DTEF_WAREHOUSE" if error.errno in _NO_FOLDER else ""
            raise WarehouseError(f"cannot {action} {path}: {reason(str(error))}{hint}") from error

    def _read_together(
        self, table: str, files: Sequence[str], columns: Sequence[str] | None, broken: dict[str, UnreadableFile] | None
    ) -> pa.Table | None:
        """Return the rows of the files. `broken`: takes unreadable ones; if None, the first of them is raised."""
        results = self.map_files(lambda file: self._read_one(table, file, columns, skipping=broken is not None), files)
        if broken is not None:
            broken |= {fault.path: fault for fault in results if isinstance(fault, UnreadableFile)}
        tables = [rows for rows in results if isinstance(rows, pa.Table)]
        return pa.concat_tables(tables) if tables else None

    def map_files(self, do: Callable[[str], One], files: Sequence[str]) -> list[One]:
        """Return each file's result, in order; in an object store several are read at the same time."""
        if self.is_local or len(files) == 1:
            return [do(file) for file in files]
        with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
            return list(pool.map(do, files))

    def _read_one(
        self, table: str, file: str, columns: Sequence[str] | None, *, skipping: bool
    ) -> pa.Table | UnreadableFile | None:
        """Return a file's rows. `skipping`: return its error instead of raising, and None if removed meanwhile (retired partition)."""
        schema = _get_spec(table).schema
        expected = None if schema is None else pa.schema([schema.field(name) for name in columns or schema.names])
        try:
            return read_file(self.fs, file, columns, expected)
        except FileNotFoundError:
            if not skipping:
                raise
            return None
        except UnreadableFile as error:
            if not skipping:
                raise self._add_remedy(error) from error
            return error

    def _read_without_broken(
        self,
        read: Callable[[Collection[str]], One],
        tables: Iterable[str],
        first: Sequence[str],
        skip: Callable[[Broken], None],
    ) -> One:
        """Return `read`'s result. If broken files make it fail, pass them to `skip` and call `read` again without them."""
        skips: set[str] = set()
        attempts = 0
        while True:
            attempts += 1
            try:
                return read(skips)
            except (duckdb.Error, pa.ArrowException, WarehouseError) as error:
                cause = error.__cause__ if isinstance(error, WarehouseError) else error
                if not isinstance(cause, (duckdb.Error, pa.ArrowException)) or isinstance(cause, _NO_FAULT_OF_A_FILE):
                    raise
                broken = self._find_broken(cause, tables, first, skips)
                if not broken and (attempts == _TRIES or isinstance(cause, duckdb.BinderException)):
                    raise
                skips |= broken.keys()
                skip(broken)

    def _find_broken(self, error: Exception, tables: Iterable[str], first: Sequence[str], skips: Collection[str]) -> Broken:
        """Return the files that made a query fail: damaged ones, else those lacking columns. A file named in the error is read in full."""
        message = str(error)
        faults: dict[str, UnreadableFile] = {}
        for table in [table for table in tables if f"{self.folder(table)}/" in message] or tables:
            files = [path for path in self.files(table, first) if path not in skips]
            look = partial(self._find_file_fault, TABLES[table].schema, message)
            faults |= {fault.path: fault for fault in self.map_files(look, files) if fault}
        damage = {path: fault for path, fault in faults.items() if fault.kind != "other columns"}
        lacks_columns = isinstance(error, duckdb.BinderException) or any(path in message for path in faults)
        return damage or (faults if lacks_columns else {})

    def _find_file_fault(self, schema: pa.Schema | None, message: str, path: str) -> UnreadableFile | None:
        return find_fault(self.fs, path, schema, reads_all=path in message)

    def _skip(self, broken: Broken) -> None:
        """Record the files, and warn of the new ones."""
        new = {path: f"skipped: {self._add_remedy(error)}" for path, error in broken.items() if path not in self.skipped}
        self.skipped |= new
        for line in list(new.values())[:FILES_NAMED]:
            self.warn(line)
        if (remaining := len(new) - FILES_NAMED) > 0:
            self.warn(f"skipped, because they cannot be read: {format_count(remaining, 'more file')}")

    def drop_readable_skips(self) -> None:
        """Drop files from `skipped` that are readable again."""
        for path in list(self.skipped):
            if find_fault(self.fs, path, _get_spec(self.place(path)[0]).schema, reads_all=True) is None:
                del self.skipped[path]

    def _add_remedy(self, error: UnreadableFile) -> UnreadableFile:
        """Return the error with the command that rebuilds the file; without it if the system refuses access."""
        return (
            error if error.kind == "refused" else UnreadableFile(error.path, error.reason, error.kind, self.remake(error.path))
        )

    def _describe_part(self, table: str, levels: Mapping[str, str]) -> str:
        if not levels:
            return "yet"
        place, space = ", ".join(f"{level} {value}" for level, value in levels.items()), _get_spec(table).space
        if space is None or table != _find_ingested_table(space):
            return f"for {place}"
        return f"for {place} (ingested {space.first}s: {', '.join(self.values(table, space.first)) or 'none'})"


def _get_spec(table: str) -> TableSpec:
    if table not in TABLES:
        raise WarehouseError(f"unknown table {table!r}; tables: {', '.join(TABLES)}")
    return TABLES[table]


def build_family_levels(table: str, family: str) -> dict[str, str]:
    """Return the levels of a family's part of a table over all families; empty for other tables."""
    return {"family": family} if _get_spec(table).levels == ("family",) else {}


def _read_columns(table: str) -> list[str]:
    schema = _get_spec(table).schema
    return schema.names if schema else []


def make_empty_table(table: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a table without rows; `columns`: only these, by default all."""
    schema = _get_spec(table).schema or pa.schema([])
    return schema.empty_table().select(list(columns)) if columns else schema.empty_table()


def _find_ingested_table(space: Space) -> str:
    """Return the table that lists the partitions of the space."""
    return next(table for table, spec in TABLES.items() if spec.space == space)
