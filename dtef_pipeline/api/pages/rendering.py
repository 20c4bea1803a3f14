"""HTML pages from the templates of the API and, as a fallback, of the site, whose macros they use. Everything is escaped."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import ChoiceLoader, Environment, PackageLoader

from dtef_pipeline.api.access import find_holder
from dtef_pipeline.api.etags import apply_etag, compute_weak_etag
from dtef_pipeline.api.pages.evaluation_text import family_title, partition_words, subject_words
from dtef_pipeline.api.services import get_services
from dtef_pipeline.api.tokens import TokenRole
from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.spans import format_span
from dtef_pipeline.text.unknown_cost import describe_unknown_cost
from dtef_pipeline.text.well_formed import replace_surrogates

LONGEST_BRIEF = 240
"""Number of characters of a text that are shown before it is expanded."""


NAVIGATION: tuple[tuple[str, str, TokenRole], ...] = (
    ("/queue", "Queue", "operator"),
    ("/new", "New evaluation", "operator"),
    ("/personas", "Personas", "operator"),
    ("/scenarios", "Scenarios", "operator"),
    ("/review", "Review", "reviewer"),
    ("/votes", "Votes", "operator"),
    ("/board", "Board", "operator"),
    ("/report/", "Report", "operator"),
    ("/health", "Health", "operator"),
    ("/actions", "Actions", "admin"),
)
"""Path and title of each page in the navigation, and the role that may see it."""


@cache
def environment() -> Environment:
    """Return the templates. The site's import pandas and Altair, so they are loaded by the first page, not at the server's start."""
    from dtef_pipeline.site.content import Column, Table
    from dtef_pipeline.site.rendering import environment as site_environment

    site = site_environment()
    assert site.loader is not None
    env = site.overlay(loader=ChoiceLoader([PackageLoader("dtef_pipeline.api"), site.loader]))
    as_json = partial(json.dumps, ensure_ascii=False, indent=2, sort_keys=True)
    env.filters = {**site.filters, "as_json": as_json, "span": format_span, "family_title": family_title}
    env.globals = {**site.globals, "Column": Column, "Table": Table, "longest_brief": LONGEST_BRIEF}
    env.globals |= {"counted": format_count, "unknown_cost": describe_unknown_cost}
    env.globals |= {"partition_words": partition_words, "subject_words": subject_words}
    return env


def render(template: str, values: Mapping[str, Any]) -> str:
    """Render a template, without characters that are invalid in HTML. `root`: address of pages for the site's macros."""
    return replace_surrogates(environment().get_template(f"{template}.html.j2").render(root="/", **values))


def page(
    request: Request, template: str, title: str, *, status: int = 200, scripts: Sequence[str] = (), **values: Any
) -> HTMLResponse:
    """Render a page: a template that extends `base.html.j2`, with its values. `scripts`: names of files under `/static/`."""
    holder = find_holder(request)
    shared = {
        "title": title,
        "scripts": scripts,
        "path": request.url.path,
        "holder": holder,
        "open_to_all": get_services(request).open_to_all,
        "navigation": [(address, name) for address, name, role in NAVIGATION if holder and holder.may(role)],
    }
    return HTMLResponse(render(template, shared | values), status, {"Cache-Control": "no-store"})


def part(request: Request, template: str, **values: Any) -> Response:
    """Render a part of a page, or return 304 if the script has it already."""
    markup = render(template, values)
    return apply_etag(request, HTMLResponse(markup), compute_weak_etag(markup))
