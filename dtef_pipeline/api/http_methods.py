"""HEAD wherever GET is, and all methods of a path: of routes that share one, the framework names those of a single route."""

from __future__ import annotations

from fastapi import Request
from fastapi.routing import iter_route_contexts
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SERVER_ITSELF = ("*", "/*")
"""The path of `OPTIONS *`."""


def methods_of(request: Request) -> str:
    """The methods of the path, as the header Allow names them; of the server, where the request is about `*`."""
    path = request.scope["path"]
    found = {"OPTIONS"}
    for one in iter_route_contexts(request.app.routes):
        pattern = getattr(one, "path_regex", None)
        if pattern is not None and (path in SERVER_ITSELF or pattern.match(path)):
            found.update(one.methods or ())
    return ", ".join(sorted(found | {"HEAD"} if "GET" in found else found))


class HeadAsGet:
    """ASGI middleware: HEAD is answered as GET is, without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        ended = False

        async def without_body(message: Message) -> None:
            nonlocal ended
            if message["type"] == "http.response.start":
                await send(message)
            elif not ended:
                # At once: a stream of events would go on.
                ended = True
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        await self.app({**scope, "method": "GET"}, receive, without_body)
