"""Which failures use up a request's attempts, on a clock that only the test moves."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import Request, Response
from resources.gateway.bills import Bill
from resources.gateway.budget import Accounts
from resources.gateway.dispatch import Dispatch
from resources.gateway.queues import Breaker, BreakerRules, Job, ModelQueue, ModelState, ProviderSlots
from resources.gateway.retries import Backoff, Rules
from resources.gateway.transport import CallError, Reply, Scope, Scrubber
from resources.responses.claims import ClaimOutcome
from resources.responses.writer import ResponseWriter
from tests.resources.gateway.gateway_setup import model, requests

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
        return Reply("[60, 40]", "stop", "m", Bill(1, 1, 0.0))

    async def open(self) -> None: ...
    async def close(self) -> None: ...


class _NoStore(ResponseWriter):
    """Commits take no time, so that no thread and no disk decides what comes first."""

    def __init__(self) -> None: ...

    async def commit(self, response: Response) -> None: ...

    async def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return work(*arguments)


class _NoOtherRun:
    def claim(self, keys: Sequence[str]) -> ClaimOutcome:
        return ClaimOutcome(set(keys), set())

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


PATIENT = BreakerRules(probes=60)


@pytest.mark.parametrize(("retries", "concurrency", "seconds"), [(0, 1, 0.001), (0, 32, 1.0), (2, 8, 60.0), (6, 1, 1.0)])
class TestAnOutageCostsNoRequestItsAttempts:
    """Regression: on a slow machine, requests whose second and third attempts began before the tenth failure ended as errors."""

    def test_which_is_there_from_the_start(self, retries: int, concurrency: int, seconds: float) -> None:
        wanted = requests(model(None, retries=retries, max_concurrency=concurrency), 50)
        asking, sent = ask(wanted, lambda text, number: Met(seconds, number <= 40), PATIENT)
        assert asking.failures == {}
        assert set(sent) == {request.user for request in wanted}

    def test_which_begins_while_requests_are_on_their_way(self, retries: int, concurrency: int, seconds: float) -> None:
        wanted = requests(model(None, retries=retries, max_concurrency=concurrency), 100)
        asking, _ = ask(wanted, lambda text, number: Met(seconds, 20 < number <= 60), PATIENT)
        assert asking.failures == {}


def test_a_call_that_an_outage_caught_costs_nothing_when_it_fails_after_the_outage() -> None:
    """The first eight calls hang for an hour, while the model goes away and comes back."""

    def plan(text: str, number: int) -> Met:
        return Met(3600.0, True) if number <= 8 else Met(1.0, number <= 30)

    asking, sent = ask(requests(model(None, retries=0, max_concurrency=16), 50), plan, PATIENT)
    assert asking.failures == {}
    assert len(sent) == 50 + 30


class TestARequestThatFailsWhileOthersAreAnswered:
    @pytest.mark.parametrize(("retries", "concurrency", "seconds"), [(0, 1, 60.0), (2, 4, 0.001), (6, 4, 1.0)])
    def test_ends_after_its_retries(self, retries: int, concurrency: int, seconds: float) -> None:
        wanted = requests(model(None, retries=retries, max_concurrency=concurrency), 60)
        asking, sent = ask(wanted, lambda text, *_: Met(seconds, text == "question 3"), BreakerRules())
        (failure,) = asking.failures.values()
        assert (failure.message, failure.attempts) == ("HTTP 503", retries + 1)
        assert sent.count("question 3") == retries + 1

    def test_is_not_asked_again_while_only_the_others_can_tell(self) -> None:
        """It fails at once; the answers of the others take longer than all its waits."""
        wanted = requests(model(None, retries=2, max_concurrency=4), 12)
        asking, sent = ask(wanted, lambda text, *_: Met(600.0 * (text != "question 0"), text == "question 0"), PATIENT)
        assert [failure.attempts for failure in asking.failures.values()] == [3]
        assert len(sent) == 3 + 11

    @pytest.mark.parametrize(("hopeless", "seconds"), [(2, 0.5), (20, 60.0)])
    def test_is_no_outage_when_only_such_ones_are_left(self, hopeless: int, seconds: float) -> None:
        """Regression: two connections that were always dropped, after 78 answers, were probes of an outage for ten minutes."""
        plan = {f"question {at}" for at in range(0, 4 * hopeless, 4)}
        wanted = requests(model(None, retries=6, max_concurrency=32), 80)
        asking, sent = ask(wanted, lambda text, *_: Met(seconds if text in plan else 0.1, text in plan), BreakerRules())
        assert [(failure.message, failure.attempts) for failure in asking.failures.values()] == [("HTTP 503", 7)] * hopeless
        assert len(sent) == 80 - hopeless + 7 * hopeless

    def test_ends_also_when_nothing_else_is_left_to_ask(self) -> None:
        asking, sent = ask(requests(model(None, retries=3), 2), lambda *_: Met(1.0, True), BreakerRules())
        assert [failure.attempts for failure in asking.failures.values()] == [4, 4]
        assert len(sent) == 8

    def test_has_all_its_attempts_again_after_an_outage(self) -> None:
        def plan(text: str, number: int) -> Met:
            return Met(1.0, number <= 20 or text == "question 0")

        asking, _ = ask(requests(model(None, retries=2, max_concurrency=1), 200), plan, PATIENT)
        (failure,) = asking.failures.values()
        assert failure.attempts > 3
