"""A limit in dollars for each day over all runs that share a response store.

What is spent is read from the store, what is under way is kept here.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from dtef_pipeline.errors import ConfigError

LEDGER_READ_S = 15.0
"""Seconds after which what others have spent is read again."""
_SUMMED_TO_THE_LIMIT = 1e-9
"""Part of the limit by which sums of costs may pass it: what rounding makes of them."""


class DailyBudget:
    """Dollars that calls may cost on one day.

    Before a call the most that it may cost is set aside; afterwards what it did cost counts. A call is not begun where what is spent today, what
    is under way and its own largest cost would pass the limit. What other processes began since the ledger was read is not known here: runs
    at once may pass the limit by that much.
    """

    def __init__(self, limit: float, spent_today: Callable[[], float]) -> None:
        """
        Args:
            limit: US dollars, 0 or more.
            spent_today: US dollars of the responses of the present day that the store has, of all runs.

        Raises:
            ConfigError: the limit is below 0 or no number.
        """
        if not limit >= 0:
            raise ConfigError(f"daily_budget: got {limit:g}; allowed: 0 or more US dollars")
        self.limit = limit
        self._read = spent_today
        self._ledger, self._since, self._reserved, self._under_way = 0.0, 0.0, 0.0, 0
        self._read_at: float | None = None

    def fits(self, most: float) -> bool:
        """Whether a call that may cost so much could begin now; with nothing under way, False is the last word of today."""
        if self._read_at is None or time.monotonic() - self._read_at >= LEDGER_READ_S:
            self._read_ledger()
        if self._is_within(most):
            return True
        if self._under_way:
            return False
        # The last word: a response that the ledger had before it was settled here was counted twice.
        self._read_ledger()
        return self._is_within(most)

    def take(self, most: float) -> None:
        """Set aside what a call may cost that `fits` allowed."""
        self._reserved += most
        self._under_way += 1

    def settle(self, reservation: float, actual: float) -> None:
        """A call has ended: what it reserved is replaced by what it cost."""
        self._under_way -= 1
        # Without calls under way nothing is reserved, whatever rounding says.
        self._reserved = self._reserved - reservation if self._under_way else 0.0
        self._since += actual

    def _is_within(self, most: float) -> bool:
        ceiling = self.limit * (1 + _SUMMED_TO_THE_LIMIT)
        return self._ledger + self._since + self._reserved + most <= ceiling

    def _read_ledger(self) -> None:
        self._ledger, self._since, self._read_at = self._read(), 0.0, time.monotonic()
