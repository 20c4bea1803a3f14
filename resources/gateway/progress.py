"""How far a run is: counts per model and per stage, shown live on a terminal or as sparse log lines.

All lines have one form: stage, count done of total, cached and failed, rate, cost so far, time left (`format_progress`).
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from dtef_pipeline.text.quantity_words import format_count
from dtef_pipeline.text.unknown_cost import format_short_costs


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """The requests to one model so far."""

    model: str
    total: int
    replayed: int
    """Already in the store."""
    done: int
    """Asked now, and the response is stored."""
    failed: int
    stopped: int = 0
    """Not asked, because a budget was reached."""
    rate: float = 0.0
    """Responses per second over the last half minute."""
    rate_limited: int = 0
    """429s of the run so far."""
    cost_usd: float | None = 0.0
    """Known costs of the run so far; None: none is known."""
    unknown_cost_attempts: int = 0
    unknown_cost_usd_most: float | None = None
    """As those of `Response`, of the run so far."""
    seconds_left: float | None = None
    """At the present rate; None: nothing has been answered lately."""

    @property
    def settled(self) -> int:
        return self.replayed + self.done + self.failed + self.stopped


OnProgress = Callable[[tuple[ModelProgress, ...]], None]


class Display(Protocol):
    """Shows how far a run is, and single lines about it."""

    def __call__(self, models: tuple[ModelProgress, ...]) -> None: ...

    def say(self, line: str) -> None: ...

    def rest(self) -> None:
        """Make room for other lines until there is news of the models."""


_errors: TextIO | None = None
"""Where stderr of the command at hand goes. Of the whole process, as stderr is: `keep_terminal` alone sets it, and takes it back."""


@contextmanager
def keep_terminal() -> Iterator[None]:
    """For the length of a command, keep where its stderr goes: Dagster sends stderr of a running step to a file."""
    global _errors
    try:
        stream = os.fdopen(os.dup(sys.stderr.fileno()), "w", buffering=1)
    except OSError:  # no file behind it
        yield
        return
    before, _errors = _errors, stream
    try:
        with stream:
            yield
    finally:
        _errors = before


@contextmanager
def display_progress(log: Callable[[str], None], stage: str = "", every: float = 30.0) -> Iterator[Display]:
    """One live line per model if there is a terminal, else lines to `log`: at most one per model in `every` seconds.

    `stage`: what lines begin with, such as `predictions`; empty: with the model.
    What `say` is given goes to `log` in any case, and within a command (`keep_terminal`) to its stderr too.
    """
    errors = _choose_error_stream()
    if errors is None or not errors.isatty():
        yield LogProgress(_write_to_both(log, errors), stage, every)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
    )
    live = _LiveProgress(Progress(*columns, console=Console(file=errors, force_terminal=True)), log)
    try:
        yield live
    finally:
        live.close()


def _choose_error_stream() -> TextIO | None:
    return _errors or (sys.stderr if sys.stderr.isatty() else None)


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """While something is done that cannot be counted: the title and the seconds, where a command runs on a terminal."""
    if _errors is None or not _errors.isatty():
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=_errors, force_terminal=True), transient=True) as progress:
        progress.add_task(title, total=None)
        yield


def _write_to_both(log: Callable[[str], None], errors: TextIO | None) -> Callable[[str], None]:
    def write(line: str) -> None:
        log(line)
        if errors is not None:
            print(line, file=errors)

    return write


class RunProgress:
    """Counts of a whole run that is asked a window of requests at a time, handed on to a display.

    `expected`: requests of the run by model name.
    """

    def __init__(self, show: OnProgress, expected: Mapping[str, int], clock: Callable[[], float] = time.monotonic) -> None:
        self._show, self._expected, self._clock = show, expected, clock
        self._began: dict[str, float] = {}
        self._before: dict[str, ModelProgress] = {}
        self._now: dict[str, ModelProgress] = {}
        self.is_open = False
        """Whether more than what is known may follow from responses, so that nobody knows how long it takes."""

    def __call__(self, models: tuple[ModelProgress, ...]) -> None:
        self._now.update((line.model, self._sum_windows(line)) for line in models)
        self._show(tuple(self._now.values()))

    def window_done(self) -> None:
        """What was counted so far comes on top of what the next window counts."""
        self._before = dict(self._now)

    def _sum_windows(self, line: ModelProgress) -> ModelProgress:
        before = self._before.get(line.model)
        earlier = before.settled if before else 0
        n_settled = line.settled + earlier
        # Replies that are asked for once more were not expected: they come on top.
        expected = self._expected.get(line.model, 0)
        total = max(expected, line.total + earlier)
        counts = {name: getattr(line, name) + getattr(before, name, 0) for name in ("replayed", "done", "failed", "stopped")}
        so_far = self._rate_so_far(line.model, counts["done"])
        rate = line.rate or so_far
        is_known = rate and not (self.is_open and line.total + earlier > expected)
        return replace(line, total=total, **counts, rate=rate, seconds_left=(total - n_settled) / rate if is_known else None)

    def _rate_so_far(self, model: str, n_done: int) -> float:
        """Of a model that has not responded for half a minute, the mean rate since the run first had news of it."""
        now = self._clock()
        seconds = now - self._began.setdefault(model, now)
        return n_done / seconds if seconds > 0 else 0.0


_live_lines = False
"""Whether the live lines of models stand on the terminal: no other line may be replaced there meanwhile."""


class _LiveProgress:
    def __init__(self, bars: Progress, log: Callable[[str], None]) -> None:
        self._bars, self._log = bars, log
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, models: tuple[ModelProgress, ...]) -> None:
        global _live_lines
        if not _live_lines:
            self._bars.console.file.write(_ERASED)
            _live_lines = True
            self._bars.start()
        for line in models:
            if line.model not in self._tasks:
                self._tasks[line.model] = self._bars.add_task(line.model, total=line.total, note="")
            self._bars.update(
                self._tasks[line.model], completed=line.settled, total=line.total, note=", ".join(_list_model_details(line))
            )

    def say(self, line: str) -> None:
        self._log(line)
        self._bars.console.print(line, markup=False, highlight=False)

    def rest(self) -> None:
        self._stop(is_kept=False)

    def close(self) -> None:
        if self._tasks and not _live_lines:
            self(())
        self._stop(is_kept=True)

    def _stop(self, is_kept: bool) -> None:
        global _live_lines
        _live_lines = False
        self._bars.live.transient = not is_kept
        self._bars.stop()


def format_progress(head: str, done: int, total: int, details: Iterable[str]) -> str:
    """`predictions: gpt-4.1-mini 152/900, 40 cached, 2 failed, 208/min, $0.42, 2 min left`. `head`: stage, and what is counted."""
    return ", ".join([f"{head} {done:,}/{total:,}", *details])


def _list_model_details(one: ModelProgress) -> list[str]:
    """What follows a model's count: `40 cached`, `2 failed`, `5 not asked`, `208/min`, `12 rate limits`, `$0.42`, `2 min left`."""
    parts = [f"{one.replayed:,} cached", f"{one.failed:,} failed"]
    if one.stopped:
        parts.append(f"{one.stopped:,} not asked")
    if one.rate:
        parts.append(_format_pace(one.rate))
    if one.rate_limited:
        parts.append(format_count(one.rate_limited, "rate limit"))
    parts += format_short_costs(one.cost_usd, one.unknown_cost_attempts, one.unknown_cost_usd_most)
    if one.seconds_left is not None and one.settled < one.total:
        parts.append(f"{_format_duration(one.seconds_left)} left")
    return parts


