"""One run of the gateway inside its event loop: a pool of workers a model, retries, and every answer committed first."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dtef_pipeline.prediction.models import ModelSpec
from dtef_pipeline.prediction.request import Failure, Request, Response
from resources.progress import ModelProgress
from resources.response_writer import ResponseWriter
from resources.retries import Backoff
from resources.transport import CallError, Reply, Scope, Scrubber, Transport

Sleep = Callable[[float], Awaitable[None]]


@dataclass
class Pool:
    """The requests to one model variant, and what is known about it during this run."""

    spec: ModelSpec
    transport: Transport
    total: int = 0
    replayed: int = 0
    done: int = 0
    failed: int = 0
    queue: deque[tuple[str, Request]] = field(default_factory=deque)
    not_before: float = 0.0
    """Monotonic time until which the server asked to be left alone."""
    dead: str | None = None
    """Why no further request to this model makes sense."""

    @property
    def progress(self) -> ModelProgress:
        return ModelProgress(self.spec.name, self.total, self.replayed, self.done, self.failed)


class Asking:
    """Asks everything that is queued in the pools; failures are collected, answers are in the store."""

    def __init__(
        self, pools: Iterable[Pool], writer: ResponseWriter, limit: int, backoff: Backoff, scrub: Scrubber, sleep: Sleep
    ) -> None:
        self._pools, self._writer, self._backoff, self._scrub = tuple(pools), writer, backoff, scrub
        self._sleep = sleep
        self._limit = asyncio.Semaphore(limit)
        self.failures: dict[str, Failure] = {}

    async def run(self) -> None:
        """Until every request is settled. Cancelled: what was answered is still committed."""
        transports = {id(pool.transport): pool.transport for pool in self._pools if pool.queue}.values()
        for transport in transports:
            await transport.open()
        async with self._writer:
            workers = [
                asyncio.create_task(self._work(pool))
                for pool in self._pools
                for _ in range(min(pool.spec.max_concurrency, len(pool.queue)))
            ]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
                for transport in transports:
                    await transport.close()

    async def _work(self, pool: Pool) -> None:
        while pool.queue:
            key, request = pool.queue.popleft()
            await self._settle(pool, key, request)

    async def _settle(self, pool: Pool, key: str, request: Request) -> None:
        """Ask until there is an answer or no point in asking again."""
        attempts = 0
        while pool.dead is None:
            if (pause := pool.not_before - time.monotonic()) > 0:
                await self._sleep(pause)
            attempts += 1
            try:
                reply, latency = await self._call(pool, request)
            except CallError as error:
                wait = self._wait(pool, error, attempts)
                if wait is None:
                    return self._fail(pool, key, error.message, attempts)
                await self._sleep(wait)
            else:
                await self._writer.commit(_response(key, request, reply, latency, attempts))
                pool.done += 1
                return None
        return self._fail(pool, key, pool.dead, attempts)

    async def _call(self, pool: Pool, request: Request) -> tuple[Reply, float]:
        async with self._limit:
            start = time.monotonic()
            reply = await pool.transport.ask(request)
            return reply, time.monotonic() - start

    def _wait(self, pool: Pool, error: CallError, attempts: int) -> float | None:
        """Seconds until the next attempt; None: this was the last."""
        if error.scope is Scope.MODEL:
            pool.dead = error.message
        if error.scope is not Scope.PASSING or attempts > pool.spec.retries:
            return None
        if error.retry_after is not None and error.retry_after <= self._backoff.patience:
            pool.not_before = max(pool.not_before, time.monotonic() + error.retry_after)
        return self._backoff.wait(attempts, error.retry_after)

    def _fail(self, pool: Pool, key: str, message: str, attempts: int) -> None:
        pool.failed += 1
        self.failures[key] = Failure(key, self._scrub(message), attempts)


def _response(key: str, request: Request, reply: Reply, latency: float, attempts: int) -> Response:
    return Response(
        request_key=key,
        prompt_id=request.prompt_id,
        model=request.model.name,
        model_variant=request.model.variant,
        draw=request.draw,
        snapshot=request.snapshot,
        text=reply.text,
        finish_reason=reply.finish_reason,
        served_model=reply.served_model,
        fingerprint=reply.fingerprint,
        reasoning=reply.reasoning,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        cost_usd=reply.cost_usd,
        latency_s=latency,
        attempts=attempts,
        answered_at=datetime.now(UTC),
    )
