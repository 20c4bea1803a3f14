"""One Parquet file: how it is written and read, what is wrong with one that cannot be, and the command that makes it again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from dtef_pipeline.errors import UnreadableFile, WarehouseError
from dtef_pipeline.tables import Remake
from resources.failures import printable
from resources.whole_files import PARQUET_ENDS, opened, whole_files

Beside = Callable[[str, Sequence[str], Mapping[str, str]], pa.Table]
"""The rows of a table, with these columns, that lie below these levels and can be read."""
_OTHER_COLUMNS = "its columns are not those of the table, as in a file of another version"


def named_as_folders(rows: pa.Table, levels: Sequence[str]) -> pa.Table:
    """The rows with the columns that their folders are named by as dictionaries of strings.

    pandas reads the names of folders (`snapshot=base`) as such, and refuses a table in which a file's own column of the name has another type.
    """
    for name in set(levels).intersection(rows.column_names):
        at = rows.schema.get_field_index(name)
        column = rows[name].dictionary_encode()
        rows = rows.set_column(at, rows.schema.field(at).with_type(column.type), column)
    return rows


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with what `named_as_folders` encoded as it was."""
    is_dictionary = pa.types.is_dictionary
    return pa.schema([field.with_type(field.type.value_type) if is_dictionary(field.type) else field for field in schema])


def _plain(rows: pa.Table) -> pa.Table:
    for at, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            of_strings = field.type.value_type
            rows = rows.set_column(at, field.with_type(of_strings), rows.column(at).cast(of_strings))
    return rows


def read_file(fs: pafs.FileSystem, path: str, columns: Sequence[str] | None, wanted: pa.Schema | None = None) -> pa.Table:
    """The rows of a file. `wanted`: the columns it must have; None: those it has.

    Raises FileNotFoundError when it is not there, UnreadableFile when it is damaged or has other columns, and WarehouseError when the
    object store it lies in cannot be reached.
    """
    is_local = isinstance(fs, pafs.LocalFileSystem)
    try:
        # One known file: the data set machinery (and its guessing of folder columns) is not wanted.
        with opened(fs, path) as source:
            rows = pq.ParquetFile(source).read(columns=list(columns) if columns else None, use_threads=False)
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error, is_local) from error
    if lacking := sorted(set(columns or ()) - set(rows.column_names)):
        raise UnreadableFile(path, f"{_OTHER_COLUMNS}: it lacks {', '.join(lacking)}")
    rows = _plain(rows)
    if wanted is not None and rows.schema.remove_metadata() != wanted:
        raise UnreadableFile(path, f"{_OTHER_COLUMNS}: {schema_difference(rows.schema, wanted)}")
    return rows


class FileFault(NamedTuple):
    """What is wrong with a file."""

    reason: str
    lacking: tuple[str, ...] = ()
    """The columns of the table that a whole file lacks."""

    @property
    def of_version(self) -> bool:
        """Whether it is whole, but lacks columns of the table."""
        return bool(self.lacking)


def fault(fs: pafs.FileSystem, path: str, schema: pa.Schema | None, *, whole: bool) -> FileFault | None:
    """What is wrong with a file; None: nothing, or it is gone, as that of a partition that was retired is.

    `whole`: all of it is read, and not only what it says of itself. Raises WarehouseError when the object store cannot be reached.
    """
    is_local = isinstance(fs, pafs.LocalFileSystem)
    try:
        with opened(fs, path) as source:
            file = pq.ParquetFile(source)
            there = {column.name: column.type for column in plain_schema(file.schema_arrow)}
            if whole:
                file.read(use_threads=False)
    except FileNotFoundError:
        return None
    except (OSError, pa.ArrowException) as error:
        return FileFault(_unreadable(path, error, is_local).reason)
    lacking = tuple(column.name for column in schema or () if there.get(column.name) != column.type)
    return FileFault(f"{_OTHER_COLUMNS}: it lacks {', '.join(lacking)}", lacking) if lacking else None


