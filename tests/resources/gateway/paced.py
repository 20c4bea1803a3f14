"""The gateway's engine on a clock that only the test moves: the same calls fail in the same order on any machine."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import Request, Response
from resources.gateway.breaker import Breaker, BreakerRules
from resources.gateway.budget import Accounts
from resources.gateway.dispatch import Dispatch
from resources.gateway.queues import Job, ModelQueue, ModelState
from resources.gateway.retries import Backoff, Rules
from resources.gateway.slots import ProviderSlots
from resources.gateway.transport import CallError, Reply, Scope, Scrubber
from resources.responses.claims import Claimed
from resources.responses.writer import ResponseWriter

_TURNS = 20
"""Of the event loop, in which everything that can happen without time passing has happened."""


@dataclass
class Clock:
    """Time passes when the engine waits and nothing else is left to do: from one moment somebody waits for to the next."""

    now: float = 0.0
    _sleepers: list[tuple[float, int, asyncio.Event]] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count)

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        heapq.heappush(self._sleepers, (self.now + seconds, next(self._numbers), woken))
        await woken.wait()

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        until = self.now + seconds
        while True:
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            if event.is_set():
                return
            if not self._sleepers or self._sleepers[0][0] > until:
                self.now = until
                return
            self.now, _, woken = heapq.heappop(self._sleepers)
            woken.set()


@dataclass(frozen=True)
class Met:
    """What a call meets: so many seconds, and then an answer or a 503."""

    seconds: float
    fails: bool = False


Plan = Callable[[str, int], Met]
"""What the call of this text meets, which is the so many-th call of all (from 1)."""


@dataclass
class PacedModel:
    """A transport whose calls end as planned."""

    clock: Clock
    plan: Plan
    sent: list[str] = field(default_factory=list)

    def problem(self, spec: ModelSpec) -> str | None:
        return None

    async def ask(self, request: Request) -> Reply:
        self.sent.append(request.user)
        met = self.plan(request.user, len(self.sent))
        await self.clock.sleep(met.seconds)
        if met.fails:
            raise CallError("HTTP 503", Scope.PASSING)
        return Reply("[60, 40]", "stop", "m", 1, 1, 0.0)

    async def open(self) -> None: ...
    async def close(self) -> None: ...


class _NoStore(ResponseWriter):
    """Commits take no time, so that no thread and no disk decides what comes first."""

    def __init__(self) -> None: ...

    async def commit(self, response: Response) -> None: ...

    async def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return work(*arguments)


class _NoOtherRun:
    def claim(self, keys: Sequence[str]) -> Claimed:
        return Claimed(set(keys), set())

    def release(self, keys: Iterable[str]) -> None: ...
    def beat(self) -> None: ...


def ask(requests: list[Request], plan: Plan, rules: BreakerRules) -> tuple[Dispatch, list[str]]:
    """The engine after it has settled the requests, which are to one model; and the texts that were sent, in order."""
    clock, backoff, spec = Clock(), Backoff(), requests[0].model
    model = PacedModel(clock, plan)
    queue = ModelQueue(ModelState(spec, model, ProviderSlots(64, backoff), Breaker(rules)), total=len(requests))
    queue.unclaimed.extend(Job(request.key, request) for request in requests)
    pace = Rules(64, backoff, 30.0, clock=lambda: clock.now, wait=clock.wait)
    dispatch = Dispatch(
        [queue], _NoStore(), _NoOtherRun(), Accounts(Budget(), {}), pace, Scrubber({}, [spec]), lambda line: None
    )
    asyncio.run(dispatch.run())
    return dispatch, model.sent
