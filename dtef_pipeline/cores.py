"""How many processors there are to share work among."""

from __future__ import annotations

import os


def cores() -> int:
    """Number of processors that this process may use: those of its CPU affinity where the system has one, else all of the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
