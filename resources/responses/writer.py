"""Group commit: many coroutines submit responses, one thread writes them, each waits until its own is on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from dtef_pipeline.asking.request import Response, UnansweredCall
from resources.responses.database import Result
from resources.responses.store import ResponseStore


class ResponseWriter:
    """An async context manager that on exit writes everything submitted, even when the run is being cancelled."""

    def __init__(self, store: ResponseStore) -> None:
        self._store = store
        self._pending: list[tuple[Response | UnansweredCall, asyncio.Future[None]]] = []
        self._something = asyncio.Event()
        self._closing = False
        self._failure: Exception | None = None

    async def commit(self, row: Response | UnansweredCall) -> None:
        """Return once the row is committed. Cancelling the caller does not stop the commit."""
        await self.take(row)

    def take(self, row: Response | UnansweredCall) -> asyncio.Future[None]:
        """Commit without waiting; the future is done once the row is committed."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.append((row, future))
        self._something.set()
        return future

    async def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Do other work on the store in the writer's thread, so that this process never waits for its own lock."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    async def __aenter__(self) -> Self:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="response-writer")
        self._task = asyncio.create_task(self._write())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing = True
        self._something.set()
        try:
            await self._task
        finally:
            self._thread.shutdown()
        if self._failure is not None and error is not self._failure:
            raise self._failure

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._pending or not self._closing:
            await self._something.wait()
            self._something.clear()
            batch, self._pending = self._pending, []
            try:
                await loop.run_in_executor(self._thread, self._commit, [row for row, _ in batch])
            except Exception as error:
                self._failure = error
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
            else:
                for _, future in batch:
                    if not future.done():
                        future.set_result(None)

    def _commit(self, rows: Sequence[Response | UnansweredCall]) -> None:
        self._store.add_unanswered(row for row in rows if isinstance(row, UnansweredCall))
        self._store.add(row for row in rows if isinstance(row, Response))
