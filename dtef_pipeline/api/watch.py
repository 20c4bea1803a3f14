"""How those who wait for the next event of an evaluation wake up: one look per process at all that are watched, and none while nobody waits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from fastapi import Request
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import AppStatus

from dtef_pipeline.api.problems import Problem
from dtef_pipeline.errors import StoreError
from dtef_pipeline.identity import canonical_json
from resources.evaluations import TERMINAL, EvaluationStore, Event

WATCH_EVERY_S = 0.2
"""Between two looks at the table."""
MOST_WATCHERS = 500
"""Streams and long polls of one process at once; more are sent away."""
_PLACES_EVERY_S = 1.0
"""Between two looks at which evaluations wait, while somebody watches one of them: that those before it began is no event of its own."""
_AWAY_S = 1.0
"""Between two looks while the database is away."""
_READ_TOGETHER = 1_000
_THREADS = 4

Found = TypeVar("Found")
_log = logging.getLogger(__name__)


class WatchedEvaluation:
    """What those who watch one evaluation share. Used by the event loop alone; forgotten when the last of them has gone."""

    def __init__(self, queue_id: str) -> None:
        self.queue_id = queue_id
        self.head = 0
        """The highest number of an event that is known of."""
        self.nudges = 0
        """How often something changed that is no event."""
        self.told: list[bytes] = []
        """The events as a stream sends them, from number 1 on, as far as somebody asked for them."""
        self.ended = False
        """Whether the last of `told` is the last that there will be."""
        self.watchers = 0
        self.reading = asyncio.Lock()
        self._state: tuple[int, int, dict[str, Any]] | None = None
        self._wakeup = asyncio.Event()

    def advance(self, head: int) -> None:
        """Wake everybody, if the head is news."""
        if head > self.head:
            self.head = head
            self.wake()

    def wake(self) -> None:
        woken, self._wakeup = self._wakeup, asyncio.Event()
        woken.set()

    async def state(self, read: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """What `read` returns, with the number of its last event as `last_event`: read once after each change for all who wait for it."""
        async with self.reading:
            if self._state is None or self._state[:2] != (self.head, self.nudges):
                nudges = self.nudges
                found = await read()
                self.advance(found["last_event"])
                self._state = (found["last_event"], nudges, found)
            return self._state[2]

    async def woken(self) -> None:
        """Until `wake` is called. Who looks at `head` and `nudges` without an `await` before this misses nothing."""
        await self._wakeup.wait()


class Watch:
    """All who wait in this process, on one event loop."""

    def __init__(self, evaluations: EvaluationStore) -> None:
        self.watched: dict[str, WatchedEvaluation] = {}
        self.watchers = 0
        self.closing = False
        """Whether everybody is to leave, as the server shuts down."""
        self._evaluations = evaluations
        self._threads = ThreadPoolExecutor(_THREADS, "watch")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looking: asyncio.Task[None] | None = None
        self._is_away = False
        self._waiting: list[str] | None = None
        """The evaluations that waited at the last look; None: nobody watched one that did."""

    @contextmanager
    def watching(self, queue_id: str) -> Iterator[WatchedEvaluation]:
        """A place among the watchers for the time of the block. Raises Problem 503 when all are taken."""
        if self.watchers >= MOST_WATCHERS:
            raise Problem(
                503, f"{MOST_WATCHERS} streams and long polls are open, and no more are allowed", {"Retry-After": "10"}
            )
        one = self.watched.setdefault(queue_id, WatchedEvaluation(queue_id))
        one.watchers += 1
        self.watchers += 1
        try:
            if self._looking is None or self._looking.done():
                self._loop = asyncio.get_running_loop()
                self._looking = self._loop.create_task(self._look_on(), name="watch of evaluations")
            yield one
        finally:
            one.watchers -= 1
            self.watchers -= 1
            if not one.watchers:
                del self.watched[queue_id]
            if not self.watched and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def until_changed(self, one: WatchedEvaluation, head: int, nudges: int | None = None) -> None:
        """Until there is an event with a number above `head`, or another change since there were `nudges`, or the server shuts down."""
        while one.head <= head and nudges in (None, one.nudges) and not self.closing:
            await one.woken()

    async def told_after(self, one: WatchedEvaluation, head: int) -> list[bytes]:
        """The events with a number above `head` as a stream sends them: read once for all who watch. Waits while the database is away."""
        async with one.reading:
            while (not one.told or len(one.told) < one.head) and not self.closing:
                if not await self._read_on(one):
                    break
        return one.told[head:]

    async def _read_on(self, one: WatchedEvaluation) -> bool:
        """Whether there may be more to read."""
        known = len(one.told)
        try:
            events = await self._in_thread(partial(self._evaluations.events, one.queue_id, known, _READ_TOGETHER))
        except StoreError as error:
            self._note_away(error)
            await asyncio.sleep(_AWAY_S)
            return True
        one.told.extend(map(sent_event, events))
        one.ended = bool(events) and events[-1].kind in TERMINAL
        one.advance(len(one.told))
        return len(events) == _READ_TOGETHER

    def nudge(self, queue_id: str) -> None:
        """From any thread: something of the evaluation changed in this process, and who waits is to look at once."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._nudge, queue_id)

    def _nudge(self, queue_id: str) -> None:
        if one := self.watched.get(queue_id):
            one.nudges += 1
            one.wake()

    def close(self) -> None:
        """From any thread: everybody leaves."""
        self.closing = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake_all)

    def _wake_all(self) -> None:
        for one in self.watched.values():
            one.wake()

    async def _look_on(self) -> None:
        """As long as somebody waits. The look at the server does not wait for a database that is away."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look_at_table())
            group.create_task(self._look_at_places())
            group.create_task(self._look_at_server())

    async def _look_at_table(self) -> None:
        while not self.closing:
            await asyncio.sleep(_AWAY_S if self._is_away else WATCH_EVERY_S)
            watched = list(self.watched)
            try:
                heads = await self._in_thread(partial(self._evaluations.heads, watched))
            except StoreError as error:
                self._note_away(error)
                continue
            self._is_away = False
            for queue_id, head in heads.items():
                if one := self.watched.get(queue_id):
                    one.advance(head)

    async def _look_at_places(self) -> None:
        while not self.closing:
            await asyncio.sleep(_PLACES_EVERY_S)
            # The first event of an evaluation is that it waits, and with the second it waits no more.
            if not any(one.head <= 1 for one in self.watched.values()):
                self._waiting = None
                continue
            try:
                waiting = await self._in_thread(self._evaluations.waiting)
            except StoreError as error:
                self._note_away(error)
                continue
            if waiting != self._waiting:
                for queue_id in waiting:
                    self._nudge(queue_id)
            self._waiting = waiting

    async def _look_at_server(self) -> None:
        """A signal that ends the server sets `AppStatus`; the server itself waits for open connections before it tells the application."""
        while not self.closing:
            await asyncio.sleep(WATCH_EVERY_S)
            if AppStatus.should_exit:
                self.closing = True
                self._wake_all()

    def _note_away(self, error: StoreError) -> None:
        if not self._is_away:
            _log.error("events of evaluations cannot be read now; tried again every %s s: %s", _AWAY_S, error)
        self._is_away = True

    async def _in_thread(self, work: Callable[[], Found]) -> Found:
        """In threads of its own: routes that are slow, or wait for a database, do not hold up the streams."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def sent_event(event: Event) -> bytes:
    """An event as a stream sends it: its number, its kind, its data as JSON in one line."""
    return ServerSentEvent(canonical_json(event.data), event=event.kind, id=str(event.seq), sep="\n").encode()


def watch_of(request: Request) -> Watch:
    """That of the application that serves the request."""
    found: Watch = request.app.state.watch
    return found
