"""What the pages load beside their markup: the style sheet and the scripts, from the package, for everybody."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from dtef_pipeline.api.etags import tagged_answer, weak_etag
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.report.page import PAGE_SCRIPT
from dtef_pipeline.report.style import style_sheet
from dtef_pipeline.site.vote_page import vote_style

STYLE_SHEET = "api.css"
"""Begins with the rules of the reports, so that both look alike."""
SCRIPT_OF_TABLES = "tables.js"
"""Sorts tables of reports and makes files of them."""
REVIEW_STYLE = "review.css"
"""Begins with the rules of the page on which people vote without a server, for the same reason."""
_MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}

router = APIRouter(include_in_schema=False)


class StaticFile(NamedTuple):
    """A file as it is sent."""

    content: bytes
    media_type: str
    etag: str


@router.get("/static/{name}")
async def static_file(name: str, request: Request) -> Response:
    """The file, which browsers keep and ask for again by its tag. Async, so that it waits for no thread."""
    found = static_files().get(name)
    if found is None:
        raise Problem(404, "there is no such file")
    return tagged_answer(request, Response(found.content, media_type=found.media_type), found.etag)


@cache
def static_files() -> dict[str, StaticFile]:
    """By name, all there are."""
    found = {}
    for file in files("dtef_pipeline.api").joinpath("static").iterdir():
        media_type = next((kind for end, kind in _MEDIA_TYPES.items() if file.name.endswith(end)), None)
        if media_type is not None:
            words = file.read_text(encoding="utf-8")
            content = f"{_rules_before(file.name)}{words}"
            found[file.name] = _static_file(content, media_type)
    return found | {SCRIPT_OF_TABLES: _static_file(PAGE_SCRIPT, _MEDIA_TYPES[".js"])}


def _static_file(content: str, media_type: str) -> StaticFile:
    return StaticFile(content.encode(), media_type, weak_etag(content))


def _rules_before(name: str) -> str:
    if name == STYLE_SHEET:
        return f"{style_sheet(())}\n"
    return vote_style() if name == REVIEW_STYLE else ""
