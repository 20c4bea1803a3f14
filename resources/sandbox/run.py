"""Checks of programs at the machine's best level, as many at once as it has cores: a candidate and a tester exchange frames in turn."""

from __future__ import annotations

import functools
import os
import select
import struct
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from dtef_pipeline.cores import cores
from dtef_pipeline.judging.code_checks import CheckResult, SandboxTask
from dtef_pipeline.text.well_formed import replace_surrogates
from resources.sandbox.levels import (
    LEVELS,
    StartedProcess,
    StartWay,
    can_change_user,
    find_sandlock_problem,
    list_ways,
    start,
)
from resources.sandbox.worker import LARGEST_FRAME, NotTransferable, decode_value, encode_value
from resources.settings import Settings

START_PATIENCE = 60.0
"""Seconds for a process to start; a busy machine is not the program's fault."""
START_TRIES = 3
_LONGEST_TELLING = 4096
"""Maximum bytes of a process's report. Longer ones are not read, because a program may have written them."""
_REPLY_LETTERS = (b"A", b"E", b"U")
_HEAD = struct.Struct(">cI")


class NotStarted(Exception):
    """A process did not become ready: the sandbox's fault."""


class _TesterLost(Exception):
    """The tester ended without a verdict. `n_replies`: how many values of the candidate it had received."""

    def __init__(self, n_replies: int) -> None:
        self.n_replies = n_replies


class _End:
    """This side of a process's two pipes. Reading and writing raise TimeoutError at the deadline, a time of `time.monotonic`."""

    def __init__(self, process: StartedProcess) -> None:
        self.process = process
        os.set_blocking(process.stdin, False)

    def send(self, letter: bytes, payload: bytes, deadline: float) -> None:
        """Write a frame. A process that has ended takes everything; reading shows its end."""
        remaining = memoryview(_HEAD.pack(letter, len(payload)) + payload)
        while remaining:
            _wait_for(self.process.stdin, select.POLLOUT, deadline)
            try:
                remaining = remaining[os.write(self.process.stdin, remaining) :]
            except BlockingIOError:
                continue
            except OSError:
                return

    def receive(self, deadline: float) -> tuple[bytes, bytes]:
        """Return the letter and payload of the next frame. Raises EOFError at the process's end, NotTransferable if it is too large."""
        letter, size = _HEAD.unpack(self._read(_HEAD.size, deadline))
        if size > LARGEST_FRAME:
            raise NotTransferable(f"a value of {size:,} bytes")
        return letter, self._read(size, deadline)

    def receive_version(self, deadline: float) -> str:
        """Return the Python version that a process reports when it is ready. Raises NotStarted."""
        try:
            return str(decode_value(self.receive(deadline)[1]))
        except TimeoutError:
            raise NotStarted(f"a process was not ready after {START_PATIENCE:g} s") from None
        except EOFError:
            raise NotStarted("a process ended before it was ready") from None

    def _read(self, size: int, deadline: float) -> bytes:
        content = bytearray()
        while len(content) < size:
            _wait_for(self.process.stdout, select.POLLIN, deadline)
            part = os.read(self.process.stdout, min(size - len(content), 1 << 20))
            if not part:
                raise EOFError
            content += part
        return bytes(content)


