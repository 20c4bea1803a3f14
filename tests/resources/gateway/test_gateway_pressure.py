"""Slow models, rate limits and outages: which requests wait for which, which failures use up attempts, and when none waits any longer."""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pytest

from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import Request, Response
from resources.gateway.budget import Accounts
from resources.gateway.dispatch import Dispatch
from resources.gateway.prices import Bill
from resources.gateway.queues import (
    FIRST_LIMIT,
    Backoff,
    Breaker,
    BreakerRules,
    Job,
    ModelQueue,
    ModelState,
    ProviderSlots,
    Rules,
    find_provider,
)
from resources.gateway.transport import CallError, Reply, Scope, Scrubber, Transport
from resources.responses.claims import ClaimOutcome
from resources.responses.store import ResponseStore, ResponseWriter
from tests.fake_llm_server import Call, FakeLLM, Fault, always
from tests.resources.gateway.gateway_setup import gateway, model, requests

OTHER_PROVIDER = "hosted_vllm/fast"


class Stuck:
    """Replies for the model `slow` only once so many others have been given."""

    def __init__(self, others: int) -> None:
        self._left, self._lock, self._done = others, threading.Lock(), threading.Event()
        self.waited_in_vain = False

    def __call__(self, call: Call) -> str:
        if call.body["model"] == "slow":
            self.waited_in_vain |= not self._done.wait(15)
        else:
            with self._lock:
                self._left -= 1
            if not self._left:
                self._done.set()
        return "[60, 40]"


class TestStarvation:
    @pytest.mark.parametrize(("fast", "overall"), [("openai/fast", 2), (OTHER_PROVIDER, 64)])
    def test_a_model_that_hangs_does_not_hold_up_another(self, store: ResponseStore, fast: str, overall: int) -> None:
        stuck = Stuck(others=30)
        with FakeLLM(reply=stuck) as server:
            slow, quick = model(server, name="slow", model="openai/slow"), model(server, name="fast", model=fast)
            answers = gateway(store, max_concurrency=overall).answer([*requests(slow, 20), *requests(quick, 30)])
        assert answers.failures == {}
        assert not stuck.waited_in_vain

    def test_a_model_that_comes_back_from_a_wait_finds_a_slot(self, store: ResponseStore) -> None:
        """While the fast model waits for its second attempt, the slow one could take every slot."""
        stuck = Stuck(others=5)

        def fault(call: Call) -> Fault | None:
            return Fault("status", status=503) if call.body["model"] == "fast" and call.attempt == 1 else None

        with FakeLLM(reply=stuck, fault=fault) as server:
            slow, quick = model(server, name="slow", model="openai/slow"), model(server, name="fast", model="openai/fast")
            answers = gateway(store, max_concurrency=4).answer([*requests(slow, 20), *requests(quick, 5)])
        assert answers.failures == {}
        assert not stuck.waited_in_vain


class TestRateLimits:
    def test_a_provider_that_takes_four_at_once_is_asked_less_and_answers_all(self, store: ResponseStore) -> None:
        """How near to four the limit ends depends on the machine's pace."""

        def fault(call: Call) -> Fault | None:
            return Fault("status", status=429) if server.busy > 4 else None

        with FakeLLM(fault=fault, latency=0.01) as server:
            asking = gateway(store)
            assert asking.answer(requests(model(server, max_concurrency=32), 120)).failures == {}
        (slots,) = asking.providers.values()
        assert slots.limit < FIRST_LIMIT
        assert server.answered == 120

    def test_a_given_limit_holds_over_the_models_of_a_provider(self, store: ResponseStore) -> None:
        with FakeLLM(latency=0.02) as server:
            one, other = model(server, name="one", model="openai/one"), model(server, name="other", model="openai/other")
            limits = {find_provider(one): 3}
            answers = gateway(store, provider_limits=limits).answer([*requests(one, 12), *requests(other, 12)])
        assert answers.failures == {}
        assert server.peak == 3

    def test_retry_after_holds_up_its_own_provider_only(self, store: ResponseStore) -> None:
        def fault(call: Call) -> Fault | None:
            limited = call.body["model"] == "limited" and len([c for c in server.calls if c.body["model"] == "limited"]) == 1
            return Fault("status", status=429, retry_after="1.5") if limited else None

        with FakeLLM(fault=fault) as server:
            limited = model(server, name="limited", model="openai/limited", max_concurrency=1)
            free = model(server, name="free", model="hosted_vllm/free")
            assert gateway(store).answer([*requests(limited, 3), *requests(free, 20)]).failures == {}
        first, second = [call.arrived_at for call in server.calls if call.body["model"] == "limited"][:2]
        assert second - first >= 1.5
        assert len([call for call in server.calls if call.body["model"] == "free" and call.arrived_at < second]) == 20


