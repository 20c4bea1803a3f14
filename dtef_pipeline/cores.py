"""The number of processors available for parallel work."""

from __future__ import annotations

import os


def cores() -> int:
    """Return the number of processors of this process's CPU affinity, or of the machine if the system has no affinity."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
