"""The site in the folder of a warehouse, in which pages of families with unchanged tables are kept."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow.fs as pafs

import dtef_pipeline
from dtef_pipeline.families import SHARED_TABLES
from dtef_pipeline.identity import digest
from dtef_pipeline.site.paths import board_page
from resources.site_writer import SiteWriteResult, find_site_folder, read_page_list, read_texts, write_pages

if TYPE_CHECKING:
    from dtef_pipeline.site.family_content import FamilySite
    from resources.warehouse import Warehouse

_FINGERPRINTS_FILE = ".families.json"
"""The file next to the pages with a fingerprint of each family's sources."""


def write_site(warehouse: Warehouse, instead: Iterable[FamilySite] = ()) -> SiteWriteResult:
    """Write the site over all families into the folder of the warehouse. `instead`: see `sites.load_family_sites`.

    Details of a family are kept if its fingerprint is unchanged; pages over all families are always rewritten.
    """
    from dtef_pipeline.sites import list_site_tables, load_family_sites, make_site

    sites = load_family_sites(instead)

    def write(connection: duckdb.DuckDBPyConnection) -> SiteWriteResult:
        now = _fingerprints(warehouse, connection, sites)
        earlier = read_texts(warehouse.fs, f"{find_site_folder(warehouse)}/{_FINGERPRINTS_FILE}")
        kept_names = {name for name in now if earlier.get(name) == now[name] and _is_whole(warehouse, name)}
        # If writing is interrupted, the other families' pages are made again the next time.
        _store(warehouse, {name: now[name] for name in kept_names})
        pages = make_site(connection, sites, kept_names)
        result = write_pages(
            warehouse.fs, find_site_folder(warehouse), pages, warehouse.put, lambda page: page.partition("/")[0] in kept_names
        )
        _store(warehouse, now)
        return result

    return warehouse.query(write, only=list_site_tables())


def _fingerprints(warehouse: Warehouse, connection: duckdb.DuckDBPyConnection, sites: Collection[FamilySite]) -> dict[str, str]:
    """Return by family a digest of the sources of its pages: its tables' files, its documents, the navigation, and the program."""
    from dtef_pipeline.site.build import navigation_names

    shared = (*_program(), *navigation_names(connection, list(sites)))
    return {site.family: digest(site.documents, *shared, *_table_files(warehouse, site)) for site in sites}


def _table_files(warehouse: Warehouse, site: FamilySite) -> Iterator[tuple[str, int, int | None]]:
    """Yield path, size and time of each file of a family's tables and its part of the tables over all families."""
    folders = [warehouse.folder(table) for table in site.tables]
    folders += [warehouse.folder(table, family=site.family) for table in SHARED_TABLES]
    for folder in sorted(folders):
        infos = warehouse.fs.get_file_info(pafs.FileSelector(folder, allow_not_found=True, recursive=True))
        yield from sorted((info.path, info.size, info.mtime_ns) for info in infos if info.type == pafs.FileType.File)


def _program() -> Iterator[tuple[object, ...]]:
    """Yield versions of installed packages, and files of this package, which in a working copy change without a version."""
    yield from sorted({(package.name, package.version) for package in distributions()})
    root = Path(dtef_pipeline.__file__).parent
    for path in sorted(root.rglob("*.*")):
        if path.suffix in (".py", ".j2", ".js", ".css"):
            stat = path.stat()
            yield path.relative_to(root).as_posix(), stat.st_size, stat.st_mtime_ns


def _is_whole(warehouse: Warehouse, family: str) -> bool:
    """Return whether every written page of the family still exists."""
    folder = find_site_folder(warehouse)
    names = {name for name in read_page_list(warehouse.fs, folder) if name.startswith(f"{family}/")}
    selector = pafs.FileSelector(f"{folder}/{family}", allow_not_found=True, recursive=True)
    paths = {info.path for info in warehouse.fs.get_file_info(selector)}
    return board_page(family) in names and all(f"{folder}/{name}" in paths for name in names)


def _store(warehouse: Warehouse, fingerprints: Mapping[str, str]) -> None:
    warehouse.put(f"{find_site_folder(warehouse)}/{_FINGERPRINTS_FILE}", json.dumps(fingerprints, indent=1).encode())
