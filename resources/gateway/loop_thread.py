"""Runs a coroutine in a thread with an event loop of its own, while the caller's thread shows progress and takes interrupts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

_TICK_S = 0.2


class LoopThread:
    """One run. Works with or without a running event loop around it."""

    def __init__(self, main: Callable[[], Coroutine[Any, Any, None]], stop: Callable[[], None]) -> None:
        """
        Args:
            main: what to run.
            stop: asks it to end soon and in order; called in the loop's thread.
        """
        self._main, self._stop = main, stop
        self._started, self._finished, self._news = threading.Event(), threading.Event(), threading.Event()
        self._error: BaseException | None = None

    def run(self, tick: Callable[[], None]) -> None:
        """Until `main` ends; `tick` is called in this thread a few times a second, also while an interrupted run ends.

        An interrupt (Ctrl-C, Dagster's own, an error in `tick`) asks for an orderly end, waits for it, and is raised then; a second
        one cancels what is left at once.
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
        """Have `tick` called at once. To be called from any thread."""
        self._news.set()

    def call_in_loop(self, work: Callable[[], object]) -> None:
        """Have something done in the loop's thread, soon; nothing, where the run has ended."""
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
