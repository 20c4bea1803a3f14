"""One check: starts a candidate and a tester, passes frames between them in turn, and waits for the verdict."""

from __future__ import annotations

import os
import select
import struct
import time
from dataclasses import replace
from pathlib import Path
from typing import IO

from dtef_pipeline.judging.code_checks import CheckResult, SandboxTask
from dtef_pipeline.text.well_formed import replace_surrogates
from resources.sandbox.levels import Interpreter, StartedProcess, StartWay, start
from resources.sandbox.worker import NotTransferable, decode_value, encode_value

START_PATIENCE = 60.0
"""Seconds for a process to start; a busy machine is not the program's fault."""
START_TRIES = 3
LARGEST_FRAME = 2**24
"""Maximum bytes of one value between the processes; this process holds only a few of them per check."""
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


def check(task: SandboxTask, method: StartWay, python: Interpreter, timeout_s: float) -> CheckResult:
    """Return the verdict on one program. A process that fails to start is retried twice; then the sandbox is at fault."""
    result = CheckResult("sandbox_error")
    for _ in range(START_TRIES):
        try:
            result = check_once(task, method, python, timeout_s)
            break
        except NotStarted as error:
            result = CheckResult("sandbox_error", str(error)[:300])
        except _TesterLost as loss:
            status, cause = ("crashed", " on what the function gave back") if loss.n_replies else ("sandbox_error", "")
            result = CheckResult(status, f"the process of the tests ended{cause}")
        except Exception as error:  # the failure of one check never ends the others
            result = CheckResult("sandbox_error", replace_surrogates(f"{type(error).__name__}: {error}")[:300])
    return replace(result, level=method.level)


def check_once(
    task: SandboxTask, method: StartWay, python: Interpreter, timeout_s: float, complaints: IO[bytes] | None = None
) -> CheckResult:
    """Return the verdict of two newly started processes. Raises NotStarted or _TesterLost."""
    processes: list[StartedProcess] = []
    try:
        for role in ("candidate", "tester"):
            try:
                processes.append(start(method, python, role, timeout_s, complaints))
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
