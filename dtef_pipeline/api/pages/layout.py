"""What every page has: title, navigation by role, and one main part. Errors of pages are pages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from dtef_pipeline.api.access import holder_of, is_own_page, why_foreign
from dtef_pipeline.api.pages.elements import Content, Html, element, link
from dtef_pipeline.api.pages.form_parts import form_lists
from dtef_pipeline.api.problems import Problem, answer_error, told_problem
from dtef_pipeline.api.services import services_of
from dtef_pipeline.api.tokens import HeldToken, TokenRole

LOGIN_PATH = "/login"
_OF_PROGRAMS = ("/api/", "/static/", "/healthz")
_TAKEN_LATER = (401, 429, 500, 503)
_KEPT_OF_PROBLEM = ("Retry-After", "Allow")
_OF_THE_API = re.compile(r"[;,] [^;,]*\b(?:GET|PUT|POST) /api/[^;,]*")
"""What an error says for programs alone, such as `; those there are: GET /api/personas`."""
_HEADING_OF_STATUS: Mapping[int, str] = {
    HTTPStatus.CONFLICT: "That cannot be done now",
    HTTPStatus.PRECONDITION_FAILED: "It has changed since",
    HTTPStatus.PRECONDITION_REQUIRED: "It may have changed since",
    HTTPStatus.UNPROCESSABLE_ENTITY: "That was not taken",
}
"""Of error pages, where the words of HTTP say little to people."""
_LOGIN_HAS_ENDED = "You are logged out, so that nothing was done."


class NavigationEntry(NamedTuple):
    """A page that the navigation of every page names, for those who may see it."""

    path: str
    title: str
    role: TokenRole


NAVIGATION = (
    NavigationEntry("/queue", "Queue", "operator"),
    NavigationEntry("/new", "New evaluation", "operator"),
    NavigationEntry("/personas", "Personas", "operator"),
    NavigationEntry("/scenarios", "Scenarios", "operator"),
    NavigationEntry("/review", "Review", "reviewer"),
    NavigationEntry("/votes", "Votes", "operator"),
    NavigationEntry("/board", "Board", "operator"),
    NavigationEntry("/health", "Health", "operator"),
    NavigationEntry("/actions", "Actions", "admin"),
)


def page(
    request: Request, title: str, *body: Content, status: int = 200, scripts: Sequence[str] = (), introduction: Content = None
) -> HTMLResponse:
    """A page. `title` is text, `body` is text or elements (`element`); `scripts` are names of files under `/static/`."""
    held = holder_of(request)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("title", f"{title} · DTEF pipeline"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("link", rel="stylesheet", href="/static/api.css"),
        element("link", rel="icon", href="data:,"),
        [element("script", src=f"/static/{name}", defer=True) for name in scripts],
    )
    shown = element(
        "body",
        link("#main", "Skip to the content", class_="skip"),
        _navigation(request, held) if held else None,
        element("header", element("h1", title), introduction),
        element("main", *body, id="main"),
    )
    document = f"<!doctype html>\n{element('html', head, shown, lang='en')}\n"
    return HTMLResponse(document, status, {"Cache-Control": "no-store"})


def _navigation(request: Request, held: HeldToken) -> Html:
    items = [
        element("li", link(entry.path, entry.title, aria_current=_current(request, entry.path)))
        for entry in NAVIGATION
        if held.may(entry.role)
    ]
    leave = element("form", element("button", "Log out", type="submit"), method="post", action="/logout")
    who = element("li", element("span", element("bdi", held.name), f" ({held.role})", class_="who"), leave, class_="session")
    return element("nav", element("ul", items, None if services_of(request).open_to_all else who), aria_label="Pages")


def _current(request: Request, path: str) -> str | None:
    here = request.url.path
    if here == path:
        return "page"
    return "true" if here.startswith(f"{path}/") else None


def login_path(request: Request) -> str:
    """Where who is logged out logs in, and comes back from to the page that was asked for."""
    query = f"?{request.url.query}" if request.url.query else ""
    return f"{LOGIN_PATH}?next={quote(request.url.path + query)}"


def to_page(path: str) -> RedirectResponse:
    """Where a browser goes after a form."""
    return RedirectResponse(path, 303, {"Cache-Control": "no-store"})


class PageRoute(APIRoute):
    """A route whose errors are pages; who is not known is asked to log in, and a form counts only from a page of this server."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                if request.method == "POST" and (reason := why_foreign(request)) is not None:
                    raise Problem(403, f"the form was not taken, and nothing was done: {reason}")
                return await handler(request)
            except Exception as error:
                return await _error_page(request, error)

        return answered


def page_router() -> APIRouter:
    """A router for pages: errors are pages, and nothing of it stands in the description of the API."""
    return APIRouter(route_class=PageRoute, include_in_schema=False)


def answer_with_pages(app: FastAPI) -> None:
    """Have what no route answers be a page, but for programs."""
    app.add_exception_handler(HTTPException, _answer_error)


async def _answer_error(request: Request, error: Exception) -> Response:
    """The answer of an error: a page, but for programs."""
    return await (told_problem if request.url.path.startswith(_OF_PROGRAMS) else _error_page)(request, error)


async def _error_page(request: Request, error: Exception) -> Response:
    answer = answer_error(request, error)
    status = answer.status_code
    if status == HTTPStatus.UNAUTHORIZED and request.method != "POST":
        return to_page(login_path(request))
    told = json.loads(bytes(answer.body))
    said = _LOGIN_HAS_ENDED if status == HTTPStatus.UNAUTHORIZED else told["detail"]
    said = _OF_THE_API.sub("", said)
    if said == told["title"]:
        said = f"There is no page at {request.url.path[:200]!r} that takes {request.method}."
    detail = element("p", element("bdi", said), class_="fault", role="alert", id="said")
    shown = page(
        request,
        _HEADING_OF_STATUS.get(status, told["title"]),
        detail,
        await _sent_again(request, status),
        _ways_back(request),
        status=status,
    )
    shown.headers.update({name: answer.headers[name] for name in _KEPT_OF_PROBLEM if name in answer.headers})
    return shown


async def _sent_again(request: Request, status: int) -> Content:
    """A form with all that was sent, where that can be taken later."""
    if request.method != "POST" or status not in _TAKEN_LATER or not is_own_page(request) or request.url.path == LOGIN_PATH:
        return None
    fields = [
        element("input", type="hidden", name=name, value=value)
        for name, values in (await form_lists(request)).items()
        for value in values
    ]
    login = element("p", link(LOGIN_PATH, "Log in in another tab", target="_blank"), ", then come back to this one.")
    return element(
        "form",
        element("p", "Nothing you entered is lost: it can be sent again from here."),
        login if status == HTTPStatus.UNAUTHORIZED else None,
        fields,
        element("button", "Send it again", type="submit", class_="main"),
        method="post",
        action=request.url.path,
    )


def _ways_back(request: Request) -> Html:
    """To the page that was left, to the part of the pages that the address is of, and to the first page."""
    here = request.url.path
    held = holder_of(request)
    open_to = [one for one in NAVIGATION if held and held.may(one.role)]
    part = next((one for one in open_to if here == one.path or here.startswith(f"{one.path}/")), None)
    part = part or (open_to[0] if len(open_to) == 1 else None)
    left = urlsplit(request.headers.get("referer", ""))
    ways = {
        **({left.path: "Back to the page before"} if left.netloc == request.headers.get("host") and left.path != here else {}),
        **({part.path: f"To the page {part.title}"} if part and part.path != here else {}),
        "/": "To the first page",
    }
    return element("ul", [element("li", link(address, words)) for address, words in ways.items()], class_="ways")
