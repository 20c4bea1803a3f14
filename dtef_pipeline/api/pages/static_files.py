"""Static files of the pages, available without a login, and the report's files, which operators may read."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import PurePath

from fastapi import APIRouter, Request, Response

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.etags import apply_etag, compute_weak_etag
from dtef_pipeline.api.pages.page_routes import build_page_router, redirect_to_page
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.services import ServicesDep
from dtef_pipeline.site.paths import FRONT_PAGE

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
_SITE_FILES = ("static/site.css", "static/site.js", "templates/vote_page.css")

router = APIRouter(include_in_schema=False)


@router.get("/static/{name}")
async def static_file(name: str, request: Request) -> Response:
    """The file, which browsers cache and revalidate by its tag. Async, so that it needs no thread."""
    if (text := static_texts().get(name)) is None:
        raise Problem(404, "no such file")
    return apply_etag(request, Response(text, media_type=MEDIA_TYPES[PurePath(name).suffix]), compute_weak_etag(text))


@cache
def static_texts() -> dict[str, str]:
    """Return the texts of all files by name."""
    paths = [files("dtef_pipeline.site").joinpath(path) for path in _SITE_FILES]
    paths += [path for path in files("dtef_pipeline.api").joinpath("static").iterdir() if path.name.endswith((".css", ".js"))]
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


_NO_REPORT = "There is no report yet. Run `dtef report`, or wait for Dagster to make it after the next round of evaluations."
_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""The policy in the pages themselves: charts may evaluate their definitions, and the API cannot be called."""
_TYPES_OF_REPORT = {**MEDIA_TYPES, ".json": "application/json", ".csv": "text/csv; charset=utf-8", ".svg": "image/svg+xml"}

report_router = build_page_router()


@report_router.get("/report")
def report(holder: OperatorToken) -> Response:
    """The front page of the report."""
    return redirect_to_page("/report/")


@report_router.get("/report/{path:path}")
def report_file(path: str, request: Request, services: ServicesDep, holder: OperatorToken) -> Response:
    """A file of the report. Raises Problem 404 for a path outside the list of its files, even if a file exists there."""
    # These bring pyarrow, which the API starts without.
    from resources.site_writer import find_site_folder, read_page_list
    from resources.warehouse import Warehouse

    warehouse = Warehouse(services.settings.warehouse)
    folder, name = find_site_folder(warehouse), path or FRONT_PAGE
    hashes = read_page_list(warehouse.fs, folder)
    if name not in hashes:
        raise Problem(404, f"the report has no page {path[:200]!r}" if hashes else _NO_REPORT)
    media_type = _TYPES_OF_REPORT.get(PurePath(name).suffix, "application/octet-stream")
    with warehouse.fs.open_input_stream(f"{folder}/{name}") as stream:
        answer = Response(stream.read(), media_type=media_type, headers={"Content-Security-Policy": _POLICY})
    return apply_etag(request, answer, f'W/"{hashes[name]}"')
