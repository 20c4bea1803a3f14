"""Where tables are kept: a folder of this machine, or an object store."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from dtef_pipeline.errors import WarehouseError


def open_root(root: str | Path) -> tuple[pafs.FileSystem, str]:
    """The file system of a folder, or of a URL such as `s3://bucket/prefix`, and the path in it. Raises WarehouseError for a URL of no store."""
    text = str(root)
    if "://" not in text:
        return pafs.LocalFileSystem(), str(Path(text).absolute())
    try:
        fs, path = pafs.FileSystem.from_uri(text)
    except (pa.ArrowException, OSError) as error:
        raise WarehouseError(f"cannot use the warehouse {re.sub(r'(?<=://)[^/@]*@', '', text)}: {error}") from error
    return fs, path.rstrip("/")
