"""One Parquet file: how its columns are written and read, and what is wrong with one that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from dtef_pipeline.errors import WarehouseError


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


def read_file(fs: pafs.FileSystem, path: str, columns: Sequence[str] | None) -> pa.Table:
    """Raises FileNotFoundError when it is not there."""
    is_local = isinstance(fs, pafs.LocalFileSystem)
    try:
        # One known file: the data set machinery (and its guessing of folder columns) is not wanted.
        with fs.open_input_file(path) as source:
            # From an object store the columns come in few large requests.
            file = pq.ParquetFile(source, pre_buffer=not is_local)
            rows = file.read(columns=list(columns) if columns else None, use_threads=False)
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        mend = "; materialize that partition again to mend it"
        reached = is_local or not isinstance(error, OSError)
        raise WarehouseError(f"cannot read {path}: {error}{mend if reached else ''}") from error
    if lacking := sorted(set(columns or ()) - set(rows.column_names)):
        raise WarehouseError(f"{path} has no column {', '.join(lacking)}; materialize that partition again to mend it")
    return _plain(rows)


def schema_difference(got: pa.Schema, wanted: pa.Schema) -> str:
    """The columns by which two schemas differ, in words."""
    got_fields, wanted_fields = ({f"{f.name}: {f.type}" for f in schema} for schema in (got, wanted))
    extra, lacking = sorted(got_fields - wanted_fields), sorted(wanted_fields - got_fields)
    return re.sub(r"\s+", " ", f"unexpected {extra or 'none'}, lacking {lacking or 'none'}, or another order")
