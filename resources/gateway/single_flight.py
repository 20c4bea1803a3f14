"""Supplies pools with requests that no other run is asking: claims them in chunks, and takes over what others answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from resources.gateway.queues import Job, Pool
from resources.responses.writer import ResponseWriter

_LOOK_EVERY_S = 1.0
_BEAT_EVERY_S = 10.0


class Claimed(Protocol):
    """What came of claiming: keys that are this run's to ask, and keys that have an answer. The others are asked elsewhere."""

    @property
    def mine(self) -> set[str]: ...
    @property
    def answered(self) -> set[str]: ...


class Claims(Protocol):
    """`resources.responses.claims.Claims`, as far as it is used here."""

    def claim(self, keys: Sequence[str]) -> Claimed: ...
    def release(self, keys: Iterable[str]) -> None: ...
    def beat(self) -> None: ...


class SingleFlight:
    """Keeps the pools' ready queues filled while it runs; everything on the database happens in the writer's thread."""

    def __init__(self, pools: Sequence[Pool], claims: Claims, writer: ResponseWriter, supplied: Callable[[], None]) -> None:
        self._pools, self._claims, self._writer, self._supplied = pools, claims, writer, supplied
        self._needed = asyncio.Event()
        self._given_back: list[str] = []
        self._look_at = self._beat_at = time.monotonic()

    def need(self) -> None:
        """Some pool runs low."""
        self._needed.set()

    def give_back(self, key: str) -> None:
        """A claimed request will not be answered by this run: it failed, or is not asked any more."""
        self._given_back.append(key)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.supply()
            try:
                async with asyncio.timeout(_LOOK_EVERY_S):
                    await self._needed.wait()
            except TimeoutError:
                pass
            self._needed.clear()

    async def supply(self) -> None:
        """Claim what the pools need next, give back what was not answered, and give signs of life."""
        await self.flush()
        now = time.monotonic()
        looks = now >= self._look_at
        chunks = [(pool, chunk) for pool in self._pools if (chunk := _chunk(pool, look_again=looks))]
        if looks:
            self._look_at = now + _LOOK_EVERY_S
        keys = [job.key for _, chunk in chunks for job in chunk]
        if keys:
            claimed = await self._writer.run(self._claims.claim, keys)
            for pool, chunk in chunks:
                _share_out(pool, chunk, claimed)
            if looks and claimed.answered and any(pool.elsewhere for pool in self._pools):
                # Where some have been answered more may have been: the other run can be far ahead.
                self._look_at = now
                self._needed.set()
            self._supplied()
        elif now >= self._beat_at:
            await self._writer.run(self._claims.beat)
        if keys or now >= self._beat_at:
            # Claiming is a sign of life as well.
            self._beat_at = now + _BEAT_EVERY_S

    async def flush(self) -> None:
        """Give back at once what is to be given back."""
        given_back, self._given_back = self._given_back, []
        if given_back:
            await self._writer.run(self._claims.release, given_back)


def _chunk(pool: Pool, *, look_again: bool) -> list[Job]:
    """The next jobs to claim: new ones before those that another run had; taken out of their queues."""
    size = 2 * pool.spec.max_concurrency
    chunk = []
    if pool.hungry:
        chunk = [pool.unclaimed.popleft() for _ in range(min(size, len(pool.unclaimed)))]
    if look_again and not pool.unclaimed:
        chunk += [pool.elsewhere.popleft() for _ in range(min(size, len(pool.elsewhere)))]
    pool.claiming += len(chunk)
    return chunk


def _share_out(pool: Pool, chunk: Sequence[Job], claimed: Claimed) -> None:
    for job in chunk:
        pool.claiming -= 1
        if job.key in claimed.mine:
            pool.ready.append(job)
        elif job.key in claimed.answered:
            pool.replayed += 1
        else:
            pool.elsewhere.append(job)