def as_one(fs: pafs.FileSystem, files: Mapping[pafs.FileInfo, Mapping[str, str]]) -> pads.Dataset:
    """Files as one data set, for a store that DuckDB cannot read by itself. It is given the values of the levels that the folders stand for."""
    first, parquet, whole = next(iter(files)), pads.ParquetFileFormat(), whole_files(fs)
    schema = plain_schema(parquet.inspect(first.path, filesystem=whole))
    fragments = []
    for info, levels in files.items():
        where = pads.scalar(True)
        for level, value in levels.items():
            where = where & (pads.field(level) == value)
        fragments.append(parquet.make_fragment(info.path, whole, where))
    return pads.FileSystemDataset(fragments, schema, parquet, whole)


def looks_damaged(path: str) -> bool:
    """Whether what lies at a path of this machine does not begin and end as a Parquet file does: a look at 8 bytes."""
    try:
        with Path(path).open("rb") as file:
            begins = file.read(len(PARQUET_ENDS))
            file.seek(-len(PARQUET_ENDS), 2)
            return not begins == file.read() == PARQUET_ENDS
    except FileNotFoundError:
        return False
    except OSError:
        return True


def remake_command(remake: Remake, levels: Mapping[str, str], beside: Beside) -> str:
    """The command that makes the file of these levels again, and adds nothing else to its partition."""
    given = {f"--{level}": value for level, value in levels.items()} | _as_asked(remake, levels, beside)
    return remake.command.format(options=" ".join(f"{option} {shlex.quote(value)}" for option, value in given.items()))


def schema_difference(got: pa.Schema, wanted: pa.Schema) -> str:
    """The columns by which two schemas differ, in words."""
    extra, lacking = (
        sorted(f"{f.name}: {f.type}" for f in one if f.name not in other.names or other.field(f.name).type != f.type)
        for one, other in ((got, wanted), (wanted, got))
    )
    return re.sub(r"\s+", " ", f"unexpected {extra or 'none'}, lacking {lacking or 'none'}, or another order")


def _as_asked(remake: Remake, levels: Mapping[str, str], beside: Beside) -> dict[str, str]:
    """The options that say what the partition was asked, where that is not the usual; of several ways one that it has."""
    asked = [one for one in remake.asked if one.column not in levels]
    usual = tuple(one.usual for one in asked)
    for rows in _telling(remake, [one.column for one in asked], levels, beside):
        if items := _by_way(rows):
            chosen = usual if usual in items else min(items)
            options = {one.option: value for one, value in zip(asked, chosen, strict=True) if value != one.usual}
            return options | ({remake.items.option: str(len(items[chosen]))} if remake.items else {})
    return {}


def _telling(remake: Remake, ways: Sequence[str], levels: Mapping[str, str], beside: Beside) -> Iterator[pa.Table]:
    """Rows that tell what a partition was asked: the ways of asking, and as last column the item or a list of items."""
    # Where nothing of a snapshot can be read, the partition's other ones tell, and then the snapshot of the other partitions.
    around = {level: value for level, value in levels.items() if level != "snapshot"}
    first = dict(list(levels.items())[:1])
    for below, told in product([levels, *([around] if around != levels else [])], remake.told_by):
        yield beside(told.table, [*ways, told.items], below)
    for told in remake.told_by if first else ():
        rows = beside(told.table, list(dict.fromkeys([*ways, "snapshot", told.items])), first)
        if "snapshot" in levels:
            rows = rows.filter(pc.equal(rows["snapshot"], levels["snapshot"]))
        yield rows.select([*ways, told.items])


def _by_way(rows: pa.Table) -> dict[tuple[str, ...], set[str]]:
    """The items by the way in which they were asked."""
    found: dict[tuple[str, ...], set[str]] = {}
    for *way, items in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        # An item of a list is a struct with its name first.
        names = (next(iter(one.values())) for one in items) if isinstance(items, list) else [items]
        found.setdefault(tuple(way), set()).update(names)
    return found


def _unreadable(path: str, error: Exception, is_local: bool) -> UnreadableFile:
    """Raises WarehouseError for an object store that cannot be reached: nothing is known of the file then."""
    if isinstance(error, OSError) and not is_local and not isinstance(error, pa.ArrowException):
        raise WarehouseError(f"cannot read {path}: {error}") from error
    # Of several sentences the first says what is wrong.
    said = printable(re.split(r"\.\s|\.\Z|\n", str(error))[0])
    is_of_the_system = isinstance(error, OSError) and error.errno is not None
    return UnreadableFile(path, said if is_of_the_system else f"it is damaged ({said})")
