"""Authentication by a bearer token or by the cookie of a login. Without either, nothing is served."""

from __future__ import annotations

import logging
from typing import Annotated, cast

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer, SecurityScopes

from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.services import get_services
from dtef_pipeline.api.tokens import DEVELOPER, TokenHolder, TokenRole
from dtef_pipeline.text.origins import parse_origin, read_origin
from resources.settings import ALLOWED_HOSTS

SESSION_COOKIE = "dtef_session"
"""Cookie with the id of a login on the pages: HttpOnly, SameSite=Strict."""
_log = logging.getLogger(__name__)
_READ_ONLY = ("GET", "HEAD", "OPTIONS")


def find_holder(request: Request) -> TokenHolder | None:
    """Return the sender of the request; None: unknown. For changes, a cookie counts only if the page is from this server."""
    services = get_services(request)
    if services.open_to_all:
        # A page of another site that is open in the same browser is not whoever is on this computer.
        return DEVELOPER if request.method in _READ_ONLY or "origin" not in request.headers or is_own_page(request) else None
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return services.tokens.holder(token.strip())
    cookie = request.cookies.get(SESSION_COOKIE)
    if cookie and (request.method in _READ_ONLY or is_own_page(request)):
        sha256 = services.sessions.find_token(cookie)
        return None if sha256 is None else services.tokens.find_by_hash(sha256)
    return None


def is_own_page(request: Request) -> bool:
    """Whether a page of this server sent the request, according to the browser."""
    return find_foreign_reason(request) is None


def find_foreign_reason(request: Request) -> str | None:
    """Say why a request is not from a page of this server; None: it is. Compares scheme, host and port, and requires a known host."""
    origin, host = request.headers.get("origin", ""), request.headers.get("host", "")
    page, server = read_origin(origin), parse_origin(request.scope.get("scheme", "http"), host)
    if page is None or server is None or page != parse_origin(page.scheme, host):
        return "it was not sent from a page of this server"
    if server.host not in (hosts := get_services(request).hosts):
        return f"this server has no host name {server.host[:80]}; allowed: {', '.join(hosts)}, and those in {ALLOWED_HOSTS}"
    if page.scheme != server.scheme:
        return (
            f"the page was loaded over {page.scheme}, but this request came over {server.scheme}; allowed: the same scheme. The proxy "
            "must send X-Forwarded-Proto, and FORWARDED_ALLOW_IPS must name the proxy"
        )
    return None


def count_failure(request: Request) -> None:
    """Count and log a wrong token. Raises Problem 429 after too many from one address within a minute."""
    address = request.client.host if request.client else "unknown"
    _log.warning("a wrong token from %s", address)
    if wait := get_services(request).failed_tokens.wait_s(address):
        raise Problem(429, "too many wrong tokens; wait before you send the right one", {"Retry-After": str(wait)})


def _require_role(role: TokenRole, request: Request) -> TokenHolder:
    holder = find_holder(request)
    if holder is None:
        if "authorization" in request.headers:
            count_failure(request)
        message = "a token is required; send the header Authorization: Bearer TOKEN"
        raise Problem(401, message, {"WWW-Authenticate": "Bearer"})
    if not holder.may(role):
        raise Problem(403, f"this requires the role {role}; the token of {holder.name} has the role {holder.role}")
    return holder


def require_operator(request: Request) -> TokenHolder:
    """Check the role again for responses long after their request, because the token may have been removed. Raises Problem 401 or 403, and
    ConfigError."""
    return _require_role("operator", request)


_bearer = HTTPBearer(scheme_name="bearer", description="A token made by `dtef tokens NAME --role ROLE`.", auto_error=False)


# Async, so that it needs no thread: it waits for nothing. The scheme and the role are only described by the framework.
async def _require_scope(request: Request, scopes: SecurityScopes, _: Annotated[object, Depends(_bearer)]) -> TokenHolder:
    (role,) = scopes.scopes
    return _require_role(cast(TokenRole, role), request)


ReviewerToken = Annotated[TokenHolder, Security(_require_scope, scopes=["reviewer"])]
OperatorToken = Annotated[TokenHolder, Security(_require_scope, scopes=["operator"])]
AdminToken = Annotated[TokenHolder, Security(_require_scope, scopes=["admin"])]
