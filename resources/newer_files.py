"""Detection of files that are newer than a table derived from them."""

from __future__ import annotations

import pyarrow.fs as pafs

from resources.warehouse import Warehouse, build_family_levels


def find_newer_values(warehouse: Warehouse, table: str, level: str, output: str, family: str = "") -> list[str]:
    """Return, sorted, the values of a level of `table` with a file newer than the table `output`; none if either has no file.

    `family`: whose part of `output` counts, if that is a table over all families.

    File times decide: rewritten but unchanged files count too.
    """
    last = max((info.mtime_ns for info in _list_infos(warehouse, output, **build_family_levels(output, family))), default=None)
    if last is None:
        return []
    newer = (info.path for info in _list_infos(warehouse, table) if info.mtime_ns > last)
    return sorted({warehouse.place(path)[1][level] for path in newer})


def _list_infos(warehouse: Warehouse, table: str, **levels: str) -> list[pafs.FileInfo]:
    below = pafs.FileSelector(warehouse.folder(table, **levels), recursive=True, allow_not_found=True)
    return [info for info in warehouse.fs.get_file_info(below) if info.is_file and info.mtime_ns is not None]
