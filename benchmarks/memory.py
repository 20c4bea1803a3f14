"""How much memory a process held."""

from __future__ import annotations

from pathlib import Path


def held_mb(process: Path) -> float:
    """MB that a process of Linux (a folder of /proc) held at most; what `getrusage` says is never less than its parent held."""
    said = dict(line.partition(":")[::2] for line in (process / "status").read_text(encoding="utf-8").splitlines())
    return int(said["VmHWM"].split()[0]) / 1024
