"""A thread with its own event loop for a coroutine, while the caller's thread shows progress and handles interrupts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

_TICK_S = 0.2


class LoopThread:
    """One run, with or without a running event loop around it."""

    def __init__(self, main: Callable[[], Coroutine[Any, Any, None]], stop: Callable[[], None]) -> None:
        """Args:
        main: the coroutine to run.
        stop: requests a quick, orderly end; called in the loop's thread.
        """
        self._main, self._stop = main, stop
        self._started, self._finished, self._news = threading.Event(), threading.Event(), threading.Event()
        self._error: BaseException | None = None

    def run(self, tick: Callable[[], None]) -> None:
        """Run `main` to its end; `tick` is called in this thread a few times a second, also while an interrupted run ends.

        An interrupt (Ctrl-C, Dagster's own, an error in `tick`) requests an orderly end, waits for it, and is then raised; a second one
        cancels the rest at once.
        """
        thread = threading.Thread(target=self._run, name="dtef-gateway")
        thread.start()
        try:
            self._wait(tick)
        except BaseException:
            self.call_in_loop(self._stop)
            try:
                self._wait(tick)
            except BaseException:
                self.call_in_loop(self._task.cancel)
            raise
        finally:
            thread.join()
        if self._error is not None:
            raise self._error

    def _wait(self, tick: Callable[[], None]) -> None:
        while not self._finished.is_set():
            if self._news.wait(_TICK_S):
                self._news.clear()
            if not self._finished.is_set():
                tick()

    def nudge(self) -> None:
        """Have `tick` called at once. Thread-safe."""
        self._news.set()

    def call_in_loop(self, work: Callable[[], object]) -> None:
        """Schedule work in the loop's thread; do nothing if the run has ended."""
        self._started.wait()
        if not self._finished.is_set():
            self._loop.call_soon_threadsafe(work)

    def _run(self) -> None:
        try:
            asyncio.run(self._run_supervised())
        except BaseException as error:  # handed to the caller's thread
            self._error = error
        finally:
            self._started.set()
            self._finished.set()
            self._news.set()

    async def _run_supervised(self) -> None:
        self._loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._task = task
        self._started.set()
        await self._main()
