"""Bodies of requests: at most 1 MB, and text that can be stored."""

from __future__ import annotations

import re

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dtef_pipeline.api.problems import Problem, is_json

LARGEST_BODY = 1_000_000
"""Bytes."""
# Matches text without escapes, surrogate pairs and all valid escapes, each once; stops at an invalid escape.
_UNSTORABLE_ESCAPE = re.compile(
    rb"(?:[^\\]++|\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?!u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})).))*+\\u",
    re.DOTALL,
)


class BodyLimit:
    """ASGI middleware: reading a body beyond `LARGEST_BODY` raises an HTTPException with status 413."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = 0

        async def receive_limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > LARGEST_BODY:
                raise HTTPException(413, f"the body is larger than {LARGEST_BODY:,} bytes")
            return message

        await self.app(scope, receive_limited, send)


async def require_storable_text(request: Request) -> None:
    """Refuse NUL and unpaired surrogates, which PostgreSQL does not store, and JSON that is not UTF-8. Raises Problem 400."""
    if request.method == "GET":
        return
    body = await request.body()
    if _UNSTORABLE_ESCAPE.match(body):
        raise Problem(400, "the body has an invalid character: NUL or an unpaired surrogate")
    if not is_json(request):
        return
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem(400, f"the body is not UTF-8, as JSON must be: {error.reason} at byte {error.start + 1}") from None
    if b"\0" in body:
        raise Problem(400, "the body has an invalid character, such as NUL, or is not UTF-8, as JSON must be")
