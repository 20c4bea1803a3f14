"""How far a run is: counts per model, shown live on a terminal or as sparse log lines."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """The requests to one model so far."""

    model: str
    total: int
    replayed: int
    """Already in the store."""
    done: int
    """Asked now and answered."""
    failed: int

    @property
    def settled(self) -> int:
        return self.replayed + self.done + self.failed


OnProgress = Callable[[tuple[ModelProgress, ...]], None]


_terminal: TextIO | None = None


def keep_terminal() -> None:
    """Remember the terminal behind stderr, if it is one: Dagster sends stderr of a running step to a file."""
    global _terminal
    if sys.stderr.isatty():
        _terminal = os.fdopen(os.dup(sys.stderr.fileno()), "w")


@contextmanager
def shown_progress(log: Callable[[str], None], every: float = 30.0) -> Iterator[OnProgress]:
    """A live line a model if there is a terminal, else lines to `log`, at most one a model every so many seconds."""
    terminal = _terminal or (sys.stderr if sys.stderr.isatty() else None)
    if terminal is None:
        yield LoggedProgress(log, every)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[replayed]} replayed, {task.fields[failed]} failed"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=terminal, force_terminal=True)) as bars:
        yield _LiveProgress(bars)


class _LiveProgress:
    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, models: tuple[ModelProgress, ...]) -> None:
        for one in models:
            if one.model not in self._tasks:
                self._tasks[one.model] = self._bars.add_task(one.model, total=one.total, replayed=0, failed=0)
            self._bars.update(self._tasks[one.model], completed=one.settled, replayed=one.replayed, failed=one.failed)


class LoggedProgress:
    """Lines such as `gpt-4.1-mini: 120 of 500 (40 replayed, 2 failed)`: seldom, and always one when a model is finished."""

    def __init__(self, log: Callable[[str], None], every: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._every, self._clock = log, every, clock
        self._last = clock()
        self._finished: set[str] = set()

    def __call__(self, models: tuple[ModelProgress, ...]) -> None:
        due = self._clock() - self._last >= self._every
        if due:
            self._last = self._clock()
        for one in models:
            finished = one.settled == one.total
            if one.model not in self._finished and (due or finished):
                self._log(f"{one.model}: {one.settled} of {one.total} ({one.replayed} replayed, {one.failed} failed)")
            if finished:
                self._finished.add(one.model)