def _format_pace(per_second: float) -> str:
    """`208/min`, `1.5/min`, `20/h`: never a rate of 0."""
    per_minute = per_second * 60
    if per_minute >= 0.95:
        return f"{per_minute:,.0f}/min" if per_minute >= 10 else f"{per_minute:.1f}/min"
    return f"{max(1, round(per_second * 3600))}/h"


def _format_duration(seconds: float) -> str:
    """`40 s`, `12 min`, `3 h 20 min`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


class LogProgress:
    """Lines of `format_progress`: at most one per model in `every` seconds, and always one when a model is finished."""

    def __init__(
        self,
        log: Callable[[str], None],
        stage: str = "",
        every: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log, self._head, self._every, self._clock = log, f"{stage}: " if stage else "", every, clock
        self._last = clock()
        self._finished: dict[str, int] = {}

    def __call__(self, models: tuple[ModelProgress, ...]) -> None:
        due = self._clock() - self._last >= self._every
        if due:
            self._last = self._clock()
        for line in models:
            is_finished = line.settled == line.total
            # A model that was finished goes on where more follows from its responses.
            if (due or (is_finished and line.model not in self._finished)) and self._finished.get(line.model) != line.total:
                self._log(format_progress(f"{self._head}{line.model}", line.settled, line.total, _list_model_details(line)))
            if is_finished:
                self._finished[line.model] = line.total

    def say(self, line: str) -> None:
        self._log(line)

    def rest(self) -> None:
        """Lines stand in nobody's way."""


