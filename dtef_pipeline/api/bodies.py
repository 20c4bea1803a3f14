"""What a request may bring: at most 1 MB, and as JSON only text that can be stored."""

from __future__ import annotations

import json
import re
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dtef_pipeline.api.problems import problem_answer

_NUL_ESCAPE = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
LARGEST_BODY = 1_000_000
"""Bytes."""


class BodyLimit:
    """ASGI middleware: reads the body before the application does, and answers 413 or 400 in its place."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send)
            return
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > LARGEST_BODY:
                answer = problem_answer(413, f"the body is larger than {LARGEST_BODY:,} bytes", {"Connection": "close"})
                await answer(scope, receive, send)
                return
        if not _is_storable(bytes(body)):
            await problem_answer(400, "the body has a character that is no text: NUL, or half a surrogate pair")(
                scope, receive, send
            )
            return
        await self.app(scope, _Replayed(bytes(body), receive), send)


class _Replayed:
    """The body once more, then what else comes."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._first: Message | None = {"type": "http.request", "body": body, "more_body": False}
        self._receive = receive

    async def __call__(self) -> Message:
        first, self._first = self._first, None
        return first or await self._receive()


def _is_storable(body: bytes) -> bool:
    """Whether escapes in JSON make text of it; what is no JSON is for the route to refuse."""
    if _NUL_ESCAPE.search(body):
        return False
    if b"\\ud" not in body.lower():
        return True
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return True
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
