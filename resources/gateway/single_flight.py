"""Single flight: buys each response once, by queuing requests that no other run sends and taking over other runs' responses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from resources.gateway.queues import Job, ModelQueue
from resources.responses.claims import ClaimOutcome, Claims
from resources.responses.writer import ResponseWriter

_LOOK_EVERY_S = 1.0
_BEAT_EVERY_S = 10.0


class SingleFlight:
    """A supply of ready requests in the queues; all database work happens in the writer's thread."""

    def __init__(
        self,
        queues: Sequence[ModelQueue],
        claims: Claims,
        writer: ResponseWriter,
        on_supply: Callable[[], None],
        on_settled: Callable[[str], None] = lambda key: None,
    ) -> None:
        """`queues` may grow meanwhile; `on_settled` takes the keys of requests for which other runs got a response."""
        self._queues, self._claims, self._writer, self._supplied, self._settled = queues, claims, writer, on_supply, on_settled
        self._needed = asyncio.Event()
        self._given_back: list[str] = []
        self._look_at = self._beat_at = time.monotonic()

    def signal_need(self) -> None:
        """Report that a queue has few ready requests."""
        self._needed.set()

    def give_back(self, key: str) -> None:
        """Give back a claimed request that this run will not answer: it failed, or is no longer sent."""
        self._given_back.append(key)

    async def run(self) -> None:
        """Supply until cancelled."""
        while True:
            await self.supply()
            try:
                async with asyncio.timeout(_LOOK_EVERY_S):
                    await self._needed.wait()
            except TimeoutError:
                pass
            self._needed.clear()

    async def supply(self) -> None:
        """Claim what the queues need next, release what was not answered, and send heartbeats."""
        await self.flush()
        now = time.monotonic()
        looks = now >= self._look_at
        chunks = [(queue, chunk) for queue in self._queues if (chunk := _choose_chunk(queue, is_recheck=looks))]
        if looks:
            self._look_at = now + _LOOK_EVERY_S
        keys = [job.key for _, chunk in chunks for job in chunk]
        if keys:
            result = await self._writer.run(self._claims.claim, keys)
            for queue, chunk in chunks:
                self._share_out(queue, chunk, result)
            if looks and result.answered and any(queue.elsewhere for queue in self._queues):
                # If some have responses, more may have them: the other run can be far ahead.
                self._look_at = now
                self._needed.set()
            self._supplied()
        elif now >= self._beat_at:
            await self._writer.run(self._claims.beat)
        if keys or now >= self._beat_at:
            # Claiming is a sign of life as well.
            self._beat_at = now + _BEAT_EVERY_S

    def _share_out(self, queue: ModelQueue, chunk: Sequence[Job], result: ClaimOutcome) -> None:
        for job in chunk:
            queue.claiming -= 1
            if job.key in result.mine:
                (queue.ready.appendleft if job.follows else queue.ready.append)(job)
            elif job.key in result.answered:
                queue.replayed += 1
                self._settled(job.key)
            else:
                queue.elsewhere.append(job)

    async def flush(self) -> None:
        """Release at once the requests given back."""
        given_back, self._given_back = self._given_back, []
        if given_back:
            await self._writer.run(self._claims.release, given_back)


def _choose_chunk(queue: ModelQueue, *, is_recheck: bool) -> list[Job]:
    """Take the next jobs to claim out of their queues: new ones before those that another run had."""
    size = 2 * queue.spec.max_concurrency
    chunk = []
    if queue.needs_claims:
        chunk = queue.take_for_claim(size)
    if is_recheck and not queue.unclaimed:
        chunk += [queue.elsewhere.popleft() for _ in range(min(size, len(queue.elsewhere)))]
    queue.claiming += len(chunk)
    return chunk