def _wait_for(file: int, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(file, event)
    remaining = deadline - time.monotonic()
    if remaining <= 0 or not poll.poll(1000 * remaining):
        raise TimeoutError


def check(task: SandboxTask, method: StartWay, timeout_s: float) -> CheckResult:
    """Return the verdict on one program. A process that fails to start is retried twice; then the sandbox is at fault."""
    result = CheckResult("sandbox_error")
    for _ in range(START_TRIES):
        try:
            result = check_once(task, method, timeout_s)
            break
        except NotStarted as error:
            result = CheckResult("sandbox_error", str(error)[:300])
        except _TesterLost as loss:
            status, cause = ("crashed", " on what the function gave back") if loss.n_replies else ("sandbox_error", "")
            result = CheckResult(status, f"the process of the tests ended{cause}")
        except Exception as error:  # the failure of one check never ends the others
            result = CheckResult("sandbox_error", replace_surrogates(f"{type(error).__name__}: {error}")[:300])
    return replace(result, level=method.level)


def check_once(task: SandboxTask, method: StartWay, timeout_s: float, complaints: IO[bytes] | None = None) -> CheckResult:
    """Return the verdict of two newly started processes. Raises NotStarted or _TesterLost."""
    processes: list[StartedProcess] = []
    try:
        for role in ("candidate", "tester"):
            try:
                processes.append(start(method, role, timeout_s, complaints))
            except (OSError, RuntimeError) as error:
                raise NotStarted(f"the {role} cannot be started: {error}") from None
        return _Conversation(*(_End(process) for process in processes)).verdict(task, timeout_s)
    finally:
        for process in processes:
            process.end()


class _Conversation:
    def __init__(self, candidate: _End, tester: _End) -> None:
        self._candidate, self._tester = candidate, tester
        self._calls = 0

    def verdict(self, task: SandboxTask, timeout_s: float) -> CheckResult:
        until_ready = time.monotonic() + START_PATIENCE
        version, _ = (end.receive_version(until_ready) for end in (self._candidate, self._tester))
        began, cpu_time = time.monotonic(), cpu_seconds(self._candidate.process.number)
        try:
            result = self._exchange_frames(task, began + timeout_s)
        except NotTransferable as error:
            result = CheckResult("exception", f"the function gave back {error}")
        except EOFError:
            result = CheckResult("crashed", "the process of the program ended")
        except TimeoutError:
            cpu_time = cpu_seconds(self._candidate.process.number) - cpu_time
            result = CheckResult("timeout", f"not done within {timeout_s:g} s", cpu_seconds=cpu_time)
        return replace(result, python=version, seconds=time.monotonic() - began, calls=max(result.calls, self._calls))

    def _exchange_frames(self, task: SandboxTask, deadline: float) -> CheckResult:
        """Pass the tester's calls to the candidate and its answers back, until there is a verdict."""
        self._candidate.send(b"P", encode_value((task.program, task.entry_point)), deadline)
        self._tester.send(b"P", encode_value((task.helpers, task.tests, task.entry_point)), deadline)
        letter, payload = self._candidate.receive(deadline)
        if letter != b"O":
            return CheckResult("syntax" if letter == b"S" else "load", _decode_words(payload))
        while True:
            try:
                letter, payload = self._tester.receive(deadline)
            except EOFError:
                raise _TesterLost(self._calls) from None
            if letter == b"V":
                return _parse_verdict(payload)
            self._calls += 1
            self._candidate.send(b"C", payload, deadline)
            letter, payload = self._candidate.receive(deadline)
            if letter not in _REPLY_LETTERS:
                return CheckResult("exception", "the program wrote what is no answer of its function")
            self._tester.send(letter, payload, deadline)


def _decode_words(payload: bytes) -> str:
    if len(payload) > _LONGEST_TELLING:
        return "what is too long to be read"
    try:
        return replace_surrogates(str(decode_value(payload)))[:300]
    except NotTransferable:
        return "what cannot be read"


def _parse_verdict(payload: bytes) -> CheckResult:
    try:
        status, detail, calls = decode_value(payload[:_LONGEST_TELLING])
    except (NotTransferable, TypeError, ValueError):
        return CheckResult("sandbox_error", "the verdict cannot be read")
    return CheckResult(replace_surrogates(str(status)), replace_surrogates(str(detail))[:300], calls=int(calls))


def cpu_seconds(process: int) -> float:
    """Return CPU seconds used so far by a process and its descendants. Unreadable processes count as 0: the sum is never too high."""
    ticks, waiting = 0, [process]
    while waiting:
        number = waiting.pop()
        try:
            fields = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            below = Path(f"/proc/{number}/task/{number}/children").read_text(encoding="utf-8").split()
            ticks += int(fields[11]) + int(fields[12])  # utime and stime: fields 14 and 15 of proc(5)
        except (OSError, ValueError, IndexError):
            continue
        waiting += map(int, below)
    return ticks / os.sysconf("SC_CLK_TCK")


CHECK_TIMEOUT = 10.0
"""Maximum seconds of a whole check."""
_LATE_BY_ITSELF = 0.9
"""Share of its time that a program must have used the processor for, so that it is late through its own fault."""
_TRIAL_PROGRAM = """
import os
def tried(path):
    try:
        open(path).close()
        readable = True
    except OSError:
        readable = False
    return os.getuid() != 0 or MAY_BE_ROOT, readable
"""
_TRIAL_TESTS = """
def check(candidate):
    ordinary_user, readable = candidate("/etc/passwd")
    assert ordinary_user, "it runs as root"
    assert not readable, "files can be read"
"""


@dataclass(frozen=True, slots=True)
class SandboxLevel:
    """The level at which programs are checked, and why no better one."""

    level: str | None
    """The level; None: none is usable, and programs are not checked."""
    reasons: Mapping[str, str]
    """Why each better level is not used, or each level if none is usable."""

    @property
    def words(self) -> str:
        """A one-line description."""
        reasons = "; ".join(f"no {level}: {reason}" for level, reason in self.reasons.items())
        return f"{self.level or 'none'}{f' ({reasons})' if reasons else ''}"


def choose_level(level: str | None = None) -> SandboxLevel:
    """Return the level that `auto` or a requested level resolves to here; None means `DTEF_SANDBOX`. Raises ConfigError for an unknown
    level.

    A level is usable if a program has been run at it; this is tried once per process.
    """
    wish = level or Settings.read_environment().sandbox
    if wish == "off":
        return SandboxLevel(None, {"sandbox": "DTEF_SANDBOX is off"})
    reasons: dict[str, str] = {}
    for name in LEVELS if wish == "auto" else (wish,):
        method = find_usable_way(name)
        if isinstance(method, StartWay):
            return SandboxLevel(name, reasons)
        reasons[name] = method
    return SandboxLevel(None, reasons)


def run_checks(
    tasks: Sequence[SandboxTask],
    *,
    level: str | None = None,
    timeout_s: float = CHECK_TIMEOUT,
    workers: int | None = None,
) -> Iterator[CheckResult]:
    """Yield the result of each program, in order, as soon as it is known.

    `level`: as for `choose_level`. `timeout_s`: seconds of wall time for one whole check. `workers`: how many checks run at once; None for
    one per core. Without a usable level every result is `sandbox_unavailable`.
    """
    choice = choose_level(level)
    method = find_usable_way(choice.level) if choice.level else None
    if not isinstance(method, StartWay):
        yield from (CheckResult("sandbox_unavailable", f"sandbox: {choice.words}"[:300]) for _ in tasks)
        return
    with ThreadPoolExecutor(workers or cores(), thread_name_prefix="check") as pool:
        yield from pool.map(lambda task: check(task, method, timeout_s), tasks)


def run_checks_twice(
    tasks: Mapping[str, SandboxTask], *, level: str | None = None, timeout_s: float = CHECK_TIMEOUT
) -> Iterator[tuple[str, CheckResult | None]]:
    """Yield the results of `run_checks` by key; a program that times out while it waits is run once more, with no check beside it.

    Such a program, which lacked the processor for more than a tenth of its time, comes twice: with None, and, after all others, with its
    second result, which no other check has slowed.
    """
    late: dict[str, SandboxTask] = {}
    results = run_checks(list(tasks.values()), level=level, timeout_s=timeout_s)
    for key, result in zip(tasks, results, strict=True):
        if result.status == "timeout" and result.cpu_seconds < _LATE_BY_ITSELF * timeout_s:
            late[key] = tasks[key]
        yield key, None if key in late else result
    repeats = run_checks(list(late.values()), level=level, timeout_s=timeout_s, workers=1)
    yield from zip(late, repeats, strict=True)


@functools.cache
def find_usable_way(level: str) -> StartWay | str:
    """Return the first way of a level in which a program ran, or why there is none."""
    if os.name != "posix":
        return "this system has no means for it"
    if level == "sandlock" and (problem := find_sandlock_problem()):
        return problem
    reason = "its program is not installed"
    for method in list_ways(level):
        reason = _try_way(method)
        if not reason:
            return method
    return reason


def _try_way(method: StartWay) -> str:
    """Return why a program cannot be run in a way, or "" if it runs and is isolated as promised."""
    task = SandboxTask(_TRIAL_PROGRAM.replace("MAY_BE_ROOT", str(not can_change_user())), "tried", _TRIAL_TESTS)
    with tempfile.TemporaryFile() as complaints:
        try:
            result = check_once(task, method, 30.0, complaints)
        except NotStarted as error:
            complaints.seek(0)
            lines = complaints.read(4000).decode("utf-8", "replace").strip().splitlines()
            return lines[-1][:200] if lines else str(error)
        except Exception as error:  # any error means that the level is not usable
            return f"{type(error).__name__}: {error}"[:200]
    return "" if result.status == "passed" else f"{result.status}: {result.detail}"
