"""Logging in to the pages: the token is kept in a cookie that no script can read, and that no other site can use."""

from __future__ import annotations

from fastapi import Request, Response

from dtef_pipeline.api.access import TOKEN_COOKIE, holder_of
from dtef_pipeline.api.elements import Html, element, html
from dtef_pipeline.api.layout import LOGIN_PATH, page, page_router, to_page
from dtef_pipeline.api.sent_forms import form_fields
from dtef_pipeline.api.services import services_of
from dtef_pipeline.api.tokens import HeldToken

LOGGED_IN_S = 12 * 3600
"""Seconds that a login holds."""

router = page_router()


# Without async these, which wait for nothing, would wait for a thread of those that wait for the database.
@router.get("/")
async def first_page(request: Request) -> Response:
    """The page that is most used by who asks."""
    held = holder_of(request)
    return to_page(LOGIN_PATH if held is None else _home_of(held))


@router.get(LOGIN_PATH)
async def login_form(request: Request, next: str = "") -> Response:
    """The form that takes a token."""
    return page(request, "Log in", _login_body(next))


@router.post(LOGIN_PATH)
async def log_in(request: Request) -> Response:
    """Takes the token of the form; a wrong one is not said again."""
    form = await form_fields(request)
    token, wanted = form.get("token", "").strip(), form.get("next", "")
    held = services_of(request).tokens.holder(token)
    if held is None:
        return page(request, "Log in", _login_body(wanted, "This token is not known here, or was taken back."), status=401)
    answer = to_page(wanted if is_own_path(wanted) else _home_of(held))
    is_secure = request.url.scheme == "https"
    answer.set_cookie(TOKEN_COOKIE, token, max_age=LOGGED_IN_S, httponly=True, samesite="strict", secure=is_secure, path="/")
    return answer


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """Has the browser forget the token."""
    answer = to_page(LOGIN_PATH)
    answer.delete_cookie(TOKEN_COOKIE, path="/", httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return answer


def is_own_path(path: str) -> bool:
    """Whether a path is one of this server, whatever a browser makes of it."""
    if not path.startswith("/") or path.startswith(("//", "/\\")):
        return False
    return path.isascii() and path.isprintable() and "\\" not in path


def _home_of(held: HeldToken) -> str:
    return "/queue" if held.may("operator") else "/review"


def _login_body(wanted: str, fault: str = "") -> Html:
    told = element("p", fault, class_="fault", role="alert", id="fault") if fault else None
    return html(
        element("p", "Who may do what here is said by a token. An administrator of this server gives you yours.", class_="how"),
        told,
        element(
            "form",
            element("label", "Token", for_="token"),
            element(
                "input",
                type="password",
                name="token",
                id="token",
                required=True,
                autofocus=True,
                autocomplete="current-password",
                aria_describedby="fault" if fault else None,
            ),
            element("input", type="hidden", name="next", value=wanted) if is_own_path(wanted) else None,
            element("button", "Log in", type="submit", class_="main"),
            method="post",
            action=LOGIN_PATH,
            class_="narrow",
        ),
    )
