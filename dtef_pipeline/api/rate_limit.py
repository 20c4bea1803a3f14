"""Limits of actions per minute and name, for votes and wrong tokens."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

_WINDOW_S = 60.0
_MAX_ADDRESSES = 10_000


class RateLimit:
    """Counts the actions of each name in the last minute. Thread-safe."""

    def __init__(self, limit: int, *, counts_refused: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        """`limit`: limit per name in any 60 seconds; `counts_refused`: whether refused actions count; `clock`: monotonic seconds."""
        self.most, self.counts_refused, self.clock = limit, counts_refused, clock
        self._lock = threading.Lock()
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        """By name, the latest counted last."""

    def wait_s(self, name: str) -> int:
        """Return the seconds until the action is allowed, whole and at least 1; 0: it is allowed now, and counted."""
        with self._lock:
            now = self.clock()
            times = self._times.setdefault(name, deque(maxlen=self.most + 1))
            while times and times[0] <= now - _WINDOW_S:
                times.popleft()
            wait = 0 if len(times) < self.most else max(1, math.ceil(times[0] + _WINDOW_S - now))
            if not wait or self.counts_refused:
                times.append(now)
                self._times.move_to_end(name)
                self._remove_idle(now)
            return wait

    def _remove_idle(self, now: float) -> None:
        """Remove names without actions in the last minute, and the longest idle ones if there are too many."""
        while self._times:
            first = next(iter(self._times))
            if len(self._times) <= _MAX_ADDRESSES and self._times[first][-1] > now - _WINDOW_S:
                return
            del self._times[first]
