"""How a set of requests is asked: limits and waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from resources.gateway.retries import Backoff


async def _set_or_late(event: asyncio.Event, seconds: float) -> None:
    """Until the event is set, or the seconds are over."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass


@dataclass(frozen=True)
class Rules:
    """How a set of requests is asked."""

    limit: int
    """Calls in flight at once over all models."""
    backoff: Backoff
    grace: float
    """Seconds that calls in flight are given to end, once the run is being stopped."""
    clock: Callable[[], float] = time.monotonic
    """Seconds that only grow."""
    wait: Callable[[asyncio.Event, float], Awaitable[None]] = _set_or_late
    """Returns when the event is set, or so many seconds of the clock later."""
