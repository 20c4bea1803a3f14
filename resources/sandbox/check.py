"""One check: starts a candidate and a tester, carries frames between them, and waits for the verdict."""

from __future__ import annotations

import os
import selectors
import struct
import time
from dataclasses import dataclass, replace
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
    """The tester ended without a verdict. `replied`: how many values of the candidate it had received."""

    def __init__(self, n_replies: int) -> None:
        self.replied = n_replies


@dataclass(frozen=True, slots=True)
class _Frame:
    letter: bytes
    payload: bytes


class _End:
    """This side of a process: buffers of bytes to write to it and bytes read from it."""

    def __init__(self, process: StartedProcess) -> None:
        self.process = process
        self.outgoing, self.incoming = bytearray(), bytearray()
        os.set_blocking(process.stdin, False)
        os.set_blocking(process.stdout, False)

    def put(self, letter: bytes, payload: bytes) -> None:
        self.outgoing += _HEAD.pack(letter, len(payload))
        self.outgoing += payload

    def write(self) -> None:
        """Write as much as the pipe takes. A process that has ended takes everything; reading shows its end."""
        try:
            del self.outgoing[: os.write(self.process.stdin, self.outgoing[: 1 << 16])]
        except BlockingIOError:
            return
        except OSError:
            self.outgoing.clear()

    def read(self) -> bool:
        """Read, and return False if the process has ended."""
        try:
            part = os.read(self.process.stdout, 1 << 20)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.incoming += part
        return bool(part)

    def frame(self) -> _Frame | None:
        """Return the next complete frame, or None. Raises NotTransferable if it is too large."""
        if len(self.incoming) < _HEAD.size:
            return None
        letter, size = _HEAD.unpack_from(self.incoming)
        if size > LARGEST_FRAME:
            raise NotTransferable(f"a value of {size:,} bytes")
        if len(self.incoming) < _HEAD.size + size:
            return None
        with memoryview(self.incoming) as view:
            payload = bytes(view[_HEAD.size : _HEAD.size + size])
        del self.incoming[: _HEAD.size + size]
        return _Frame(letter, payload)


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
            status = "crashed" if loss.replied else "sandbox_error"
            result = CheckResult(
                status, "the process of the tests ended" + (" on what the function gave back" * bool(loss.replied))
            )
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
        self._open = {candidate: True, tester: True}
        self._loaded, self._calling, self._calls, self._replies = False, False, 0, 0

    def verdict(self, task: SandboxTask, timeout_s: float) -> CheckResult:
        until_ready = time.monotonic() + START_PATIENCE
        versions = [self._wait_until_ready(end, until_ready) for end in (self._candidate, self._tester)]
        began, cpu_time = time.monotonic(), cpu_seconds(self._candidate.process.number)
        self._candidate.put(b"P", encode_value((task.program, task.entry_point)))
        self._tester.put(b"P", encode_value((task.helpers, task.tests, task.entry_point)))
        try:
            result = self._exchange_frames(began + timeout_s)
        except NotTransferable as error:
            result = CheckResult("exception", f"the function gave back {error}")
        if result is None:
            cpu_time = cpu_seconds(self._candidate.process.number) - cpu_time
            result = CheckResult("timeout", f"not done within {timeout_s:g} s", cpu_seconds=cpu_time)
        seconds = time.monotonic() - began
        return replace(result, python=versions[0], seconds=seconds, calls=max(result.calls, self._calls))

    def _wait_until_ready(self, end: _End, deadline: float) -> str:
        """Return the version that a process reports when it is ready."""
        while (frame := end.frame()) is None:
            if not self._wait(deadline):
                raise NotStarted(f"a process was not ready after {START_PATIENCE:g} s")
            if not self._open[end]:
                raise NotStarted("a process ended before it was ready")
        return str(decode_value(frame.payload))

    def _exchange_frames(self, deadline: float) -> CheckResult | None:
        """Exchange frames between both until there is a verdict, or return None if time runs out."""
        while True:
            while frame := self._tester.frame():
                if frame.letter == b"V":
                    return _parse_verdict(frame.payload)
                if self._calling:
                    return CheckResult("sandbox_error", "the tests called the function before it had answered")
                self._calling = True
                self._calls += 1
                self._candidate.put(b"C", frame.payload)
            while frame := self._candidate.frame():
                if result := self._handle_candidate_frame(frame):
                    return result
            if not self._open[self._candidate]:
                return CheckResult("crashed", "the process of the program ended")
            if not self._open[self._tester]:
                raise _TesterLost(self._replies)
            if not self._wait(deadline):
                return None

    def _handle_candidate_frame(self, frame: _Frame) -> CheckResult | None:
        """Return the check's result if the frame ends it. Each open call forwards one answer, so that none pile up here."""
        if not self._loaded:
            if frame.letter == b"O":
                self._loaded = True
                return None
            return CheckResult("syntax" if frame.letter == b"S" else "load", _decode_words(frame.payload))
        if not self._calling:
            return CheckResult("exception", "the program answered a call that was not made")
        if frame.letter not in _REPLY_LETTERS:
            return CheckResult("exception", "the program wrote what is no answer of its function")
        self._calling = False
        self._replies += 1
        self._tester.put(frame.letter, frame.payload)
        return None

    def _wait(self, deadline: float) -> bool:
        """Read and write what is possible. Return False if time is over."""
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return False
        with selectors.PollSelector() as ready:
            for end, is_open in self._open.items():
                if is_open:
                    ready.register(end.process.stdout, selectors.EVENT_READ, end)
                if end.outgoing:
                    ready.register(end.process.stdin, selectors.EVENT_WRITE, end)
            for key, event in ready.select(remaining):
                end = key.data
                if event & selectors.EVENT_WRITE:
                    end.write()
                else:
                    self._open[end] = end.read()
        return True


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
