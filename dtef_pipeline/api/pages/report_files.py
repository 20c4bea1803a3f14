"""The static site of all families, which `dtef report` wrote into the folder `report` of the warehouse. Only its own files are served."""

from __future__ import annotations

from pathlib import PurePath

from fastapi import Request, Response

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.etags import apply_etag
from dtef_pipeline.api.pages.page_routes import build_page_router, redirect_to_page
from dtef_pipeline.api.pages.static_files import MEDIA_TYPES
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.services import ServicesDep
from dtef_pipeline.site.paths import FRONT_PAGE

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
