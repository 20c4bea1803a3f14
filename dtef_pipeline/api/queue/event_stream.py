"""The events of an evaluation as Server-Sent Events, from any number on, and waiting for the next one."""

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
from dtef_pipeline.api.etags import read_header
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.services import get_services
from dtef_pipeline.errors import DtefError, StoreError
from dtef_pipeline.identity import canonical_json
from resources.evaluations.evaluation_store import TERMINAL, EvaluationStore, Event

EVENTS_EVERY_S = 0.5
"""Between two looks at the events of an evaluation, by each who waits for one."""
MOST_WATCHERS = 100
"""Streams and long polls of one process at once; more are sent away."""
PING_S = 15
"""Between two comments that keep proxies from closing a stream on which nothing happens."""
RECONNECT_MS = 3_000
"""What a client that lost the stream waits before it connects again."""
_AWAY_S = 1.0
"""Between two looks while a database is away."""
_UNREAD_S = 60.0
"""A client that reads nothing for so long loses its place."""
_EVENT_NUMBER = re.compile(r"[0-9]{1,9}")
_THREADS = 4

Found = TypeVar("Found")
_log = logging.getLogger(__name__)


class Watchers:
    """All who wait in this process."""

    def __init__(self) -> None:
        self.number = 0
        self._threads = anyio.CapacityLimiter(_THREADS)

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place among them for the time of the block. Raises Problem 503 when all are taken."""
        if self.number >= MOST_WATCHERS:
            raise Problem(503, f"{MOST_WATCHERS} streams and long polls are open, which is the limit", {"Retry-After": "10"})
        self.number += 1
        try:
            yield
        finally:
            self.number -= 1

    async def read(self, work: Callable[[], Found]) -> Found:
        """In threads of their own: routes that are slow, or wait for a database, do not hold up the streams."""
        return await anyio.to_thread.run_sync(work, limiter=self._threads)


def get_watchers(request: Request) -> Watchers:
    """Those of the application that serves the request."""
    watchers: Watchers = request.app.state.watchers
    return watchers


def is_server_closing() -> bool:
    """Whether a signal has asked the server to end: it waits for open connections."""
    return bool(AppStatus.should_exit)


def find_resume_point(evaluations: EvaluationStore, queue_id: str, last_event_id: str | None) -> int | None:
    """The number after which a stream begins, given the header Last-Event-ID; None: the client has all there will ever be.

    0, so from the start, where the header is not a number or names no event. Raises UnknownEvaluation.
    """
    header = (last_event_id or "").strip(" \t")
    number = int(header) if _EVENT_NUMBER.fullmatch(header) else 0
    events = evaluations.events(queue_id)
    if not number or all(event.seq != number for event in events):
        return 0
    return None if events[-1].seq == number and events[-1].kind in TERMINAL else number


def last_event_id(request: Request) -> str | None:
    """The header Last-Event-ID."""
    return read_header(request, "last-event-id")


class EventStream(EventSourceResponse):
    """The events with a number above `after`, until the terminal one; each is sent soon after it was written, by whatever process."""

    def __init__(self, request: Request, queue_id: str, after: int) -> None:
        super().__init__(
            _stream_events(request, queue_id, after),
            ping=PING_S,
            sep="\n",
            ping_message_factory=lambda: ServerSentEvent(comment="ping", sep="\n"),
            send_timeout=_UNREAD_S,
            headers={"Cache-Control": "no-store"},
        )
        self._place = get_watchers(request).place()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises Problem 503 when all places for watchers are taken."""
        with self._place:
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
            _log.error("events of evaluations cannot be read now; tried again in %s s: %s", _AWAY_S, error)
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
    """An event as a stream sends it: its number, its kind, its data as JSON in one line."""
    return ServerSentEvent(canonical_json(event.data), event=event.kind, id=str(event.seq), sep="\n").encode()


def _is_still_allowed(request: Request) -> bool:
    """A token that was taken out gets no further event."""
    try:
        require_operator(request)
    except (Problem, DtefError):
        return False
    return True
