"""What a request may bring: nothing from who holds no token, little to the login, at most 1 MB, in time, and text that can be stored."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import anyio
from fastapi import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dtef_pipeline.api.access import holder_of, token_missing
from dtef_pipeline.api.layout import told_error
from dtef_pipeline.api.problems import Problem, is_json
from dtef_pipeline.errors import DtefError
from dtef_pipeline.text.counted import counted

LARGEST_BODY = 1_000_000
"""Bytes."""
LARGEST_OPEN_BODY = 10_000
"""Bytes, of who holds no token: what a form of the login takes, and more."""
BODY_WITHIN_S = 30.0
"""How long a body may take to come, from the end of its headers on."""
LINGER_S = 1.0
"""How long what a refused client still sends is read and thrown away."""
_LONGEST_ECHOED = 80
# Of its own: those of the routes may all be waiting for the database.
_reading = ThreadPoolExecutor(1, "keys of bodies")
WITHOUT_BODY = ("GET", "HEAD", "OPTIONS")
# Steps over what is no escape, pairs of surrogates, and all other escapes but those that make no text. Nothing is looked at twice.
_UNSTORABLE_ESCAPE = re.compile(
    rb"(?:[^\\]++|\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?!u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})).))*+\\u",
    re.DOTALL,
)


class BodyLimit:
    """ASGI middleware: reads the body before the application does, or answers 401, 408, 413 or 400 in its place."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in WITHOUT_BODY:
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        try:
            body = await _checked_body(request, receive)
        except (Problem, DtefError) as error:
            answer = await told_error(request, error)
            answer.headers["Connection"] = "close"
            await _refuse(answer, scope, receive, send)
            return
        if body is not None:
            await self.app(scope, _Replayed(body, receive), send)


async def _checked_body(request: Request, receive: Receive) -> bytes | None:
    """None: the client has gone. Raises Problem."""
    is_known = holder_of(request) is not None
    if not is_known and request.url.path.startswith("/api/"):
        raise token_missing()
    most = LARGEST_BODY if is_known else LARGEST_OPEN_BODY
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told[:20]) > most:
        raise _too_large(most)
    try:
        with anyio.fail_after(BODY_WITHIN_S):
            body = await _read(receive, most)
    except TimeoutError:
        raise Problem(408, f"the body did not come within {counted(int(BODY_WITHIN_S), 'second')}") from None
    if body is not None and _UNSTORABLE_ESCAPE.match(body):
        raise Problem(400, "the body has a character that is no text: NUL, or half a surrogate pair")
    if body and is_json(request):
        _require_utf8(body)
        await asyncio.get_running_loop().run_in_executor(_reading, _refuse_repeated_keys, body)
    return body


def _require_utf8(body: bytes) -> None:
    """Python would read UTF-16 and UTF-32 too, and half a surrogate pair as bytes. Raises Problem 400."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem(400, f"the body is not UTF-8, which JSON is sent in: {error.reason} at byte {error.start + 1}") from None
    if b"\0" in body:
        raise Problem(400, "the body has a character that is no text, NUL, or is not UTF-8, which JSON is sent in")


def _refuse_repeated_keys(body: bytes) -> None:
    """What is no JSON is for the route to refuse. Raises Problem 422."""
    with suppress(ValueError, RecursionError):
        json.loads(body, object_pairs_hook=_once_each)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)[:_LONGEST_ECHOED]
        said = "the key stands more than once in one object; allowed: each key once"
        raise Problem(422, f"{twice}: {said}", errors=[{"path": twice, "message": said}])
    return found


async def _read(receive: Receive, most: int) -> bytes | None:
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            raise _too_large(most)
    return bytes(body)


def _too_large(most: int) -> Problem:
    also = "" if most == LARGEST_BODY else ", the most that is read without a token"
    return Problem(413, f"the body is larger than {counted(most, 'byte')}{also}")


async def _refuse(answer: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Answers, then reads on for a moment: of a connection that is closed while data comes in, clients tell no answer, but that it broke."""

    async def but_the_end(message: Message) -> None:
        await send({**message, "more_body": True} if message["type"] == "http.response.body" else message)

    await answer(scope, receive, but_the_end)
    with anyio.move_on_after(LINGER_S):
        while (message := await receive())["type"] == "http.request" and message.get("more_body", False):
            pass
    await send({"type": "http.response.body", "body": b"", "more_body": False})


class _Replayed:
    """The body once more, then what else comes."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._first: Message | None = {"type": "http.request", "body": body, "more_body": False}
        self._receive = receive

    async def __call__(self) -> Message:
        first, self._first = self._first, None
        return first or await self._receive()
