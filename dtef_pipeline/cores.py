"""How many processors there are to share work among."""

from __future__ import annotations

import os


def cores() -> int:
    """Processors that this process may use, which are fewer than the machine has where it was told so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
