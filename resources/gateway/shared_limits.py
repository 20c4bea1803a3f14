"""Provider limits shared by all runs: reports this run's use and demand, and sets how many calls it may have in flight."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

from resources.gateway.queues import ModelQueue
from resources.gateway.slots import ProviderSlots, find_provider
from resources.responses.provider_shares import ProviderShares, Report, Share
from resources.responses.writer import ResponseWriter

LOOK_EVERY_S = 1.0


class SharedLimits:
    """One set of requests to providers with shared limits. A local model has no such limit."""

    def __init__(
        self,
        queues: Sequence[ModelQueue],
        shares: ProviderShares,
        writer: ResponseWriter,
        on_change: Callable[[], None],
        stop: Callable[[], None],
    ) -> None:
        """Args:
        queues: may grow meanwhile.
        shares: in the response store's database; used only in the writer's thread.
        writer: provides its thread.
        on_change: called when more calls may be in flight.
        stop: called if the database fails.
        """
        self._queues, self._shares, self._writer, self._changed, self._stop = queues, shares, writer, on_change, stop
        self._reported: dict[str, tuple[int, float]] = {}
        self._paused_by_others: dict[str, float] = {}
        self._fault: BaseException | None = None

    async def around(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work with a share of each limit."""
        for slots in self._collect_slots().values():
            slots.share(slots.in_flight)  # nothing until it has its share
        looking = asyncio.create_task(self._run_looks())
        try:
            await work
        finally:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking
            await self._writer.run(self._shares.close)
        if self._fault is not None:
            raise self._fault

    async def _run_looks(self) -> None:
        while self._fault is None:
            try:
                await self.look()
            except Exception as error:
                self._fault = error
                self._stop()
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Report the use of the limits since the last call, and take this run's shares."""
        slots = self._collect_slots()
        reports = {name: self._report(name, slot) for name, slot in slots.items()}
        shares = await self._writer.run(self._shares.take, reports)
        self._apply(slots, shares)
        self._changed()

    def _collect_slots(self) -> dict[str, ProviderSlots]:
        return {find_provider(queue.spec): queue.state.slots for queue in list(self._queues) if not queue.spec.is_local}

    def _report(self, name: str, slots: ProviderSlots) -> Report:
        now = time.monotonic()
        answers, limited_at = self._reported.get(name, (slots.answers, slots.limited_at))
        self._reported[name] = slots.answers, slots.limited_at
        # The number that it reports as held does not grow until it receives its new share.
        slots.share(slots.limit)
        return Report(
            wants=sum(_count_wanted(queue) for queue in list(self._queues) if queue.state.slots is slots),
            holds=max(slots.limit, slots.in_flight),
            in_flight=slots.in_flight,
            answered=slots.answers - answers,
            limited_before_s=now - slots.limited_at if slots.limited_at > limited_at else None,
            # If the pause of another run were reported as its own, each report would extend it.
            pause_s=max(0.0, slots.paused_until - now) if slots.paused_until != self._paused_by_others.get(name) else 0.0,
        )

    def _apply(self, slots: Mapping[str, ProviderSlots], shares: Mapping[str, Share]) -> None:
        now = time.monotonic()
        for name, share in shares.items():
            # Release first: the run sends nothing beyond its fair share, and calls in flight beyond it end. Then another run takes them.
            slots[name].share(min(share.calls, share.fair))
            if share.pause_s > 0 and now + share.pause_s > slots[name].paused_until:
                slots[name].pause(now + share.pause_s)
                self._paused_by_others[name] = slots[name].paused_until


def _count_wanted(queue: ModelQueue) -> int:
    """Count the queue's calls that could be in flight now."""
    waiting = len(queue.ready) + len(queue.retries) + len(queue.unclaimed) + queue.claiming
    return min(queue.spec.max_concurrency, queue.in_flight + waiting)
