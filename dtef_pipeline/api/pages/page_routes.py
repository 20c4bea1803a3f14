"""Routes of pages: errors are pages, unknown users are redirected to the login, and forms count only from pages of this server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from dtef_pipeline.api.access import find_foreign_reason, is_own_page
from dtef_pipeline.api.pages.forms import read_form_lists
from dtef_pipeline.api.pages.rendering import page
from dtef_pipeline.api.problems import Problem, answer_error, handle_problem

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
    values = {"words": words, "kept": await read_form_lists(request) if is_kept else None, "is_logged_out": is_logged_out}
    response = page(request, "error", _HEADING_OF_STATUS.get(status, problem["title"]), status=status, **values)
    response.headers.update({name: answer.headers[name] for name in _PROBLEM_HEADERS if name in answer.headers})
    return response
