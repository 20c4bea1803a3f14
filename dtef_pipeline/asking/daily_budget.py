"""A limit in dollars for each day over all runs that share a response store.

What is spent is read from the store, what is under way is kept here.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from dtef_pipeline.errors import ConfigError

LEDGER_READ_S = 15.0
"""Seconds after which what others have spent is read again."""
_SUMMED_TO_THE_LIMIT = 1e-9
"""Part of the limit by which sums of costs may pass it: what rounding makes of them."""


class DailyBudget:
    """Dollars that calls may cost on one day. Safe to use from several threads.

    Before a call the most that it may cost is reserved; afterwards what it did cost counts. A call is not begun where what is spent today, what
    is under way and its own largest cost would pass the limit. What calls under way in another process may cost is not known here: two runs
    at once may pass the limit by that much.
    """

    def __init__(
        self,
        limit: float,
        spent_today: Callable[[], float],
        clock: Callable[[], float] = lambda: 0.0,
        *,
        every: float = LEDGER_READ_S,
    ) -> None:
        """
        Args:
            limit: US dollars, 0 or more.
            spent_today: US dollars of the responses of the present day that the store has, of all runs.
            clock: seconds that only grow; by default the ledger is read at the beginning and before a refusal alone.
            every: seconds after which `spent_today` is read again.

        Raises:
            ConfigError: the limit is below 0 or no number.
        """
        if not limit >= 0:
            raise ConfigError(f"daily_budget: got {limit:g}; allowed: 0 or more US dollars")
        self.limit = limit
        self._read, self._clock, self._every = spent_today, clock, every
        self._lock = Lock()
        self._ledger, self._since, self._reserved, self._under_way = 0.0, 0.0, 0.0, 0
        self._read_at: float | None = None

    @property
    def spent(self) -> float:
        """US dollars of today, as far as they are known."""
        with self._lock:
            self._renew()
            return self._ledger + self._since

    def fits(self, most: float) -> bool:
        """Whether a call that may cost so much could begin now."""
        with self._lock:
            return self._fits(most)

    def reserve(self, most: float) -> bool:
        """Set aside what a call may cost. False: it must not begin now; with nothing under way, not today."""
        with self._lock:
            fits = self._fits(most)
            if fits:
                self._take(most)
            return fits

    def take(self, most: float) -> None:
        """Set aside what a call may cost that `fits` allowed."""
        with self._lock:
            self._take(most)

    def settle(self, reserved: float, actual: float) -> None:
        """A call has ended: what it reserved is replaced by what it cost."""
        with self._lock:
            self._under_way -= 1
            # Without calls under way nothing is reserved, whatever rounding says.
            self._reserved = self._reserved - reserved if self._under_way else 0.0
            self._since += actual

    def _take(self, most: float) -> None:
        self._reserved += most
        self._under_way += 1

    def _fits(self, most: float) -> bool:
        self._renew()
        if self._within(most):
            return True
        if self._under_way:
            return False
        # The last word: a response that the ledger had before it was settled here was counted twice.
        self._read_ledger()
        return self._within(most)

    def _within(self, most: float) -> bool:
        allowed = self.limit * (1 + _SUMMED_TO_THE_LIMIT)
        return self._ledger + self._since + self._reserved + most <= allowed

    def _renew(self) -> None:
        if self._read_at is None or self._clock() - self._read_at >= self._every:
            self._read_ledger()

    def _read_ledger(self) -> None:
        self._ledger, self._since, self._read_at = self._read(), 0.0, self._clock()
