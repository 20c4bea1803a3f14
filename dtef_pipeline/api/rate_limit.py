"""How often something may be done within a minute, by who does it: handing in votes, sending wrong tokens."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

_WINDOW_S = 60.0
_MOST_RATED = 10_000


class RateLimit:
    """Counts what each name did in the last minute. Safe to use from several threads."""

    def __init__(self, most: int, *, counts_refused: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        """`most`: of one name, in any 60 seconds; `counts_refused`: whether what comes too early counts; `clock`: seconds from any moment on,
        which never go back.
        """
        self.most, self.counts_refused, self.clock = most, counts_refused, clock
        self._lock = threading.Lock()
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        """By name, of which the last is the one that was counted last."""

    def wait_s(self, name: str) -> int:
        """Seconds until it may be done, whole and at least 1; 0: now, and it is counted."""
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
        """Names that were counted longest ago: all of which nothing counts any more, and more of them where there are too many."""
        while self._times:
            first = next(iter(self._times))
            if len(self._times) <= _MOST_RATED and self._times[first][-1] > now - _WINDOW_S:
                return
            del self._times[first]
