"""The static site of all families, which `dtef report` wrote into the folder `report` of the warehouse. Only its own files are served."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from fastapi import Request, Response

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.etags import apply_etag
from dtef_pipeline.api.pages.page_routes import build_page_router, redirect_to_page
from dtef_pipeline.api.pages.static_files import MEDIA_TYPES
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.services import ServicesDep
from dtef_pipeline.site.paths import FRONT_PAGE

if TYPE_CHECKING:
    from resources.warehouse import Warehouse

_NO_REPORT = "There is no report yet. Run `dtef report`, or wait for Dagster to make it after the next round of evaluations."
_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""The policy in the pages themselves: charts may evaluate their definitions, and the API cannot be called."""
_TYPES_OF_REPORT = {**MEDIA_TYPES, ".json": "application/json", ".csv": "text/csv; charset=utf-8", ".svg": "image/svg+xml"}

router = build_page_router()


@router.get("/report")
def report(holder: OperatorToken) -> Response:
    """The front page of the report."""
    return redirect_to_page("/report/")


@router.get("/report/{path:path}")
def report_file(path: str, request: Request, services: ServicesDep, holder: OperatorToken) -> Response:
    """A file of the report. Raises Problem 404 for a path outside the list of its files, even if a file exists there."""
    root = services.settings.warehouse
    hashes = _read_hashes(root)
    if not hashes:
        raise Problem(404, _NO_REPORT)
    name = path or FRONT_PAGE
    if name not in hashes:
        raise Problem(404, f"the report has no page {path[:200]!r}")
    media_type = _TYPES_OF_REPORT.get(PurePath(name).suffix, "application/octet-stream")
    answer = Response(_read(root, name), media_type=media_type, headers={"Content-Security-Policy": _POLICY})
    return apply_etag(request, answer, f'W/"{hashes[name]}"')


def _read_hashes(root: str | Path) -> Mapping[str, str]:
    """Read the hashes of the report's files by path below the folder; empty if there is no report."""
    from pyarrow.fs import FileType

    from resources.site_writer import PAGES_LIST, find_site_folder

    warehouse = _warehouse(root)
    info = warehouse.fs.get_file_info(f"{find_site_folder(warehouse)}/{PAGES_LIST}")
    return _hashes_as_of(root, info.mtime_ns, info.size) if info.type == FileType.File else {}


@lru_cache(maxsize=4)
def _hashes_as_of(root: str | Path, mtime_ns: int, size: int) -> Mapping[str, str]:
    from resources.site_writer import find_site_folder, read_page_list

    warehouse = _warehouse(root)
    return read_page_list(warehouse.fs, find_site_folder(warehouse))


def _read(root: str | Path, name: str) -> bytes:
    from resources.site_writer import find_site_folder

    warehouse = _warehouse(root)
    with warehouse.fs.open_input_stream(f"{find_site_folder(warehouse)}/{name}") as stream:
        content: bytes = stream.read()
    return content


def _warehouse(root: str | Path) -> Warehouse:
    from resources.warehouse import Warehouse

    return Warehouse(root)
