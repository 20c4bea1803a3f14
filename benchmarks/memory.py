"""How much memory a process held, also one that runs another checkout, which may have no such module."""

from __future__ import annotations

import os
from pathlib import Path


def modules_of(checkout: Path) -> str:
    """PYTHONPATH of a process that runs the code of a checkout, and this module."""
    return os.pathsep.join([str(checkout), str(Path(__file__).resolve().parent.parent)])


def held_mb(process: Path) -> float:
    """MB that a process of Linux (a folder of /proc) held at most; what `getrusage` says is never less than its parent held."""
    said = dict(line.partition(":")[::2] for line in (process / "status").read_text(encoding="utf-8").splitlines())
    return int(said["VmHWM"].split()[0]) / 1024
