"""The events of an evaluation as Server-Sent Events, from any number on."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from fastapi import Request
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse, SendTimeoutError
from starlette.types import Receive, Scope, Send

from dtef_pipeline.api.access import require_operator
from dtef_pipeline.api.etags import header_of
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.watch import watch_of
from dtef_pipeline.errors import DtefError, UnknownEvaluation
from resources.evaluations import TERMINAL, EvaluationStore

PING_S = 15
"""Between two comments that keep proxies from closing a stream on which nothing happens."""
RECONNECT_MS = 3_000
"""What a client that lost the stream waits before it connects again."""
_SENT_TOGETHER = 200
_UNREAD_S = 60.0
"""A client that reads nothing for so long loses its place."""
_LEAVE_S = 2.0
"""What a stream may take to end well as the server shuts down."""
_EVENT_NUMBER = re.compile(r"[0-9]{1,9}")


def resume_after(evaluations: EvaluationStore, queue_id: str, last_event_id: str | None) -> int | None:
    """The number after which a stream begins, given the header Last-Event-ID; None: the client has all there will ever be.

    0, so from the start, where the header is no number or names no event. Raises UnknownEvaluation.
    """
    said = (last_event_id or "").strip(" \t")
    number = int(said) if _EVENT_NUMBER.fullmatch(said) else 0
    if number:
        here = evaluations.events(queue_id, number - 1, 2)
        if here:
            return None if here[-1].seq == number and here[-1].kind in TERMINAL else number
    if not evaluations.heads([queue_id]):
        raise UnknownEvaluation(f"there is no evaluation {queue_id[:80]!r}")
    return 0


def last_event_id(request: Request) -> str | None:
    """The header Last-Event-ID."""
    return header_of(request, "last-event-id")


class EventStream(EventSourceResponse):
    """The events with a number above `after`, until the terminal one; each is sent soon after it was written, by whatever process."""

    def __init__(self, request: Request, queue_id: str, after: int) -> None:
        super().__init__(
            self._told(request, queue_id, after),
            ping=PING_S,
            sep="\n",
            ping_message_factory=lambda: ServerSentEvent(comment="ping", sep="\n"),
            send_timeout=_UNREAD_S,
            shutdown_grace_period=_LEAVE_S,
            headers={"Cache-Control": "no-store"},
        )
        self._watch = watch_of(request)
        self._place = self._watch.watching(queue_id)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises Problem 503 when all places for watchers are taken."""
        with self._place as self._watched:
            try:
                await super().__call__(scope, receive, send)
            except SendTimeoutError:
                return

    async def _told(self, request: Request, queue_id: str, after: int) -> AsyncIterator[bytes]:
        yield ServerSentEvent(retry=RECONNECT_MS, sep="\n").encode()
        watch, one = self._watch, self._watched
        while True:
            new = await watch.told_after(one, after)
            if new and not _may_still_watch(request):
                return
            for start in range(0, len(new), _SENT_TOGETHER):
                yield b"".join(new[start : start + _SENT_TOGETHER])
            after += len(new)
            if watch.closing or (one.ended and after >= len(one.told)):
                return
            await watch.until_changed(one, after)


def _may_still_watch(request: Request) -> bool:
    """A token that was taken out gets no further event."""
    try:
        require_operator(request)
    except (Problem, DtefError):
        return False
    return True
