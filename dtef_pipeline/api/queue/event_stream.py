"""The events of an evaluation as Server-Sent Events from any number on, including those to come."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import anyio
from fastapi import Request
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import AppStatus, EventSourceResponse, SendTimeoutError
from starlette.types import Receive, Scope, Send

from dtef_pipeline.api.access import require_operator
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.services import get_services
from dtef_pipeline.errors import DtefError, StoreError
from dtef_pipeline.identity import canonical_json
from resources.evaluations.evaluation_store import TERMINAL, EvaluationStore, Event

EVENTS_EVERY_S = 0.5
"""Seconds between two polls of an evaluation's events, per watcher."""
MAX_WATCHERS = 100
"""Largest number of open streams and long polls per process."""
PING_S = 15
"""Seconds between two comments that keep proxies from closing an idle stream."""
RECONNECT_MS = 3_000
"""Seconds that a client waits before it reconnects."""
_AWAY_S = 1.0
"""Seconds between two polls while a database is unavailable."""
_UNREAD_S = 60.0
"""Seconds after which a client that reads nothing loses its place."""
_EVENT_NUMBER = re.compile(r"[0-9]{1,9}")
_THREADS = 4

Value = TypeVar("Value")
_log = logging.getLogger(__name__)


class Watchers:
    """All watchers in this process."""

    def __init__(self) -> None:
        self.number = 0
        self._threads = anyio.CapacityLimiter(_THREADS)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Reserve a place for the time of the block. Raises Problem 503 if all are taken."""
        if self.number >= MAX_WATCHERS:
            raise Problem(
                503,
                f"the limit of {MAX_WATCHERS} open streams and long polls is reached; try again later",
                {"Retry-After": "10"},
            )
        self.number += 1
        try:
            yield
        finally:
            self.number -= 1

    async def read(self, work: Callable[[], Value]) -> Value:
        """Read in separate threads, so that slow routes, or those waiting for a database, do not block the streams."""
        return await anyio.to_thread.run_sync(work, limiter=self._threads)


def get_watchers(request: Request) -> Watchers:
    """Return the object of the application that serves the request."""
    watchers: Watchers = request.app.state.watchers
    return watchers


def is_server_closing() -> bool:
    """Whether the server received a signal to stop and waits for open connections."""
    return bool(AppStatus.should_exit)


def find_resume_point(evaluations: EvaluationStore, queue_id: str, last_event_id: str | None) -> int | None:
    """Return the number after which a stream begins, given the header Last-Event-ID; None: the client has all events.

    0 (the start) if the header is not a number or names no event. Raises UnknownEvaluation.
    """
    header = (last_event_id or "").strip(" \t")
    number = int(header) if _EVENT_NUMBER.fullmatch(header) else 0
    events = evaluations.events(queue_id)
    if not number or all(event.seq != number for event in events):
        return 0
    return None if events[-1].seq == number and events[-1].kind in TERMINAL else number


class EventStream(EventSourceResponse):
    """Streams the events with a number above `after` until the last one; each is sent soon after any process wrote it."""

    def __init__(self, request: Request, queue_id: str, after: int) -> None:
        super().__init__(
            _stream_events(request, queue_id, after),
            ping=PING_S,
            sep="\n",
            ping_message_factory=lambda: ServerSentEvent(comment="ping", sep="\n"),
            send_timeout=_UNREAD_S,
            headers={"Cache-Control": "no-store"},
        )
        self._find_by_place = get_watchers(request).place()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises Problem 503 if all places for watchers are taken."""
        with self._find_by_place:
            try:
                await super().__call__(scope, receive, send)
            except SendTimeoutError:
                return


async def _stream_events(request: Request, queue_id: str, after: int) -> AsyncIterator[bytes]:
    yield ServerSentEvent(retry=RECONNECT_MS, sep="\n").encode()
    store = get_services(request).evaluations
    while True:
        try:
            events = await get_watchers(request).read(partial(store.events, queue_id, after))
        except StoreError as error:
            _log.error("events of evaluations cannot be read now, next attempt in %s s: %s", _AWAY_S, error)
            await anyio.sleep(_AWAY_S)
            continue
        if events:
            if not _is_still_allowed(request):
                return
            yield b"".join(map(encode_event, events))
            after = events[-1].seq
            if events[-1].kind in TERMINAL:
                return
        await anyio.sleep(EVENTS_EVERY_S)


def encode_event(event: Event) -> bytes:
    """Encode an event for a stream: its number, its kind, its data as JSON in one line."""
    return ServerSentEvent(canonical_json(event.data), event=event.kind, id=str(event.seq), sep="\n").encode()


def _is_still_allowed(request: Request) -> bool:
    """Whether the token is still valid; a removed token gets no further events."""
    try:
        require_operator(request)
    except (Problem, DtefError):
        return False
    return True
