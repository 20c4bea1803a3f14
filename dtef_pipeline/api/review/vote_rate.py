"""How many votes a reviewer may hand in: a person reads before voting, and a program that guesses does not."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

VOTES_A_MINUTE = 60
"""Of one reviewer, in any 60 seconds."""
_VOTES_COUNT_FOR_S = 60.0
_MOST_RATED = 10_000


class VoteRate:
    """Counts what each reviewer handed in lately. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = VOTES_A_MINUTE) -> None:
        """`clock`: seconds from any moment on, which never go back."""
        self.clock, self.most = clock, most
        self._lock = threading.Lock()
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        """By reviewer, of whom the last is the one who voted last."""

    def wait_s(self, reviewer_id: str) -> int:
        """Seconds until the reviewer may vote, whole and at least 1; 0: now, and the vote is counted."""
        with self._lock:
            now = self.clock()
            times = self._times.setdefault(reviewer_id, deque())
            while times and times[0] <= now - _VOTES_COUNT_FOR_S:
                times.popleft()
            if len(times) >= self.most:
                return max(1, math.ceil(times[0] + _VOTES_COUNT_FOR_S - now))
            times.append(now)
            self._times.move_to_end(reviewer_id)
            self._forget_the_idle(now)
            return 0

    def _forget_the_idle(self, now: float) -> None:
        """Those who voted longest ago: all of whom nothing counts any more, and more of them where there are too many."""
        while self._times:
            first = next(iter(self._times))
            if len(self._times) <= _MOST_RATED and self._times[first][-1] > now - _VOTES_COUNT_FOR_S:
                return
            del self._times[first]