_ERASED = "\r\x1b[K"
_BAR_WIDTH, _LEAST_WIDTH = 30, 5


class PartsProgress:
    """How much of a stage is done: a line with a bar that is replaced as the stage goes on, or without a terminal a line now and then.

    `head`: the stage and what is counted, such as `scores: partitions`. Lines go to `log`, and within a command to its stderr too.
    """

    def __init__(
        self,
        head: str,
        total: int,
        log: Callable[[str], None],
        every: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        errors = _choose_error_stream()
        self._terminal = errors if errors is not None and errors.isatty() else None
        self._lines = None if self._terminal else errors
        self._head, self._total, self._log, self._clock = head, total, _write_to_both(log, errors), clock
        self._every = 0.1 if self._terminal else every
        self._began = self._last = clock()
        self._parts_begun = self._done_before = 0

    def announce(self, line: str) -> None:
        """A line of its own for a command without a terminal, where nothing else says for half a minute what goes on."""
        if self._lines is not None:
            print(line, file=self._lines)

    def __call__(self, n_done: int) -> None:
        now = self._clock()
        if now - self._last < self._every:
            return
        self._last = now
        since = n_done - self._done_before
        rate = since / (now - self._began) if since and now > self._began else 0.0
        wait = (
            [_format_pace(rate), f"{_format_duration((self._total - n_done) / rate)} left"]
            if rate and n_done < self._total
            else []
        )
        self._show(n_done, format_progress(self._head, n_done, self._total, wait))

    def resume(self, n_done: int) -> None:
        """The work goes on after something else, whose time says nothing of the time left."""
        self._began, self._done_before = self._clock(), n_done

    def begin(self, part: str) -> None:
        """The next part begins. Its name replaces the time left: parts with names take very different times."""
        self._parts_begun += 1
        self._show(self._parts_begun - 1, format_progress(self._head, self._parts_begun, self._total, [part]))

    def _show(self, n_done: int, line: str) -> None:
        if self._terminal is None:
            self._log(line)
        elif not _live_lines:
            columns = shutil.get_terminal_size().columns
            # A line that is broken cannot be replaced.
            width = max(_LEAST_WIDTH, min(_BAR_WIDTH, columns - len(line) - len("[] ") - 1))
            n_filled = width * n_done // max(1, self._total)
            text = f"[{'#' * n_filled}{'.' * (width - n_filled)}] {line}"
            self._write(f"\r{text[: columns - 1]}\x1b[K")

    def close(self) -> None:
        """Take the line off the terminal."""
        if not _live_lines:
            self._write(_ERASED)

    def _write(self, text: str) -> None:
        if self._terminal is not None:
            self._terminal.write(text)
            self._terminal.flush()
