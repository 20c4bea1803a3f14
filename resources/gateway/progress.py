"""Progress of a run: counts per model and stage, shown live on a terminal or as sparse log lines.

All lines have one form: stage, count done of total, cached and failed, rate, cost so far, time left (`format_progress`).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column

from dtef_pipeline.text.amounts import format_short_costs
from dtef_pipeline.text.number_words import format_count


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """Counts of the requests to one model."""

    model: str
    total: int
    replayed: int
    """Already in the store."""
    done: int
    """Sent in this run, with a stored response."""
    failed: int
    stopped: int = 0
    """Not sent, because a budget was reached."""
    rate: float = 0.0
    """Responses per second over the last half minute."""
    rate_limited: int = 0
    """HTTP responses 429 of the run so far."""
    cost_usd: float | None = 0.0
    """Known costs of the run so far; None: none is known."""
    unknown_cost_attempts: int = 0
    unknown_cost_usd_most: float | None = None
    """The most that calls of unknown cost in the run may have cost, as in `Response`."""
    seconds_left: float | None = None
    """At the present rate; None: there was no response lately."""

    @property
    def settled(self) -> int:
        return self.replayed + self.done + self.failed + self.stopped


OnProgress = Callable[[tuple[ModelProgress, ...]], None]


_errors: TextIO | None = None
"""The stderr of the running command, for the whole process. Only `keep_terminal` sets and resets it."""


@contextmanager
def keep_terminal() -> Iterator[None]:
    """Remember a command's stderr until the block ends: Dagster sends stderr of a running step to a file."""
    global _errors
    try:
        stream = os.fdopen(os.dup(sys.stderr.fileno()), "w", buffering=1)
    except OSError:  # no file behind it
        yield
        return
    before, _errors = _errors, stream
    with stream:
        try:
            yield
        finally:
            _errors = before
            if stream.isatty():
                _make_bars(stream).stop()


@contextmanager
def display_progress(log: Callable[[str], None], stage: str = "", every: float = 30.0) -> Iterator[ModelsProgress]:
    """Show the progress of models until the block ends; arguments as for `ModelsProgress`."""
    display = ModelsProgress(log, stage, every)
    try:
        yield display
    finally:
        display.close(is_kept=True)


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """Show a title and the elapsed seconds during uncountable work, if a command runs on a terminal."""
    if _errors is None or not _errors.isatty():
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=_errors, force_terminal=True), transient=True) as progress:
        progress.add_task(title, total=None)
        yield


class RunProgress:
    """Counts of a whole run that sends windows of requests, passed on to a display.

    `expected`: requests of the run by model name.
    """

    def __init__(self, show: OnProgress, expected: Mapping[str, int]) -> None:
        self._show, self._expected = show, expected
        self._before: dict[str, ModelProgress] = {}
        self._now: dict[str, ModelProgress] = {}
        self.is_open = False
        """Whether responses may lead to further requests, so that the time left is unknown."""

    def __call__(self, models: tuple[ModelProgress, ...]) -> None:
        self._now.update((line.model, self._sum_windows(line)) for line in models)
        self._show(tuple(self._now.values()))

    def window_done(self) -> None:
        """Add the counts so far to those of the next window."""
        self._before = dict(self._now)

    def _sum_windows(self, line: ModelProgress) -> ModelProgress:
        before = self._before.get(line.model)
        earlier = before.settled if before else 0
        n_settled = line.settled + earlier
        # Requests that are sent once more were not expected, so they are added.
        expected = self._expected.get(line.model, 0)
        total = max(expected, line.total + earlier)
        counts = {name: getattr(line, name) + getattr(before, name, 0) for name in ("replayed", "done", "failed", "stopped")}
        is_known = line.rate and not (self.is_open and line.total + earlier > expected)
        return replace(line, total=total, **counts, seconds_left=(total - n_settled) / line.rate if is_known else None)


def format_progress(head: str, n_done: int, total: int, details: Iterable[str]) -> str:
    """Return `predict: gpt-4.1-mini 152/900, 40 cached, 2 failed, 208/min, $0.42, 2 min left`. `head`: stage and what is counted."""
    return ", ".join([f"{head} {n_done:,}/{total:,}", *details])


def _list_model_details(progress: ModelProgress) -> list[str]:
    """Return details to follow a model's count: `40 cached`, `2 failed`, `5 not sent`, `208/min`, `12 rate limits`, `$0.42`, `2 min left`."""
    parts = [f"{progress.replayed:,} cached", f"{progress.failed:,} failed"]
    if progress.stopped:
        parts.append(f"{progress.stopped:,} not sent")
    if progress.rate:
        parts.append(_format_pace(progress.rate))
    if progress.rate_limited:
        parts.append(format_count(progress.rate_limited, "rate limit"))
    parts += format_short_costs(progress.cost_usd, progress.unknown_cost_attempts, progress.unknown_cost_usd_most)
    if progress.seconds_left is not None and progress.settled < progress.total:
        parts.append(f"{_format_duration(progress.seconds_left)} left")
    return parts


