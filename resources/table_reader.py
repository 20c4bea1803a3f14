"""Reading tables of which some file may be broken: such files are left out and named, and the others are read."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import duckdb
import pyarrow as pa

from dtef_pipeline.errors import UnreadableFile, WarehouseError, makes_again
from resources.parquet_files import FileFault, fault
from resources.warehouse import TABLES, Warehouse

Out = TypeVar("Out")
FILES_NAMED = 5
"""Files that are named with the command that makes them again."""
_REMEDY = "; this makes it again"
_TRIES = 3
"""Attempts at a query that fails although no file is broken: one was replaced or removed while it was read."""
_NO_FAULT_OF_A_FILE = (duckdb.ParserException, duckdb.CatalogException, duckdb.InterruptException)


class TableReader:
    """Reads tables for those who can do without a file.

    Nothing is looked at beforehand: only when a query fails, its files are looked at one by one, and it is asked again without the broken
    ones.
    """

    def __init__(self, warehouse: Warehouse, say: Callable[[str], None] = lambda line: None) -> None:
        """`say`: is told in one line of each file that is left out, when it is; of many, of the first few (`more` counts the others).

        A command that makes several files again is in the first of their lines alone.
        """
        self.warehouse = warehouse
        self.left_out: dict[str, str] = {}
        """By path, what was said of it."""
        self._say = say

    def query(
        self, use: Callable[[duckdb.DuckDBPyConnection], Out], *, only: Iterable[str] | None = None, first: Sequence[str] = ()
    ) -> Out:
        """What `use` makes of a connection, of which `only` and `first` are as `Warehouse.connect` takes them.

        `use` may be called several times; what it returns must not read from the connection any more. Raises its errors, where no file is
        to blame.
        """

        def done(without: Collection[str]) -> Out:
            with self.warehouse.connect(only=tables, first=first, without=without) as connection:
                return use(connection)

        tables = list(TABLES if only is None else only)
        return self._repeated(done, tables, first)

    def connection(
        self, prepare: Callable[[duckdb.DuckDBPyConnection], None], *, only: Iterable[str]
    ) -> duckdb.DuckDBPyConnection:
        """A connection after `prepare`, as of `query`, which copied what is to be read of the files."""

        def done(without: Collection[str]) -> duckdb.DuckDBPyConnection:
            connection = self.warehouse.connect(only=tables, without=without)
            prepare(connection)
            return connection

        tables = list(only)
        return self._repeated(done, tables, ())

    def rows(self, table: str, *, columns: Sequence[str] | None = None, **levels: str) -> pa.Table:
        """As `Warehouse.read_or_empty`, less what cannot be read."""
        found: dict[str, str] = {}

        def leave_out(error: UnreadableFile) -> None:
            found[error.path] = error.reason

        rows = self.warehouse.read_readable(table, leave_out, columns=columns, **levels)
        self._leave_out(found)
        return rows

    def refresh_database(self) -> None:
        """`Warehouse.refresh_database`, without what cannot be read."""
        self.forget_mended()
        self._repeated(lambda without: self.warehouse.refresh_database(dict.fromkeys(without, "") | self.left_out), TABLES, ())

    def forget_mended(self) -> None:
        """Count what is kept as one file, and was left out, no more as left out where it can be read by now: roll-ups replace such files."""
        for path in list(self.left_out):
            spec = TABLES[self.warehouse.place(path)[0]]
            if not spec.levels and fault(self.warehouse.fs, path, spec.schema, whole=True) is None:
                del self.left_out[path]

    def _repeated(self, do: Callable[[Collection[str]], Out], tables: Iterable[str], first: Sequence[str]) -> Out:
        without: set[str] = set()
        tries = 0
        while True:
            try:
                return do(without)
            except (duckdb.Error, pa.ArrowException, WarehouseError) as error:
                cause = error.__cause__ if isinstance(error, WarehouseError) else error
                if not isinstance(cause, (duckdb.Error, pa.ArrowException)) or isinstance(cause, _NO_FAULT_OF_A_FILE):
                    raise
                tries += 1
                found = self._broken(cause, tables, first, without)
                if not found and (tries >= _TRIES or isinstance(cause, duckdb.BinderException)):
                    self._raise_of_version(cause, tables)
                    raise
                for path, reason in found.items():
                    with_it = self._needing(path, tables)
                    without |= {path, *(file for files in with_it.values() for file in files)}
                    self._leave_out({path: f"{reason} (left out with it: {', '.join(with_it)})" if with_it else reason})

    def _needing(self, path: str, tables: Iterable[str]) -> dict[str, list[str]]:
        """The files, by table, that say nothing without this one: a score without what it was measured against."""
        table, levels = self.warehouse.place(path)
        needing = [other for other in TABLES[table].needed_by if other in tables]
        folders = {other: self.warehouse.folder(other, **levels) for other in needing}
        return {
            other: [file for file in self.warehouse.files(other) if file.startswith(f"{folder}/")]
            for other, folder in folders.items()
        }

    def _broken(
        self, error: Exception, tables: Iterable[str], first: Sequence[str], without: Collection[str]
    ) -> dict[str, str]:
        """The files that a query may have failed by, with the reason: damaged ones, else those of another version.

        A table of which all is of another version is left to `_raise_of_version`.
        """
        message, house = str(error), self.warehouse
        damaged: dict[str, str] = {}
        older: dict[str, str] = {}
        for table in [table for table in tables if f"{house.folder(table)}/" in message] or tables:
            files = [path for path in house.files(table, first) if path not in without]
            look = partial(self._fault, TABLES[table].schema, message)
            if isinstance(error, duckdb.BinderException) and not any(map(look, _first(files))):
                continue
            looks = house.each(look, files)
            faults = {path: found for path, found in zip(files, looks, strict=True) if found}
            damaged |= {path: found.reason for path, found in faults.items() if not found.of_version}
            if len(faults) < len(files):
                older |= {path: found.reason for path, found in faults.items() if found.of_version}
        of_columns = isinstance(error, duckdb.BinderException) or any(path in message for path in older)
        return damaged or (older if of_columns else {})

    def _raise_of_version(self, error: Exception, tables: Iterable[str]) -> None:
        """Raises WarehouseError where the query failed for a column that no file of its table has, with the command that makes them again."""
        for table in tables if isinstance(error, duckdb.BinderException) else ():
            files = self.warehouse.files(table)
            found = self._fault(TABLES[table].schema, "", min(files)) if files else None
            if found and found.of_version and any(f'"{name}"' in str(error) for name in found.lacking):
                remedy = makes_again(self.warehouse.remake(min(files)), "the first of them")
                raise WarehouseError(
                    f"{table} is of another version: its files lack {', '.join(found.lacking)}; {remedy}"
                ) from error

    def _fault(self, schema: pa.Schema | None, message: str, path: str) -> FileFault | None:
        """A file that the message names is read whole: it may say the right things of itself and be damaged further on."""
        return fault(self.warehouse.fs, path, schema, whole=path in message)

    def _leave_out(self, found: dict[str, str]) -> None:
        for path in found:
            if path not in self.left_out:
                self.left_out[path] = f"left out, since it cannot be read: {path}: {found[path]}"
                if len(self.left_out) <= FILES_NAMED:
                    self.left_out[path] += f"; {makes_again(self.warehouse.remake(path))}"
                    *_, line = each_command_once(self.left_out.values())
                    self._say(line)

    def remade_by(self) -> list[str]:
        """The commands that make all files again that were left out: one for those that differ in the last level of their space alone."""
        together: dict[tuple[str, str], set[str]] = {}
        whole: dict[tuple[str, str], int] = {}
        for path in self.left_out:
            table, levels = self.warehouse.place(path)
            command, space = self.warehouse.remake(path), TABLES[table].space
            option = f" --{space.last} {shlex.quote(levels[space.last])}" if space and space.last in levels else ""
            before, found, after = command.partition(option) if option else (command, "", "")
            together.setdefault((before, after), set()).add(found)
            if found and space and (before, after) not in whole:
                of_space = next(name for name, spec in TABLES.items() if spec.space == space)
                above = {space.first: levels[space.first]} if space.second else {}
                there = self.warehouse.values(of_space, space.last, **above)
                whole[before, after] = len(there)
        return [
            f"{before}{'' if len(options) == whole.get((before, after)) else ''.join(sorted(options))}{after}"
            for (before, after), options in together.items()
        ]

    @property
    def more(self) -> int:
        """How many files were left out of which `say` was not told."""
        return max(0, len(self.left_out) - FILES_NAMED)


def each_command_once(lines: Iterable[str]) -> Iterator[str]:
    """The lines of files that were left out; a command that a line before had is not repeated."""
    told: set[str] = set()
    for line in lines:
        which, _, remedy = line.partition(_REMEDY)
        command = remedy.partition(": ")[2]
        yield f"{which}; the same command makes it again" if command in told else line
        told |= {command} - {""}


def _first(files: Sequence[str]) -> set[str]:
    """Those of which one is the first, whichever way paths are sorted: a view has the columns of its first file."""
    return {min(files), min(files, key=lambda path: path.split("/"))} if files else set()