class TestOutages:
    def test_a_model_that_stays_away_is_given_up_with_one_line(self, store: ResponseStore) -> None:
        told: list[str] = []
        rules = BreakerRules(failures=5, cool_down=0.001, longest=0.01, probes=3)
        with FakeLLM(fault=always(Fault("status", status=503, message="gone fishing"))) as server:
            spec = model(server, max_concurrency=4)
            answers = gateway(store, breaker=rules, tell=told.append).answer(requests(spec, 200))
        assert len(answers.failures) == 200
        assert len(server.calls) <= 5 + 4 + 3
        assert all(
            "given up after 3 probes: HTTP 503: gone fishing" in f.message for f in answers.failures.values() if not f.attempts
        )
        assert len([line for line in told if "given up" in line]) == 1


class TestGivingUp:
    @pytest.mark.parametrize(
        "fault",
        [
            Fault("status", status=401, message="wrong key"),
            Fault("status", status=429, message="You exceeded your current quota", code="insufficient_quota"),
        ],
        ids=lambda fault: str(fault.status),
    )
    def test_a_fault_of_the_model_is_notified_once_and_ends_it(self, store: ResponseStore, fault: Fault) -> None:
        told: list[str] = []
        with FakeLLM(fault=always(fault)) as server:
            answers = gateway(store, tell=told.append).answer(requests(model(server, max_concurrency=4), 60))
        assert told == [f"m: HTTP {fault.status}: {fault.message}; this run sends it no more requests"]
        assert len(answers.failures) == 60
        assert answers.n_sent == len(server.calls) <= 4
        unsent = [failure for failure in answers.failures.values() if not failure.attempts]
        assert {failure.message for failure in unsent} == {f"not sent: m: HTTP {fault.status}: {fault.message}"}

    def test_ten_requests_refused_in_the_same_words_end_the_model(self, store: ResponseStore) -> None:
        told: list[str] = []
        refusal = Fault("status", status=400, message="unknown parameter: top_k")
        with FakeLLM(fault=always(refusal)) as server:
            answers = gateway(store, tell=told.append).answer(requests(model(server, max_concurrency=4), 60))
        assert len(answers.failures) == 60
        assert 10 <= len(server.calls) <= 14
        assert told == [
            "m: the first 10 requests all failed: HTTP 400: unknown parameter: top_k; this run sends it no more requests"
        ]

    @pytest.mark.parametrize(
        "refusal",
        [
            lambda call: Fault("status", status=400, message="blocked by our content filter"),
            lambda call: Fault("status", status=400, message=f"odd words in {call.user}"),
            lambda call: None if call.user == "question 0" else Fault("status", status=400, message="odd words"),
        ],
        ids=["of the prompts", "in other words", "after an answer"],
    )
    def test_refusals_that_may_be_the_requests_fault_do_not(self, store: ResponseStore, refusal: Any) -> None:
        with FakeLLM(fault=refusal) as server:
            gateway(store).answer(requests(model(server, max_concurrency=1), 30))
        assert len(server.calls) == 30

    def test_what_is_known_of_a_model_holds_for_the_next_requests(self, store: ResponseStore) -> None:
        with FakeLLM(fault=always(Fault("status", status=401))) as server:
            spec, asking = model(server), gateway(store)
            asking.answer(requests(spec))
            answers = asking.answer(requests(spec, 20))
        assert len(server.calls) == 1
        assert (len(answers.failures), answers.n_sent) == (20, 0)


RULES = BreakerRules(failures=3, cool_down=5.0, longest=12.0, probes=4)


def opened(now: float = 0.0) -> Breaker:
    breaker = Breaker(RULES)
    for _ in range(RULES.failures):
        breaker.record_failure(now, probe=breaker.start())
    return breaker


def test_it_opens_after_failures_in_a_row() -> None:
    breaker = Breaker(RULES)
    for _ in range(10):
        assert not breaker.record_failure(0.0, probe=False)
        assert not breaker.record_failure(0.0, probe=False)
        breaker.record_answer()
    assert [breaker.record_failure(0.0, probe=False) for _ in range(3)] == [False, False, True]
    assert not breaker.is_allowing(4.9)


