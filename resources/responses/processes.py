"""Which process on which machine this is, and whether such a process still runs."""

from __future__ import annotations

import os
import socket
import sys
import uuid
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_HIDDEN = uuid.uuid4().hex
"""Replaces the id of a container that cannot be distinguished from others; unique to this process."""


class Process(NamedTuple):
    """A process of some machine. `started` tells it from a later one of the same number; None where the machine does not say."""

    machine: str
    pid: int
    started: str | None

    @classmethod
    def this(cls) -> Process:
        return cls(_identify_machine(), os.getpid(), _read_start_time(os.getpid()))

    def is_dead(self) -> bool:
        """Whether the process is known to have ended. Of another machine's process that is never known."""
        # Elsewhere than on POSIX, signal 0 is a signal like others.
        if os.name != "posix" or self.machine != _identify_machine():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        if _is_zombie(self.pid):
            return True
        return self.started is not None and self.started != _read_start_time(self.pid)


def is_running_since(pid: int, moment: float) -> bool:
    """Whether process `pid` of this machine runs and was there at `moment` (seconds since 1970): no later one of the same number."""
    if Process(_identify_machine(), pid, None).is_dead():
        return False
    start, boot = _read_start_time(pid), _find_boot_time()
    if start is None or boot is None:
        return True
    # The boot time is known to the second.
    return boot + int(start) / os.sysconf("SC_CLK_TCK") <= moment + 2


def _find_boot_time() -> float | None:
    """When this machine was started, in seconds since 1970."""
    try:
        lines = (_PROC / "stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((float(line.split()[1]) for line in lines if line.startswith("btime ")), None)


def _identify_machine() -> str:
    """What has process numbers of its own: the host since it was booted, and the container. Host names alone do repeat."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        numbers = (_PROC / "self/ns/pid").readlink().name
    except OSError:
        # A container that hides them may have the name and the network card of another one: then nothing of its processes is known elsewhere.
        boot, numbers = f"{uuid.getnode():x}", _HIDDEN if sys.platform == "linux" else "-"
    return f"{socket.gethostname()} {boot} {numbers}"


def _read_start_time(pid: int) -> str | None:
    fields = _read_status(pid)
    return fields[19] if fields else None


def _is_zombie(pid: int) -> bool:
    """Killed, and not yet collected by its parent: it still has its number."""
    fields = _read_status(pid)
    return bool(fields) and fields[0] in "ZX"


def _read_status(pid: int) -> list[str]:
    """/proc/PID/stat from its third field (the state) on: what is before it, the program's name, may hold spaces."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()
