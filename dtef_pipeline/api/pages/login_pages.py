"""Logging in to the pages: a cookie that scripts cannot read and other sites cannot use has the id of the login."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from fastapi import Request, Response
from starlette.background import BackgroundTask

from dtef_pipeline.api.access import SESSION_COOKIE, count_failure, find_holder
from dtef_pipeline.api.pages.forms import read_form_fields
from dtef_pipeline.api.pages.page_routes import LOGIN_PATH, build_page_router, redirect_to_page
from dtef_pipeline.api.pages.rendering import page
from dtef_pipeline.api.services import Services, get_services
from dtef_pipeline.api.tokens import LOGGED_IN_S, TokenRole
from dtef_pipeline.errors import DtefError

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
