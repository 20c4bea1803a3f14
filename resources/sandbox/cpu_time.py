"""How long programs have used the processor, as Linux tells it."""

from __future__ import annotations

import os
from pathlib import Path


def cpu_seconds(process: int) -> float:
    """Seconds that a process and all below it have used so far. What cannot be seen counts as 0: never too much is told."""
    ticks, waiting = 0, [process]
    while waiting:
        one = waiting.pop()
        try:
            fields = Path(f"/proc/{one}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            below = Path(f"/proc/{one}/task/{one}/children").read_text(encoding="utf-8").split()
            ticks += int(fields[11]) + int(fields[12])  # utime and stime: fields 14 and 15 of proc(5)
        except (OSError, ValueError, IndexError):
            continue
        waiting += map(int, below)
    return ticks / os.sysconf("SC_CLK_TCK")
