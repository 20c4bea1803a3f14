"""Identity of this process and its machine, and whether such a process still runs."""

from __future__ import annotations

import os
import socket
import uuid
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class Process(NamedTuple):
    """A process of some machine. `started` distinguishes it from later ones of that number; None if the machine does not report it."""

    machine: str
    pid: int
    started: str | None

    @classmethod
    def current(cls) -> Process:
        return cls(_identify_machine(), os.getpid(), _read_start_time(os.getpid()))

    def is_dead(self) -> bool:
        """Return whether the process is known to have ended: never known of another machine's."""
        # On other systems than POSIX, signal 0 is a real signal.
        if os.name != "posix" or self.machine != _identify_machine():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        # One that ended but was not collected by its parent keeps its number.
        if (fields := _read_status(self.pid)) and fields[0] in "ZX":
            return True
        return self.started is not None and self.started != _read_start_time(self.pid)


def is_running_since(pid: int, moment: float) -> bool:
    """Return whether this machine's process `pid` runs and existed at `moment` (seconds since 1970), so is no later one."""
    if Process(_identify_machine(), pid, None).is_dead():
        return False
    start, boot = _read_start_time(pid), _find_boot_time()
    if start is None or boot is None:
        return True
    # The boot time has a resolution of seconds.
    return boot + int(start) / os.sysconf("SC_CLK_TCK") <= moment + 2


def _find_boot_time() -> float | None:
    """Return this machine's boot time in seconds since 1970."""
    try:
        lines = (_PROC / "stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((float(line.split()[1]) for line in lines if line.startswith("btime ")), None)


def _identify_machine() -> str:
    """Return the scope of process numbers: the host since its boot, and the container. Host names repeat."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        numbers = (_PROC / "self/ns/pid").readlink().name
    except OSError:
        boot, numbers = f"{uuid.getnode():x}", "-"
    return f"{socket.gethostname()} {boot} {numbers}"


def _read_start_time(pid: int) -> str | None:
    fields = _read_status(pid)
    return fields[19] if fields else None


def _read_status(pid: int) -> list[str]:
    """Return /proc/PID/stat from its third field (the state) on: before it, the program's name may contain spaces."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()
