"""Pages: their templates and navigation, errors as pages, and logging in. Forms count only from pages of this server."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cache, partial
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from jinja2 import ChoiceLoader, Environment, PackageLoader
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException

from dtef_pipeline.api.access import SESSION_COOKIE, count_failure, find_foreign_reason, find_holder, is_own_page
from dtef_pipeline.api.etags import apply_etag, compute_weak_etag
from dtef_pipeline.api.pages.evaluation_text import family_title, partition_words, subject_words
from dtef_pipeline.api.pages.forms import read_form_fields, read_form_lists
from dtef_pipeline.api.problems import Problem, answer_error, handle_problem
from dtef_pipeline.api.services import Services, get_services
from dtef_pipeline.api.tokens import LOGGED_IN_S, TokenRole
from dtef_pipeline.errors import DtefError
from dtef_pipeline.text.amounts import describe_unknown_cost, format_span
from dtef_pipeline.text.number_words import format_count
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


LOGIN_PATH = "/login"
_PROGRAM_PATHS = ("/api/", "/static/", "/healthz")
_TEMPORARY_STATUSES = (401, 429, 500, 503)
_PROBLEM_HEADERS = ("Retry-After", "Allow")
_API_HINT = re.compile(r"[;,] [^;,]*\b(?:GET|PUT|POST) /api/[^;,]*")
"""Part of an error that is only for programs, such as `; those there are: GET /api/personas`."""
_HEADING_OF_STATUS: Mapping[int, str] = {
    HTTPStatus.CONFLICT: "That is not possible now",
    HTTPStatus.PRECONDITION_FAILED: "It has changed since",
    HTTPStatus.PRECONDITION_REQUIRED: "It may have changed since",
    HTTPStatus.UNPROCESSABLE_ENTITY: "That was not accepted",
}
"""Titles of error pages, in place of unclear HTTP reasons."""
_LOGIN_HAS_ENDED = "You are logged out, so nothing was done."


class PageRoute(APIRoute):
    """A route whose errors are pages; a form counts only from a page of this server."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                if request.method == "POST" and (reason := find_foreign_reason(request)) is not None:
                    raise Problem(403, f"the form was not accepted, and nothing was done: {reason}")
                return await handler(request)
            except Exception as error:
                return await _render_error(request, error)

        return answer


def build_page_router() -> APIRouter:
    """Build a router for pages: errors are pages, and its routes are not in the API's description."""
    return APIRouter(route_class=PageRoute, include_in_schema=False)


def handle_errors_with_pages(app: FastAPI) -> None:
    """Make errors outside the routes pages, except for programs."""
    app.add_exception_handler(HTTPException, _answer_error)


def build_login_path(request: Request) -> str:
    """Return the login address, which leads back to the requested page."""
    query = f"?{request.url.query}" if request.url.query else ""
    return f"{LOGIN_PATH}?next={quote(request.url.path + query)}"


def redirect_to_page(path: str) -> RedirectResponse:
    """Redirect the browser after a form."""
    return RedirectResponse(path, 303, {"Cache-Control": "no-store"})


async def _answer_error(request: Request, error: Exception) -> Response:
    """Return the response for an error: a page, except for programs."""
    return await (handle_problem if request.url.path.startswith(_PROGRAM_PATHS) else _render_error)(request, error)


async def _render_error(request: Request, error: Exception) -> Response:
    """Render an error. The fields of a form that can be sent again later are sent back with it."""
    answer = answer_error(request, error)
    status, path = answer.status_code, request.url.path
    is_logged_out = status == HTTPStatus.UNAUTHORIZED
    if is_logged_out and request.method != "POST":
        return redirect_to_page(build_login_path(request))
    problem = json.loads(bytes(answer.body))
    words = _LOGIN_HAS_ENDED if is_logged_out else _API_HINT.sub("", problem["detail"])
    if words == problem["title"]:
        words = f"There is no page at {path[:200]!r} that takes {request.method}."
    is_kept = request.method == "POST" and status in _TEMPORARY_STATUSES and is_own_page(request) and path != LOGIN_PATH
    values: dict[str, Any] = {
        "words": words,
        "kept": await read_form_lists(request) if is_kept else None,
        "is_logged_out": is_logged_out,
    }
    response = page(request, "error", _HEADING_OF_STATUS.get(status, problem["title"]), status=status, **values)
    response.headers.update({name: answer.headers[name] for name in _PROBLEM_HEADERS if name in answer.headers})
    return response


_HOMES: Mapping[TokenRole, str] = {"reviewer": "/review", "operator": "/queue", "admin": "/queue"}
"""The page that a role needs most."""
_log = logging.getLogger(__name__)

router = build_page_router()


# Async, so that they do not wait for a thread while all threads wait for the database.
@router.get("/")
async def first_page(request: Request) -> Response:
    """Redirect to the page that the user needs most."""
    holder = find_holder(request)
    return redirect_to_page(LOGIN_PATH if holder is None else _HOMES[holder.role])


@router.get(LOGIN_PATH)
async def login_form(request: Request, next: str = "") -> Response:
    """The form for a token."""
    return _render_login(request, next)


@router.post(LOGIN_PATH)
async def log_in(request: Request) -> Response:
    """Log in with the token of the form; a wrong one is not shown again."""
    form = await read_form_fields(request)
    token, target = form.get("token", "").strip(), form.get("next", "")
    services = get_services(request)
    holder = services.tokens.holder(token)
    if holder is None:
        count_failure(request)
        return _render_login(request, target, "This token is unknown or was revoked.", status=401)
    answer = redirect_to_page(target if is_own_path(target) else _HOMES[holder.role])
    is_secure = request.url.scheme == "https"
    session = services.sessions.begin(holder.sha256)
    answer.set_cookie(
        SESSION_COOKIE, session, max_age=LOGGED_IN_S, httponly=True, samesite="strict", secure=is_secure, path="/"
    )
    answer.background = BackgroundTask(_log_action, services, holder.name, "log in")
    return answer


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """End the login, on the server and in the browser."""
    services, answer = get_services(request), redirect_to_page(LOGIN_PATH)
    sha256 = services.sessions.end(request.cookies.get(SESSION_COOKIE, ""))
    if sha256 is not None and (holder := services.tokens.find_by_hash(sha256)) is not None:
        answer.background = BackgroundTask(_log_action, services, holder.name, "log out")
    answer.delete_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return answer


def _log_action(services: Services, user: str, action: str) -> None:
    """Write a row to the log of actions after the response, so that an unavailable database does not prevent logins."""
    try:
        services.votes.note(user, action)
    except DtefError as error:
        _log.error("%s of %s was not written to the log of actions: %s", action, user, error)


def is_own_path(path: str) -> bool:
    """Whether a path is one of this server, however a browser interprets it."""
    if not path.startswith("/") or path.startswith(("//", "/\\")):
        return False
    return path.isascii() and path.isprintable() and "\\" not in path


def _render_login(request: Request, target: str, fault: str = "", status: int = 200) -> Response:
    """Render the form. `target`: page after the login."""
    return page(request, "login", "Log in", status=status, fault=fault, wanted=target if is_own_path(target) else "")
