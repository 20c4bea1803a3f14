"""Reading and checking of single Parquet files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from dtef_pipeline.errors import UnreadableFile, WarehouseError
from resources.failures import escape_control_characters

PARQUET_ENDS = b"PAR1"
"""The bytes at the beginning and end of every Parquet file."""
_READS = 10


def open_parquet(fs: pafs.FileSystem, path: str) -> pa.NativeFile:
    """Open a file for reading, to be closed by the caller; raises the file system's errors.

    A local file does not change while open. In an object store it is read in one request, repeated if its end is invalid, because a file of
    another length replaced it between the look at its length and the request.
    """
    if isinstance(fs, pafs.LocalFileSystem):
        return fs.open_input_file(path)
    for _ in range(_READS):
        with fs.open_input_file(path) as file:
            # If the file has become shorter, the rest stays zero; `read` would leave old memory there.
            content = bytearray(file.size())
            file.readinto(content)
        if content.endswith(PARQUET_ENDS):
            break
    return pa.BufferReader(pa.py_buffer(content))


def encode_folder_columns(rows: pa.Table, levels: Sequence[str]) -> pa.Table:
    """Return the rows with the columns that name their folders as dictionaries of strings.

    pandas reads folder names (`snapshot=base`) as such, and refuses a table in which a file's own column of that name has another type.
    """
    for name in set(levels).intersection(rows.column_names):
        index = rows.schema.get_field_index(name)
        column = rows[name].dictionary_encode()
        rows = rows.set_column(index, rows.schema.field(index).with_type(column.type), column)
    return rows


def decode_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema as before `encode_folder_columns`."""
    is_dictionary = pa.types.is_dictionary
    return pa.schema([field.with_type(field.type.value_type) if is_dictionary(field.type) else field for field in schema])


def _decode_columns(rows: pa.Table) -> pa.Table:
    for index, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            value_type = field.type.value_type
            rows = rows.set_column(index, field.with_type(value_type), rows.column(index).cast(value_type))
    return rows


def read_file(fs: pafs.FileSystem, path: str, columns: Sequence[str] | None, schema: pa.Schema | None = None) -> pa.Table:
    """Return the rows of a file. `schema`: the columns it must have, or None for any.

    Raises FileNotFoundError if it is missing, UnreadableFile if it is damaged or has other columns, and WarehouseError if its object store
    cannot be reached.
    """
    is_local = isinstance(fs, pafs.LocalFileSystem)
    try:
        # A single known file needs no data set machinery, which guesses columns from folder names.
        with open_parquet(fs, path) as source:
            rows = pq.ParquetFile(source).read(columns=list(columns) if columns else None, use_threads=False)
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise _make_unreadable(path, error, is_local) from error
    if lacking := sorted(set(columns or ()) - set(rows.column_names)):
        raise _make_column_error(path, f"it lacks {', '.join(lacking)}")
    rows = _decode_columns(rows)
    if schema is not None and rows.schema.remove_metadata() != schema:
        raise _make_column_error(path, describe_schema_difference(rows.schema, schema))
    return rows


def find_fault(fs: pafs.FileSystem, path: str, schema: pa.Schema | None, *, reads_all: bool) -> UnreadableFile | None:
    """Return the fault of a file, or None if it has none or is gone, as after retiring its partition.

    `reads_all`: read all of it, not only its metadata. Raises WarehouseError if the object store cannot be reached.
    """
    is_local = isinstance(fs, pafs.LocalFileSystem)
    try:
        with open_parquet(fs, path) as source:
            file = pq.ParquetFile(source)
            types = {column.name: column.type for column in decode_schema(file.schema_arrow)}
            if reads_all:
                file.read(use_threads=False)
    except FileNotFoundError:
        return None
    except (OSError, pa.ArrowException) as error:
        return _make_unreadable(path, error, is_local)
    lacking = tuple(column.name for column in schema or () if types.get(column.name) != column.type)
    return _make_column_error(path, f"it lacks {', '.join(lacking)}") if lacking else None


def build_dataset(fs: pafs.FileSystem, files: Mapping[pafs.FileInfo, Mapping[str, str]]) -> pads.Dataset:
    """Return files as one data set, for a store that DuckDB cannot read by itself, with the values of their folders' levels."""
    first, parquet = next(iter(files)), pads.ParquetFileFormat()
    schema = decode_schema(parquet.inspect(first.path, filesystem=fs))
    fragments = []
    for info, levels in files.items():
        where = pads.scalar(True)
        for level, value in levels.items():
            where = where & (pads.field(level) == value)
        fragments.append(parquet.make_fragment(info.path, fs, where))
    return pads.FileSystemDataset(fragments, schema, parquet, fs)


def describe_schema_difference(got: pa.Schema, expected: pa.Schema) -> str:
    """Describe the columns in which two schemas differ."""
    extra, lacking = (
        sorted(f"{f.name}: {f.type}" for f in first if f.name not in second.names or second.field(f.name).type != f.type)
        for first, second in ((got, expected), (expected, got))
    )
    return re.sub(r"\s+", " ", f"unexpected {extra or 'none'}, lacking {lacking or 'none'}, or another order")


def _make_column_error(path: str, difference: str) -> UnreadableFile:
    reason = f"its columns are not those of the table, as in a file of another version: {difference}"
    return UnreadableFile(path, reason, "other columns")


def _make_unreadable(path: str, error: Exception, is_local: bool) -> UnreadableFile:
    """Return the error. Raises WarehouseError if the object store cannot be reached: the state of the file is unknown then."""
    if isinstance(error, OSError) and not is_local and not isinstance(error, pa.ArrowException):
        raise WarehouseError(f"cannot read {path}: {error}") from error
    # The first of several sentences says what is wrong.
    message = escape_control_characters(re.split(r"\.\s|\.\Z|\n", str(error))[0])
    if isinstance(error, OSError) and error.errno is not None:
        return UnreadableFile(path, message, "refused")
    return UnreadableFile(path, f"it is damaged ({message})")