def test_after_the_cool_down_one_probe_goes_through_and_closes_it_when_it_succeeds() -> None:
    breaker = opened()
    assert breaker.is_allowing(5.0)
    assert breaker.start()
    assert not breaker.is_allowing(5.0)
    breaker.record_abandoned(probe=True)
    assert breaker.is_allowing(5.0), "an abandoned probe makes room for another"
    assert breaker.start()
    breaker.record_answer()
    assert breaker.is_allowing(5.0)
    assert not breaker.start()


def test_each_failed_probe_doubles_the_wait_up_to_the_longest_and_so_many_exhaust_it() -> None:
    breaker, now, waits = opened(), 5.0, []
    for _ in range(RULES.probes):
        assert not breaker.is_exhausted
        breaker.record_failure(now, probe=breaker.start())
        assert breaker.open_until is not None
        waits.append(breaker.open_until - now)
        now = breaker.open_until
    assert waits == pytest.approx([10, 12, 12, 12])
    assert breaker.is_exhausted


def test_a_server_that_was_never_reached_is_given_up_sooner() -> None:
    rules = BreakerRules(failures=1, probes=4, first_probes=2)
    never, once = Breaker(rules), Breaker(rules)
    once.record_failure(0.0, probe=False)
    never.record_failure(0.0, probe=False, reached=False)
    for now in (100.0, 200.0):
        assert not never.is_exhausted
        for breaker in (never, once):
            breaker.record_failure(now, probe=breaker.start(), reached=False)
    assert (never.is_exhausted, once.is_exhausted) == (True, False)


def test_calls_from_before_it_opened_change_nothing_when_they_fail_and_close_it_when_answered() -> None:
    breaker = opened()
    assert not breaker.record_failure(1.0, probe=False)
    assert (breaker.open_until, breaker.failed_probes) == (pytest.approx(5), 0)
    breaker.record_answer()
    assert breaker.is_allowing(1.0)


def slots(cap: int = 64, **state: int) -> ProviderSlots:
    return ProviderSlots(cap, Backoff(first=1, longest=8, rng=np.random.default_rng(0)), **state)


def test_a_429_halves_what_was_in_use_once_a_round_trip() -> None:
    provider = slots(limit=60, in_flight=16)
    provider.record_rate_limit(began=0.0, now=1.0, retry_after=None)
    provider.record_rate_limit(began=0.5, now=1.1, retry_after=None)
    assert provider.limit == 8
    provider.record_rate_limit(began=1.2, now=2.0, retry_after=None)
    assert provider.limit == 4
    for now in range(3, 9):
        provider.record_rate_limit(began=now, now=now + 0.5, retry_after=None)
    assert provider.limit == 1


def test_the_limit_grows_with_each_response_until_a_429_and_then_after_as_many_as_the_limit() -> None:
    provider = slots(limit=4, in_flight=4)
    for _ in range(4):
        provider.record_answer()
    assert provider.limit == 8
    provider.record_rate_limit(began=0.0, now=1.0, retry_after=None)
    limits = []
    for _ in range(7):
        provider.record_answer()
        limits.append(provider.limit)
    assert limits == [2, 3, 3, 3, 4, 4, 4]
    full = slots(8)
    assert (full.limit, slots(1000).limit) == (8, FIRST_LIMIT)
    full.record_answer()
    assert full.limit == 8


def test_retry_after_pauses_the_provider_and_the_longest_wait_counts() -> None:
    provider = slots(limit=4, in_flight=2)
    provider.record_rate_limit(began=0.0, now=10.0, retry_after=5.0)
    provider.record_rate_limit(began=0.0, now=11.0, retry_after=1.0)
    provider.in_flight = 0
    assert (provider.free(14.9), provider.free(15.0)) == (0, 1)


def test_without_retry_after_only_repeated_cuts_pause() -> None:
    provider = slots(limit=8, in_flight=8)
    provider.record_rate_limit(began=0.0, now=1.0, retry_after=None)
    provider.in_flight = 0
    assert provider.free(1.0) == 4
    provider.record_rate_limit(began=1.5, now=2.0, retry_after=None)
    assert 2.5 <= provider.paused_until <= 3.0
    provider.record_answer()
    provider.record_rate_limit(began=3.5, now=4.0, retry_after=None)
    assert provider.free(4.0) > 0


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
class PacedModel(Transport):
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
