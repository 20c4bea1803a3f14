"""Parquet between the stages, DuckDB to read it.

Layout: `<root>/<table>/<level>=GD4/<level>=country%3Akenya[/snapshot=base]/part-0.parquet`. A file is written under a
temporary name in the same folder and renamed, so a reader sees the old rows or the new ones, never half of either; in an
object store it is uploaded under its own name, which the store itself replaces whole. Equal rows give equal bytes.
"""

from __future__ import annotations

import errno
import glob
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, unquote

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.keys import Space
from dtef_pipeline.survey import stored_tables
from dtef_pipeline.tables import TableSpec, without_descriptions
from resources.failures import reason
from resources.parquet_files import named_as_folders, plain_schema, read_file, schema_difference

TABLES: Mapping[str, TableSpec] = stored_tables.TABLES
"""The tables of all families, by name: this line alone names them."""


_NO_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.EEXIST)
_FILE = "part-0.parquet"
_REQUESTS_AT_ONCE = 8
"""Files read at the same time from an object store, where each waits for the network."""


class Warehouse:
    """The tables under one root, a folder or an object-store URL such as `s3://bucket/prefix`."""

    def __init__(self, root: str | Path) -> None:
        text = str(root)
        if "://" in text:
            try:
                self.fs, path = pafs.FileSystem.from_uri(text)
            except (pa.ArrowException, OSError) as error:
                raise WarehouseError(f"cannot use the warehouse {_without_secrets(text)}: {error}") from error
            self.root = path.rstrip("/")
        else:
            self.fs, self.root = pafs.LocalFileSystem(), str(Path(text).absolute())
        self._uploads = self.fs.type_name in ("s3", "gcs", "abfs")
        self._written_views: dict[str, pa.Schema | None] | None = None

    @property
    def is_local(self) -> bool:
        return isinstance(self.fs, pafs.LocalFileSystem)

    def folder(self, table: str, **levels: str) -> str:
        """Folder of a table, or of one of its partitions; levels are given from the left, none skipped."""
        spec = _spec(table)
        given = [level for level in spec.levels if level in levels]
        if given != list(spec.levels[: len(levels)]) or len(given) != len(levels):
            raise WarehouseError(f"table {table} is kept by {spec.levels}; got {tuple(levels)}")
        return "/".join([self.root, table, *(f"{level}={quote(levels[level], safe='')}" for level in given)])

    def write(self, table: str, rows: pa.Table, **levels: str) -> int:
        """Replace one partition's rows; returns the bytes written. Raises WarehouseError when the columns differ."""
        spec = _spec(table)
        if spec.schema is not None and rows.schema.remove_metadata() != spec.schema:
            raise WarehouseError(f"{table}: columns differ from its schema: {schema_difference(rows.schema, spec.schema)}")
        folder = self.folder(table, **levels)
        if len(levels) != len(spec.levels):
            raise WarehouseError(f"{table} is written by {spec.levels}; got {tuple(levels)}")
        rows = named_as_folders(without_descriptions(rows), spec.levels)
        file = f"{folder}/{_FILE}"
        if self._uploads:
            buffer = pa.BufferOutputStream()
            pq.write_table(rows, buffer, compression="zstd")
            return self.put(file, buffer.getvalue())
        with self._replacing(file) as temporary:
            pq.write_table(rows, temporary, filesystem=self.fs, compression="zstd")
        return int(self.fs.get_file_info(file).size)

    def put(self, path: str, content: bytes | pa.Buffer) -> int:
        """Replace one file below the root, whole; returns its bytes. `path` begins with the root."""
        with self._replacing(path) as target, self.fs.open_output_stream(target) as stream:
            stream.write(content)
        return len(content)

    @contextmanager
    def _replacing(self, path: str) -> Iterator[str]:
        """A name to write a file under that then takes the place of `path`; nothing is left of a writing that failed."""
        folder = path.rpartition("/")[0]
        temporary = path if self._uploads else f"{folder}/.{uuid.uuid4().hex}.tmp"
        with self._reported("write", path):
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
        """Rows of the partition, or of every partition below the levels given, in path order.

        Raises WarehouseError when nothing is there or a file cannot be read, naming it.
        """
        rows = self._rows(table, columns, levels)
        if rows is None:
            raise WarehouseError(f"no {table} {self._what(table, levels)}: nothing under {self.folder(table, **levels)}")
        return rows

    def read_or_empty(self, table: str, *, columns: Sequence[str] | None = None, **levels: str) -> pa.Table:
        rows = self._rows(table, columns, levels)
        if rows is not None:
            return rows
        schema = _spec(table).schema or pa.schema([])
        return schema.empty_table().select(list(columns)) if columns else schema.empty_table()

    def values(self, table: str, level: str, **levels: str) -> list[str]:
        """The values of the next folder level below the levels given; those of a space's first level in its order, others sorted."""
        infos = self._list(self.folder(table, **levels), recursive=False)
        prefix = f"{level}="
        names = [unquote(info.base_name[len(prefix) :]) for info in infos if info.base_name.startswith(prefix)]
        space = _spec(table).space
        return sorted(names, key=space.order) if space and level == space.first else sorted(names)

    def drop(self, space: Space, key: str) -> None:
        """Remove a partition's rows from every table that is kept by both levels of the space."""
        for table, spec in TABLES.items():
            if spec.space == space and space.second in spec.levels:
                folder = self.folder(table, **space.levels(key))
                if self.fs.get_file_info(folder).type == pafs.FileType.Directory:
                    self.fs.delete_dir(folder)

    def connect(self, *, only: Iterable[str] | None = None, first: Sequence[str] = ()) -> duckdb.DuckDBPyConnection:
        """An in-memory DuckDB connection with one view for each table that exists.

        `first`: values of the first level of the tables' space, such as suites. The views hold these alone, and no other files are looked at;
        none: all. Tables that are not kept by partition are whole in any case. What a query does not need (columns, and files where it
        names a level) is not read.
        """
        connection = duckdb.connect()
        connection.execute("SET python_enable_replacements = false")  # a name is a view, never a variable of this process
        connection.execute("SET enable_progress_bar = false")  # it would stand in the output that other programs read
        for table in TABLES if only is None else only:
            if self.is_local:
                if sql := self._view_sql(table, first):
                    connection.execute(sql)
            elif (found := self._dataset(table, first)) is not None:
                connection.register(table, found)
        return connection

    def tables(self) -> list[str]:
        """The tables that have rows; sorted."""
        return sorted(
            table for table in TABLES if (self._view_sql(table) if self.is_local else self._below(self.folder(table)))
        )

    def tables_in(self, query: str) -> Iterable[str]:
        """The tables that a query may be about: those whose names stand in it; all where it asks what tables there are."""
        words = set(re.findall(r"\w+", query.lower()))
        asks_what_there_is = words & {
            "show",
            "information_schema",
            "duckdb_views",
            "duckdb_tables",
            "duckdb_columns",
            "pg_catalog",
        }
        return [table for table in TABLES if table in words or asks_what_there_is]

    def refresh_database(self) -> Path | None:
        """Write `dtef.duckdb` (views only) for other tools; replaced whole, so no reader is ever locked out."""
        if not self.is_local:
            return None
        target, temporary = Path(self.root) / "dtef.duckdb", Path(self.root) / f".{uuid.uuid4().hex}.duckdb"
        views = {sql: self._columns_of_one_file(table) for table in TABLES if (sql := self._view_sql(table))}
        if views == self._written_views and target.exists():
            return target
        Path(self.root).mkdir(parents=True, exist_ok=True)
        try:
            with duckdb.connect(str(temporary)) as connection:
                for sql in views:
                    connection.execute(sql)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        self._written_views = views
        return target

    def _columns_of_one_file(self, table: str) -> pa.Schema | None:
        """Of a table that is one file, as roll-ups are; None: of other tables, or being replaced. A view keeps the columns of its making."""
        try:
            return None if _spec(table).levels else pq.read_schema(f"{self.folder(table)}/{_FILE}")
        except (OSError, pa.ArrowException):
            return None

    def _view_sql(self, table: str, first: Sequence[str] = ()) -> str | None:
        patterns = []
        for folder, depth in self._tops(table, first):
            if next(Path(folder).glob("/".join(["*"] * depth + [_FILE])), None) is not None:
                pattern = "/".join([glob.escape(folder), *["*"] * depth, _FILE]).replace("'", "''")
                patterns.append(f"'{pattern}'")
        if not patterns:
            return None
        return f"CREATE VIEW {table} AS SELECT * FROM read_parquet([{', '.join(patterns)}], hive_partitioning = false)"

    def _dataset(self, table: str, first: Sequence[str]) -> pads.Dataset | None:
        """The files as one data set, for a store that DuckDB cannot read by itself. It is given the values that the folders stand for."""
        files = [info for folder, _ in self._tops(table, first) for info in self._infos_below(folder)]
        if not files:
            return None
        levels, parquet = _spec(table).levels, pads.ParquetFileFormat()
        with self._reported("read", files[0].path):
            schema = plain_schema(parquet.inspect(files[0].path, filesystem=self.fs))
        fragments = []
        for info in files:
            of_file = self._levels_of(info.path)
            where = _all([pads.field(level) == of_file[level] for level in levels])
            # With its size, which the listing gave, a file is read without a request about it first.
            fragments.append(parquet.make_fragment(info.path, self.fs, where, file_size=info.size))
        return pads.FileSystemDataset(fragments, schema, parquet, self.fs)

    def _tops(self, table: str, first: Sequence[str]) -> list[tuple[str, int]]:
        """The folders that hold the table's files, or those of these first levels, and how many levels of folders are below each."""
        spec = _spec(table)
        if first and spec.space:
            return [(self.folder(table, **{spec.space.first: value}), len(spec.levels) - 1) for value in dict.fromkeys(first)]
        return [(self.folder(table), len(spec.levels))]

    @staticmethod
    def _levels_of(file: str) -> dict[str, str]:
        parts = (part.partition("=") for part in file.split("/")[:-1] if "=" in part)
        return {level: unquote(value) for level, _, value in parts}

    def _rows(self, table: str, columns: Sequence[str] | None, levels: Mapping[str, str]) -> pa.Table | None:
        """The rows below the levels; None when nothing is there. A partition given in full is opened without asking whether it is there."""
        if len(levels) == len(_spec(table).levels):
            try:
                return self._together(table, [f"{self.folder(table, **levels)}/{_FILE}"], columns)
            except FileNotFoundError:
                return None
        files = self._below(self.folder(table, **levels))
        try:
            return self._together(table, files, columns) if files else None
        except FileNotFoundError as error:
            raise WarehouseError(f"removed while {table} was being read: {error}; try again") from error

    def _below(self, folder: str) -> list[str]:
        return [info.path for info in self._infos_below(folder)]

    def _infos_below(self, folder: str) -> list[pafs.FileInfo]:
        found = (info for info in self._list(folder, recursive=True) if info.base_name == _FILE)
        return sorted(found, key=lambda info: str(info.path))

    def _list(self, folder: str, *, recursive: bool) -> list[pafs.FileInfo]:
        with self._reported("list", folder):
            return list(self.fs.get_file_info(pafs.FileSelector(folder, recursive=recursive, allow_not_found=True)))

    @contextmanager
    def _reported(self, what: str, path: str) -> Iterator[None]:
        """An object store that cannot be reached or refuses, and a folder that cannot be used, is an error that says so."""
        try:
            yield
        except OSError as error:
            if not self.is_local:
                raise WarehouseError(f"cannot {what} {path} in the object store: {error}") from error
            hint = "; choose another place with DTEF_WAREHOUSE" if error.errno in _NO_FOLDER else ""
            raise WarehouseError(f"cannot {what} {path}: {reason(str(error))}{hint}") from error

    def _together(self, table: str, files: Sequence[str], columns: Sequence[str] | None) -> pa.Table:
        if self.is_local or len(files) == 1:
            tables = [read_file(self.fs, file, columns) for file in files]
        else:
            with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
                tables = list(pool.map(lambda file: read_file(self.fs, file, columns), files))
        schema = _spec(table).schema
        wanted = tables[0].schema if schema is None else pa.schema([schema.field(name) for name in columns or schema.names])
        for file, rows in zip(files, tables, strict=True):
            if rows.schema.remove_metadata() != wanted:
                raise WarehouseError(
                    f"{file} was written by another version: {schema_difference(rows.schema, wanted)}; materialize that partition "
                    "again to mend it (`dtef run --ingest` asks only for responses that are missing)"
                )
        return pa.concat_tables(tables)

    def _what(self, table: str, levels: Mapping[str, str]) -> str:
        if not levels:
            return "yet"
        asked, space = ", ".join(f"{level} {value}" for level, value in levels.items()), _spec(table).space
        if space is None or table != _ingested(space):
            return f"for {asked}"
        return f"for {asked} (ingested {space.first}s: {', '.join(self.values(table, space.first)) or 'none'})"


def _spec(table: str) -> TableSpec:
    if table not in TABLES:
        raise WarehouseError(f"unknown table {table!r}; tables: {', '.join(TABLES)}")
    return TABLES[table]


def _ingested(space: Space) -> str:
    """The table that says which partitions of the space there are."""
    return next(table for table, spec in TABLES.items() if spec.space == space)


def _all(conditions: Sequence[pads.Expression]) -> pads.Expression:
    whole = pads.scalar(True)
    for condition in conditions:
        whole = whole & condition
    return whole


def _without_secrets(url: str) -> str:
    return re.sub(r"(?<=://)[^/@]*@", "", url)
