"""One Parquet file: how it is read, and what is wrong with one that cannot be."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from dtef_pipeline.errors import WarehouseError


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
    return rows


def schema_difference(got: pa.Schema, wanted: pa.Schema) -> str:
    """The columns by which two schemas differ, in words."""
    got_fields, wanted_fields = ({f"{f.name}: {f.type}" for f in schema} for schema in (got, wanted))
    extra, lacking = sorted(got_fields - wanted_fields), sorted(wanted_fields - got_fields)
    return re.sub(r"\s+", " ", f"unexpected {extra or 'none'}, lacking {lacking or 'none'}, or another order")
