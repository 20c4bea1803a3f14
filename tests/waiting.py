"""Waiting for something that another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(reached: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Look every few milliseconds until it is so or the time is over. Return whether it is so."""
    end = time.monotonic() + seconds
    while not (found := reached()) and time.monotonic() < end:
        time.sleep(0.005)
    return found
