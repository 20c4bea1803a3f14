"""Static files of the pages, available without a login: the site's style sheet and script, those of the offline voting page and of the API."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import PurePath

from fastapi import APIRouter, Request, Response

from dtef_pipeline.api.etags import apply_etag, compute_weak_etag
from dtef_pipeline.api.problems import Problem

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
