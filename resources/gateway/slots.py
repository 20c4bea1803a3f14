"""The calls in flight to one provider, and their limit."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from urllib.parse import urlsplit

from dtef_pipeline.asking.models import ModelSpec
from resources.gateway.retries import Backoff

FIRST_LIMIT = 32


def find_provider(spec: ModelSpec) -> str:
    """Return whose limits a model shares: the provider of its litellm string, with the host if it has its own address.

    `openai`, `anthropic`, `local`; `openai/127.0.0.1:8000`.
    """
    provider = spec.model.partition("/")[0]
    # Without user and password, like the stored name (`resources/responses/provider_shares.py`).
    return f"{provider}/{urlsplit(spec.api_base).netloc.rpartition('@')[2]}" if spec.api_base else provider


@dataclass(slots=True)
class ProviderSlots:
    """The calls in flight to one provider, under an adaptive limit. Times are seconds of one monotonic clock.

    A 429 halves the limit, but not again for calls in flight at the last cut: they say nothing about the limit since. It grows when all
    runs together take their shares again (`shared_limits`).
    """

    cap: int
    backoff: Backoff
    limit: int = 0
    in_flight: int = 0
    paused_until: float = -inf
    answers: int = 0
    """Responses so far."""
    limited_at: float = -inf
    """Start of the newest call that got a 429."""
    _cut_at: float = field(default=-inf, repr=False)
    _cuts: int = field(default=0, repr=False)
    """Consecutive cuts without a response in between."""

    def __post_init__(self) -> None:
        self.limit = self.limit or min(self.cap, FIRST_LIMIT)

    def free(self, now: float) -> int:
        """Return how many calls may start now."""
        return max(0, self.limit - self.in_flight) if now >= self.paused_until else 0

    def share(self, calls: int) -> None:
        """Set this run's share of a limit common to all runs, which adapt it together."""
        self.cap = self.limit = calls

    def pause(self, end: float) -> None:
        self.paused_until = max(self.paused_until, end)

    def record_answer(self) -> None:
        self.answers += 1
        self._cuts = 0

    def record_rate_limit(self, began: float, now: float, retry_after: float | None) -> None:
        """Record a 429 of a call that began at `began` and still counts as in flight."""
        self.limited_at = max(self.limited_at, began)
        if retry_after is not None:
            self.pause(now + retry_after)
        if began <= self._cut_at:
            return
        # Half of the calls in use, because a limit that was not reached says nothing about the server.
        self.limit = min(self.cap, max(1, min(self.limit, self.in_flight) // 2))
        self._cut_at = now
        self._cuts += 1
        if retry_after is None and self._cuts > 1:
            self.pause(now + self.backoff.wait(self._cuts - 1))
