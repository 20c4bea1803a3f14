"""Files of a site in a folder, with a list of them: files of an earlier report that a later one lacks are removed.

A file that is not in the list, or was changed since, is never removed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.fs as pafs

from dtef_pipeline.site.paths import PAGE_MARK, SCRIPT_MARK, SITE_FOLDER

if TYPE_CHECKING:
    import duckdb

    from dtef_pipeline.site.family_content import FamilySite
    from resources.warehouse import Warehouse

PAGES_LIST = ".pages.json"
"""The file that lists the pages written here: a hash by page name."""

_MARK_WITHIN = 100_000
"""Number of bytes of a file that contain a page's mark, after a title of any allowed length."""


class SiteWriteResult(NamedTuple):
    """The result of writing."""

    sizes: dict[str, int]
    """Sizes in bytes by name."""
    removed: list[str]


def write_site(warehouse: Warehouse, instead: Iterable[FamilySite] = ()) -> SiteWriteResult:
    """Write the site over all families into the folder of the warehouse. `instead`: see `sites.load_family_sites`."""
    from dtef_pipeline.sites import list_site_tables, make_site

    def write(connection: duckdb.DuckDBPyConnection) -> SiteWriteResult:
        return write_pages(warehouse.fs, find_site_folder(warehouse), make_site(connection, instead), warehouse.put)

    return warehouse.query(write, only=list_site_tables())


def write_pages(
    fs: pafs.FileSystem, folder: str, pages: Iterable[tuple[str, str]], put: Callable[[str, bytes], object]
) -> SiteWriteResult:
    """Write files (path in the folder, text) into an existing folder, and remove earlier ones that are not among them.

    `put` writes a file: full path and content. If writing is interrupted, nothing is removed, and the written files are in the list.
    """
    hashes, sizes, removed = read_page_list(fs, folder), dict[str, int](), list[str]()
    try:
        for name, page in pages:
            content = page.encode()
            put(f"{folder}/{name}", content)
            sizes[name], hashes[name] = len(content), _hash(content)
        for name in hashes.keys() - sizes.keys():
            page_hash, path = hashes.pop(name), f"{folder}/{name}"
            if _is_file(fs, path) and _hash(_read(fs, path)) == page_hash:
                fs.delete_file(path)
                removed.append(name)
    finally:
        put(f"{folder}/{PAGES_LIST}", json.dumps(hashes, indent=1).encode())
    return SiteWriteResult(sizes, sorted(removed))


def find_site_folder(warehouse: Warehouse) -> str:
    """Return the site's folder in a warehouse."""
    return f"{warehouse.root}/{SITE_FOLDER}"


def make_foreign_check(fs: pafs.FileSystem, folder: str) -> Callable[[str], bool]:
    """Return a check whether a file of that name in the folder is from no report: it is not in the list and lacks the mark of a page."""
    known_names = read_page_list(fs, folder)

    def is_foreign(name: str) -> bool:
        path = f"{folder}/{name}"
        if name in known_names or fs.get_file_info(path).type == pafs.FileType.NotFound:
            return False
        begins = _read(fs, path, _MARK_WITHIN) if _is_file(fs, path) else b""
        return PAGE_MARK.encode() not in begins and not begins.startswith(SCRIPT_MARK.encode())

    return is_foreign


def read_page_list(fs: pafs.FileSystem, folder: str) -> dict[str, str]:
    """Return the hash of each file written into a folder, by its path there; empty without a valid list."""
    path = f"{folder}/{PAGES_LIST}"
    try:
        pages = json.loads(_read(fs, path)) if _is_file(fs, path) else {}
    except ValueError:
        return {}
    return {
        name: value
        for name, value in (pages.items() if isinstance(pages, dict) else ())
        # No path may lead out of the folder.
        if isinstance(value, str) and {"", ".", ".."}.isdisjoint(name.split("/")) and "\\" not in name
    }


def _is_file(fs: pafs.FileSystem, path: str) -> bool:
    return bool(fs.get_file_info(path).type == pafs.FileType.File)


def _read(fs: pafs.FileSystem, path: str, n_bytes: int | None = None) -> bytes:
    """Return the first `n_bytes` of a file; None: all."""
    with fs.open_input_stream(path) as stream:
        content: bytes = stream.read(n_bytes)
    return content


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
