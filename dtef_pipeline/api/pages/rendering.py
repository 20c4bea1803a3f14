"""Pages as HTML, made of the templates of the API and, behind these, of the site's, whose macros they use. Everything is escaped."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import ChoiceLoader, Environment, PackageLoader

from dtef_pipeline.api.access import find_holder
from dtef_pipeline.api.etags import apply_etag, compute_weak_etag
from dtef_pipeline.api.services import get_services
from dtef_pipeline.api.tokens import TokenRole
from dtef_pipeline.text.quantity_words import format_count
from dtef_pipeline.text.well_formed import replace_surrogates

LONGEST_BRIEF = 240
"""Characters of a text that are shown before it is opened."""


class NavigationEntry(NamedTuple):
    """A page that the navigation of every page names, for those who may see it."""

    path: str
    title: str
    role: TokenRole

    def holds(self, path: str) -> bool:
        """Whether a path is that of the page, or one below it."""
        return path == self.path or path.startswith(f"{self.path.rstrip('/')}/")


NAVIGATION = (
    NavigationEntry("/queue", "Queue", "operator"),
    NavigationEntry("/new", "New evaluation", "operator"),
    NavigationEntry("/personas", "Personas", "operator"),
    NavigationEntry("/scenarios", "Scenarios", "operator"),
    NavigationEntry("/review", "Review", "reviewer"),
    NavigationEntry("/votes", "Votes", "operator"),
    NavigationEntry("/board", "Board", "operator"),
    NavigationEntry("/report/", "Report", "operator"),
    NavigationEntry("/health", "Health", "operator"),
    NavigationEntry("/actions", "Actions", "admin"),
)


@cache
def environment() -> Environment:
    """The templates. Pandas and Altair, which the site's bring, are loaded by the first page, not by who starts the server."""
    from dtef_pipeline.site.content import Column, Table
    from dtef_pipeline.site.rendering import environment as site_environment

    site = site_environment()
    assert site.loader is not None
    env = site.overlay(loader=ChoiceLoader([PackageLoader("dtef_pipeline.api"), site.loader]))
    env.filters = {**site.filters, "as_json": _format_json_lines}
    env.globals = {**site.globals, "Column": Column, "Table": Table, "counted": format_count, "longest_brief": LONGEST_BRIEF}
    return env


def _format_json_lines(value: Any) -> str:
    """A document as JSON that is read line by line."""
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)


def render(template: str, values: Mapping[str, Any]) -> str:
    """What a template makes of values, without characters that HTML cannot have. `root`: where the site's macros find pages."""
    return replace_surrogates(environment().get_template(f"{template}.html.j2").render(root="/", **values))


def page(
    request: Request, template: str, title: str, *, status: int = 200, scripts: Sequence[str] = (), **values: Any
) -> HTMLResponse:
    """A page: a template that extends `base.html.j2`, with its values. `scripts`: names of files under `/static/`."""
    holder = find_holder(request)
    shared = {
        "title": title,
        "scripts": scripts,
        "path": request.url.path,
        "held": holder,
        "open_to_all": get_services(request).open_to_all,
        "navigation": [area for area in NAVIGATION if holder and holder.may(area.role)],
    }
    return HTMLResponse(render(template, shared | values), status, {"Cache-Control": "no-store"})


def part(request: Request, template: str, **values: Any) -> Response:
    """A part of a page, or 304 where the script has it already."""
    markup = render(template, values)
    return apply_etag(request, HTMLResponse(markup), compute_weak_etag(markup))
