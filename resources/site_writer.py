"""Files of a site in a folder, with a list of them: files of an earlier report that a later one lacks are removed.

A file that is not in the list, or was changed since, is never removed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.fs as pafs

from dtef_pipeline.site.paths import PAGE_MARK, SCRIPT_MARK, SITE_FOLDER

if TYPE_CHECKING:
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
    n_kept: int = 0
    """Number of unchanged files of an earlier write."""


def write_pages(
    fs: pafs.FileSystem,
    folder: str,
    pages: Iterable[tuple[str, str]],
    put: Callable[[str, bytes], object],
    is_kept: Callable[[str], bool] = lambda name: False,
) -> SiteWriteResult:
    """Write files (path in the folder, text) into an existing folder, and remove earlier ones that are not among them.

    `is_kept`: whether an earlier file stays, by its path. `put` writes a file: full path and content. If writing is interrupted, nothing is
    removed, and the written files are in the list.
    """
    earlier = read_page_list(fs, folder)
    sizes: dict[str, int] = {}
    hashes = {name: page_hash for name, page_hash in earlier.items() if is_kept(name)}
    try:
        for name, page in pages:
            content = page.encode()
            put(f"{folder}/{name}", content)
            sizes[name], hashes[name] = len(content), _hash(content)
    except BaseException:
        _list(put, folder, {**earlier, **hashes})
        raise
    names = _remove(fs, folder, {name: page_hash for name, page_hash in earlier.items() if name not in hashes})
    _list(put, folder, hashes)
    return SiteWriteResult(sizes, names, len(hashes) - len(sizes))


def find_site_folder(warehouse: Warehouse) -> str:
    """Return the site's folder in a warehouse."""
    return f"{warehouse.root}/{SITE_FOLDER}"


def make_foreign_check(fs: pafs.FileSystem, folder: str) -> Callable[[str], bool]:
    """Return a check whether a file of that name in the folder is from no report: it is not in the list and lacks the mark of a page."""
    known_names = read_page_list(fs, folder)

    def is_foreign(name: str) -> bool:
        path = f"{folder}/{name}"
        kind = fs.get_file_info(path).type
        if name in known_names or kind == pafs.FileType.NotFound:
            return False
        if kind != pafs.FileType.File:
            return True
        with fs.open_input_stream(path) as stream:
            begins = stream.read(_MARK_WITHIN)
        return PAGE_MARK.encode() not in begins and not begins.startswith(SCRIPT_MARK.encode())

    return is_foreign


def _remove(fs: pafs.FileSystem, folder: str, hashes: Mapping[str, str]) -> list[str]:
    """Remove the files that are as they were written; return their names."""
    names = []
    for name, page_hash in hashes.items():
        path = f"{folder}/{name}"
        if fs.get_file_info(path).type == pafs.FileType.File:
            with fs.open_input_stream(path) as stream:
                is_ours = _hash(stream.read()) == page_hash
            if is_ours:
                fs.delete_file(path)
                names.append(name)
    return names


def read_page_list(fs: pafs.FileSystem, folder: str) -> dict[str, str]:
    """Return the hash of each file written into a folder, by its path there; empty without a valid list."""
    pages = read_texts(fs, f"{folder}/{PAGES_LIST}")
    # No path may lead out of the folder.
    return {name: value for name, value in pages.items() if {"", ".", ".."}.isdisjoint(name.split("/")) and "\\" not in name}


def read_texts(fs: pafs.FileSystem, path: str) -> dict[str, str]:
    """Return the texts of a JSON object by name; empty if the file is missing or has other content."""
    if fs.get_file_info(path).type != pafs.FileType.File:
        return {}
    with fs.open_input_stream(path) as stream:
        text = stream.read()
    try:
        values = json.loads(text)
    except ValueError:
        return {}
    pairs = values.items() if isinstance(values, dict) else ()
    return {name: value for name, value in pairs if isinstance(value, str)}


def _list(put: Callable[[str, bytes], object], folder: str, hashes: Mapping[str, str]) -> None:
    put(f"{folder}/{PAGES_LIST}", json.dumps(hashes, indent=1).encode())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
