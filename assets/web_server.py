"""Dagster's web server, for people and programs, but closed to pages of other sites.

Dagster's own accepts GraphQL by GET, from any page and under any host name. So an image on a foreign page could launch runs in the browser
of anyone with access to the server or a tunnel to it.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import click
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assets.stage.dagster_internals import build_web_server_command
from dtef_pipeline.errors import DtefError
from dtef_pipeline.text.origins import list_served_hosts, parse_origin, read_origin
from resources.settings import ALLOWED_HOSTS, Settings

_READ_ONLY = ("GET", "HEAD", "OPTIONS")
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
_SCHEMES = {"ws": "http", "wss": "https"}
_OWN_SITES = ("same-origin", "none")
"""The header's values for a request from an own page, and for one made directly by the user."""


class RefusedRequest(Exception):
    """A rejected request, with its status."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class ForeignPageGuard:
    """ASGI middleware that accepts only requests under an allowed host, from own pages or no page, and GraphQL only as JSON by POST."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...]) -> None:
        """`hosts`: the allowed host names, in lower case and without port."""
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        try:
            self._refuse_foreign(scope, Headers(scope=scope))
            if scope["type"] == "http":
                _refuse_form(scope["method"], scope["path"], Headers(scope=scope))
        except RefusedRequest as refusal:
            if scope["type"] == "websocket":
                # Before the handshake is answered: the server answers 403.
                await send({"type": "websocket.close", "code": 1008})
            else:
                await PlainTextResponse(f"{refusal}\n", refusal.status)(scope, receive, send)
            return

        async def send_unframed(message: Message) -> None:
            if message["type"] == "http.response.start":
                # A page framing this one could trick users into clicking its buttons.
                MutableHeaders(scope=message)["X-Frame-Options"] = "SAMEORIGIN"
            await send(message)

        await self.app(scope, receive, send_unframed)

    def _refuse_foreign(self, scope: Scope, headers: Headers) -> None:
        """Raise RefusedRequest for a host that is not allowed, and for a page of another origin."""
        hosts = headers.getlist("host")
        scheme: str = scope["scheme"]
        scheme = _SCHEMES.get(scheme, scheme)
        origin = parse_origin(scheme, hosts[0]) if len(hosts) == 1 else None
        if origin is None or origin.host not in self.hosts:
            choices = (
                f"allowed: {', '.join(self.hosts)}; {ALLOWED_HOSTS} of the web server names others, such as dtef.example.org"
            )
            raise RefusedRequest(400, f"Host is {', '.join(hosts)[:80] or 'missing'}; {choices}")
        for header in headers.getlist("origin"):
            if read_origin(header) != origin:
                expected = f"{origin.scheme}://{hosts[0]}"
                raise RefusedRequest(
                    403,
                    f"Origin is {header[:80]}, a page of another site; allowed: {expected}. If only http or https differs, "
                    "the proxy in front must send X-Forwarded-Proto, and FORWARDED_ALLOW_IPS name the proxy",
                )
        site = headers.get("sec-fetch-site", "none")
        is_origin_checked = scope["type"] == "websocket" and "origin" in headers
        if site not in _OWN_SITES and not is_origin_checked and not _is_link(scope, headers):
            raise RefusedRequest(
                403, f"Sec-Fetch-Site is {site[:80]}: a page of another site asks; allowed: {', '.join(_OWN_SITES)}"
            )


def _is_link(scope: Scope, headers: Headers) -> bool:
    """Return whether the request follows a link of another page to a page of this server, in a tab and not in a frame."""
    target = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest"))
    return scope["type"] == "http" and scope["method"] == "GET" and target == ("navigate", "document")


def _refuse_form(method: str, path: str, headers: Headers) -> None:
    """Raise RefusedRequest for requests that any page can make a browser send: GraphQL by GET, and changes that are not JSON."""
    # Dagster's routes also match a line break after their end.
    if _CONTROL_CHARACTER.search(path):
        raise RefusedRequest(400, "the path holds a control character; allowed: none")
    is_graphql = path.endswith("/graphql")
    if is_graphql and method != "POST" and not (method == "GET" and "text/html" in headers.get("accept", "")):
        raise RefusedRequest(405, f"GraphQL by {method[:20]}; allowed: POST, with Content-Type: application/json")
    kinds = [value.partition(";")[0].strip().lower() for value in headers.getlist("content-type")]
    if method not in _READ_ONLY and kinds != ["application/json"]:
        raise RefusedRequest(415, f"Content-Type is {', '.join(kinds)[:80] or 'missing'}; allowed: application/json")


def guard(app: ASGIApp, host: str) -> ASGIApp:
    """Return the application, closed to pages of other sites. `host`: the server's bound address.

    Raises ConfigError for an invalid setting.
    """
    return ForeignPageGuard(app, tuple(dict.fromkeys([*list_served_hosts(host), *Settings.read_environment().allowed_hosts])))


def command() -> click.Command:
    """Return `dagster-webserver` with all its options, closed to pages of other sites."""
    return build_web_server_command(guard)


def main(**options: Any) -> None:
    try:
        command().main(prog_name="dtef-webserver", auto_envvar_prefix="DAGSTER_WEBSERVER", **options)
    except DtefError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
