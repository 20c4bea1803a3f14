"""Static files of the pages, available without a login: the site's style sheet and script, and those of the API."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from dtef_pipeline.api.etags import apply_etag, compute_weak_etag
from dtef_pipeline.api.problems import Problem

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
_SITE_FILES = ("site.css", "site.js")
_REVIEW_STYLE = "review.css"
"""Starts with the style rules of the offline voting page, so that both look alike."""

router = APIRouter(include_in_schema=False)


class StaticFile(NamedTuple):
    """A file ready to send."""

    content: bytes
    media_type: str
    etag: str


@router.get("/static/{name}")
async def static_file(name: str, request: Request) -> Response:
    """The file, which browsers cache and revalidate by its tag. Async, so that it needs no thread."""
    file = static_files().get(name)
    if file is None:
        raise Problem(404, "no such file")
    return apply_etag(request, Response(file.content, media_type=file.media_type), file.etag)


@cache
def static_files() -> dict[str, StaticFile]:
    """Return all files by name."""
    paths = [f for f in files("dtef_pipeline.api").joinpath("static").iterdir() if PurePath(f.name).suffix in MEDIA_TYPES]
    shared = [files("dtef_pipeline.site").joinpath("static", name) for name in _SITE_FILES]
    texts = {path.name: path.read_text(encoding="utf-8") for path in [*shared, *paths]}
    votes = files("dtef_pipeline.site").joinpath("templates", "vote_page.css").read_text(encoding="utf-8")
    texts[_REVIEW_STYLE] = f"{votes}\n{texts[_REVIEW_STYLE]}"
    return {
        name: StaticFile(text.encode(), MEDIA_TYPES[PurePath(name).suffix], compute_weak_etag(text))
        for name, text in texts.items()
    }
