"""Daily limits in dollars over all runs that share a response store, and budgets of a nightly run by role.

Spending is read from the store; calls in flight are tracked here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field

from dtef_pipeline.documents import Part
from dtef_pipeline.errors import ConfigError

LEDGER_READ_S = 15.0
"""Seconds after which the spending of other runs is read again."""
_SUMMED_TO_THE_LIMIT = 1e-9
"""Share of the limit by which rounding may exceed it."""


class DailyBudget:
    """The dollars that calls may cost on one day.

    A call's largest possible cost is reserved before it and replaced by its actual cost afterwards. A call is not started if today's
    spending, the reservations and its own largest cost would exceed the limit. Calls that other processes started since the ledger was read
    are unknown: concurrent runs may exceed the limit by their cost.
    """

    def __init__(self, limit: float, spent_today: Callable[[], float]) -> None:
        """Raise ConfigError if the limit is negative or NaN.

        Args:
            limit: US dollars, 0 or more.
            spent_today: returns the US dollars of today's responses in the store, over all runs.
        """
        if not limit >= 0:
            raise ConfigError(f"daily_budget: got {limit:g}; allowed: 0 or more US dollars")
        self.limit = limit
        self._read = spent_today
        self._ledger, self._since, self._reserved, self._under_way = 0.0, 0.0, 0.0, 0
        self._read_at: float | None = None

    def fits(self, cost: float) -> bool:
        """Return whether a call that may cost `cost` can start now; False with no call in flight is final for today."""
        if self._read_at is None or time.monotonic() - self._read_at >= LEDGER_READ_S:
            self._read_ledger()
        if self._is_within(cost):
            return True
        if self._under_way:
            return False
        # Decide on a fresh ledger: a response already in it but not yet settled here was counted twice.
        self._read_ledger()
        return self._is_within(cost)

    def take(self, cost: float) -> None:
        """Reserve the largest cost of a call that `fits` allowed."""
        self._reserved += cost
        self._under_way += 1

    def settle(self, reservation: float, actual: float) -> None:
        """Replace the reservation of a finished call by its actual cost."""
        self._under_way -= 1
        # Without calls in flight nothing is reserved; this removes rounding errors.
        self._reserved = self._reserved - reservation if self._under_way else 0.0
        self._since += actual

    def _is_within(self, cost: float) -> bool:
        ceiling = self.limit * (1 + _SUMMED_TO_THE_LIMIT)
        return self._ledger + self._since + self._reserved + cost <= ceiling

    def _read_ledger(self) -> None:
        self._ledger, self._since, self._read_at = self._read(), 0.0, time.monotonic()


RoleName = Literal["candidate", "judge", "embedder", "analyst"]


class RoleBudget(Part):
    """The budget of a nightly run for models in one role."""

    max_cost_usd: Annotated[float, Field(ge=0)] | None = None
    max_calls: Annotated[int, Field(ge=0)] | None = None
