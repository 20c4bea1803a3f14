"""Limits of a set of requests, and the waits before a call is retried."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Backoff:
    """Exponential waits with jitter: between half and all of `first * 2 ** (attempt - 1)`, at most `longest` seconds.

    A request fails instead of waiting if a server demands more than `patience` seconds (Retry-After), or its rate limits cost more in
    total.
    """

    first: float = 1.0
    longest: float = 60.0
    patience: float = 600.0
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def wait(self, attempt: int) -> float:
        """Return seconds to wait after failed attempt 1, 2, ..."""
        return min(self.longest, self.first * 2.0 ** min(attempt - 1, 60)) * float(self.rng.uniform(0.5, 1.0))


async def _set_or_late(event: asyncio.Event, seconds: float) -> None:
    """Wait for the event, at most these seconds."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass


@dataclass(frozen=True)
class Rules:
    """Limits and waits for requests."""

    limit: int
    """Maximum number of calls in flight over all models."""
    backoff: Backoff
    grace: float
    """Seconds for calls in flight to finish when the run is stopped."""
    clock: Callable[[], float] = time.monotonic
    """Returns monotonic seconds."""
    wait: Callable[[asyncio.Event, float], Awaitable[None]] = _set_or_late
    """Returns when the event is set, or after so many seconds of the clock."""