def _format_pace(per_second: float) -> str:
    """Return `208/min`, `1.5/min` or `0.012/min`; never 0."""
    per_minute = per_second * 60
    return f"{per_minute:,.0f}/min" if per_minute >= 10 else f"{per_minute:.2g}/min"


def _format_duration(seconds: float) -> str:
    """Return `40 s`, `12 min` or `3 h 20 min`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


@lru_cache(maxsize=1)
def _make_bars(errors: TextIO) -> Progress:
    """Make a terminal's bars of models and stages together: it can have only one live display."""
    # If the line is too wide, the bar is cut first, then the end of the line.
    columns = (
        BarColumn(bar_width=30),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(table_column=Column(no_wrap=True)),
    )
    console = Console(file=errors, force_terminal=True)
    # Dagster stores a step's stdout and stderr in files.
    return Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)


class _Lines:
    """Counts by item: bars on a terminal, else lines of `format_progress`, at most one each in `every` seconds.

    Lines go to `log`, and within a command (`keep_terminal`) also to its stderr. `stage`: their beginning, such as `predict: `.
    """

    def __init__(self, log: Callable[[str], None], stage: str, every: float, clock: Callable[[], float]) -> None:
        self._errors = _errors or (sys.stderr if sys.stderr.isatty() else None)
        self._bars = _make_bars(self._errors) if self._errors is not None and self._errors.isatty() else None
        self._log, self._stage, self._every, self._clock = log, stage, every, clock
        self._last = clock()
        self._tasks: dict[str, TaskID] = {}

    def say(self, line: str) -> None:
        """Write a separate line to the log and to a command."""
        self._log(line)
        if self._bars is not None:
            self._bars.console.print(line, markup=False, highlight=False)
        else:
            self.announce(line)

    def announce(self, line: str) -> None:
        """Write a line for a command without a terminal, which otherwise shows nothing for half a minute."""
        if self._errors is not None and self._bars is None:
            print(line, file=self._errors)

    def close(self, is_kept: bool = False) -> None:
        """Remove the bars from the terminal, or leave them there as they are."""
        if self._bars is None:
            return
        tasks = [task for task in self._bars.tasks if task.id in self._tasks.values()]
        if is_kept and tasks:
            self._bars.console.print(self._bars.make_tasks_table(tasks))
        for task in tasks:
            self._bars.remove_task(task.id)
        self._tasks.clear()
        if not self._bars.tasks:
            self._bars.stop()

    def _check_due(self) -> bool:
        now = self._clock()
        if now - self._last < self._every:
            return False
        self._last = now
        return True

    def _show(self, name: str, n_done: int, total: int, details: Sequence[str], is_due: bool) -> None:
        """Show a count. `is_due`: write a line if there are no bars."""
        line = format_progress(name, n_done, total, details)
        if self._bars is not None:
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(line)
                self._bars.start()
            self._bars.update(self._tasks[name], description=line, completed=n_done, total=total)
        elif is_due:
            self.say(f"{self._stage}{line}")


class ModelsProgress(_Lines):
    """Progress of each model. Without a terminal, a finished model always gets a line."""

    def __init__(
        self,
        log: Callable[[str], None],
        stage: str = "",
        every: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(log, f"{stage}: " if stage else "", every, clock)
        self._finished: dict[str, int] = {}

    def __call__(self, models: tuple[ModelProgress, ...]) -> None:
        is_due = self._check_due()
        for line in models:
            is_finished = line.settled == line.total
            # A finished model continues if its responses lead to further requests.
            is_new = self._finished.get(line.model) != line.total
            is_news = is_new and (is_due or (is_finished and line.model not in self._finished))
            self._show(line.model, line.settled, line.total, _list_model_details(line), is_news)
            if is_finished:
                self._finished[line.model] = line.total


class PartsProgress(_Lines):
    """Progress of a stage, with the time so far. `head`: the stage and what is counted, such as `score: partitions`."""

    def __init__(
        self,
        head: str,
        total: int,
        log: Callable[[str], None],
        every: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(log, "", every, clock)
        self._head, self._total, self._start = head, total, self._last

    def __call__(self, count: int, part: str | None = None) -> None:
        """Show the count of parts done; with the name of a part, of parts begun."""
        seconds = _format_duration(self._clock() - self._start)
        self._show(self._head, count, self._total, [part, seconds] if part else [seconds], self._check_due())
