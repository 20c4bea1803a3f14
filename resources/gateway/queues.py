"""The requests to one model variant, in every state from unsent to settled."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from math import inf
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import CANDIDATE, Request, Response, UnansweredCall
from resources.gateway.budget import Ceiling, Usage, compute_max_usage, count_unknown_cost
from resources.gateway.prices import Bill, Price, compute_bound
from resources.gateway.progress import ModelProgress
from resources.gateway.transport import CallError, Reply, Scrubber, Transport


@dataclass
class Backoff:
    """Exponential waits with jitter: between half and all of `first * 2 ** (attempt - 1)`, at most `longest` seconds.

    A request fails instead of waiting if a server demands more than `patience` seconds (Retry-After), or its rate limits cost more in
    total.
    """

    first: float = 1.0
    longest: float = 60.0
    patience: float = 600.0
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def wait(self, attempt: int) -> float:
        """Return seconds to wait after failed attempt 1, 2, ..."""
        return min(self.longest, self.first * 2.0 ** min(attempt - 1, 60)) * float(self.rng.uniform(0.5, 1.0))


async def _set_or_late(event: asyncio.Event, seconds: float) -> None:
    """Wait for the event, at most these seconds."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass


@dataclass(frozen=True)
class Rules:
    """Limits and waits for requests."""

    limit: int
    """Maximum number of calls in flight over all models."""
    backoff: Backoff
    grace: float
    """Seconds for calls in flight to finish when the run is stopped."""
    clock: Callable[[], float] = time.monotonic
    """Returns monotonic seconds."""
    wait: Callable[[asyncio.Event, float], Awaitable[None]] = _set_or_late
    """Returns when the event is set, or after so many seconds of the clock."""


FIRST_LIMIT = 32


def find_provider(spec: ModelSpec) -> str:
    """Return whose limits a model shares: the provider of its litellm string, with the host if it has its own address.

    `openai`, `anthropic`, `local`; `openai/127.0.0.1:8000`.
    """
    provider = spec.model.partition("/")[0]
    # Without user and password: Dagster's pools have this name.
    return f"{provider}/{urlsplit(spec.api_base).netloc.rpartition('@')[2]}" if spec.api_base else provider


@dataclass(slots=True)
class ProviderSlots:
    """The calls in flight to one provider, under an adaptive limit. Times are seconds of one monotonic clock.

    The limit grows by one with each response until the first 429, then by one after as many responses as the limit. A 429 halves it, but
    not again for calls in flight at the last cut: they say nothing about the limit since.
    """

    cap: int
    backoff: Backoff
    limit: int = 0
    in_flight: int = 0
    paused_until: float = -inf
    _answers: int = field(default=0, repr=False)
    """Responses since the limit last changed."""
    _cut_at: float = field(default=-inf, repr=False)
    _cuts: int = field(default=0, repr=False)
    """Consecutive cuts without a response in between."""

    def __post_init__(self) -> None:
        self.limit = self.limit or min(self.cap, FIRST_LIMIT)

    def free(self, now: float) -> int:
        """Return how many calls may start now."""
        return max(0, self.limit - self.in_flight) if now >= self.paused_until else 0

    def pause(self, end: float) -> None:
        self.paused_until = max(self.paused_until, end)

    def record_answer(self) -> None:
        self._cuts = 0
        self._answers += 1
        if self._cut_at == -inf or self._answers >= self.limit:
            self.limit, self._answers = min(self.cap, self.limit + 1), 0

    def record_rate_limit(self, began: float, now: float, retry_after: float | None) -> None:
        """Record a 429 of a call that began at `began` and still counts as in flight."""
        if retry_after is not None:
            self.pause(now + retry_after)
        if began <= self._cut_at:
            return
        # Half of the calls in use, because a limit that was not reached says nothing about the server.
        self.limit = min(self.cap, max(1, min(self.limit, self.in_flight) // 2))
        self._cut_at, self._answers = now, 0
        self._cuts += 1
        if retry_after is None and self._cuts > 1:
            self.pause(now + self.backoff.wait(self._cuts - 1))


@dataclass(frozen=True, slots=True)
class BreakerRules:
    """When to pause a model, and when to give it up."""

    failures: int = 10
    """Number of consecutive temporary failures (5xx, timeouts, lost connections) that open the breaker."""
    cool_down: float = 5.0
    """Seconds until the first probe; each failed probe doubles them."""
    longest: float = 60.0
    """Maximum seconds between two probes."""
    probes: int = 12
    """Number of consecutive failed probes after which the run gives the model up; with these numbers, after about nine minutes."""
    first_probes: int = 3
    """The same for a model whose server was never reached, because its address may be wrong: after about half a minute."""


class Breaker:
    """A circuit breaker. Closed: calls pass. Open: none does. Half-open, after the cool-down: one call, the probe, decides.

    Times are seconds of one monotonic clock.
    """

    def __init__(self, rules: BreakerRules) -> None:
        self._rules = rules
        self._failures = 0
        self.failed_probes = 0
        """Consecutive failed probes."""
        self.openings = 0
        """How often the breaker opened or a failed probe kept it open; a call that spans one of these moments met an outage."""
        self._probing = False
        self._was_reached = False
        self.open_until: float | None = None
        """Time until which the breaker is open; None: it is closed."""

    @property
    def is_exhausted(self) -> bool:
        """Whether too many probes failed for the run to wait longer."""
        return self.failed_probes >= (self._rules.probes if self._was_reached else self._rules.first_probes)

    def is_allowing(self, now: float) -> bool:
        return self.open_until is None or (now >= self.open_until and not self._probing)

    def start(self) -> bool:
        """Begin a call; return whether it is a probe."""
        self._probing = self.open_until is not None
        return self._probing

    def record_answer(self) -> None:
        """Record that the server answered, if only with a refusal."""
        self._was_reached = True
        self._failures = self.failed_probes = 0
        self._probing, self.open_until = False, None

    def record_failure(self, now: float, *, probe: bool, reached: bool = True, alone: bool = False) -> bool:
        """Record a failure that may be due to the server's state; return whether it opened the breaker or kept it open.

        `reached`: a server was reached. `alone`: the request itself seems at fault, which counts only for a probe.
        """
        self._was_reached = self._was_reached or reached
        if probe:
            self._probing = False
            self.failed_probes += 1
        elif self.open_until is not None or alone:
            return False
        self._failures += 1
        if not probe and self._failures < self._rules.failures:
            return False
        self.openings += 1
        self.open_until = now + min(self._rules.longest, self._rules.cool_down * 2.0**self.failed_probes)
        return True

    def record_abandoned(self, *, probe: bool) -> None:
        """Record a call without a result because the run is stopping."""
        if probe:
            self._probing = False


_RATE_WINDOW_S = 30.0
SAME_REFUSALS = 10
"""Number of requests refused with the same message, with none answered, from which the model is at fault and not the requests."""


@dataclass(slots=True)
class Job:
    """One request on its way to a response."""

    key: str
    request: Request
    sent: int = 0
    """Attempts so far, in the server's count."""
    failures: int = 0
    """Failures that count towards the model's `retries`: neither rate limits nor outages."""
    rate_limits: int = 0
    waited: float = 0.0
    """Seconds waited because of rate limits."""
    last_error: str = ""
    probe: bool = False
    reserved: Usage = field(default_factory=Usage)
    _openings: int = 0
    """`openings` of the model's breaker when the last call began."""
    call: int = 0
    """Number of its last call among all calls of the model, from 1 in order of start."""
    _alone: bool = False
    follows: bool = False
    """Whether a response led to it. Such requests go first, so that episodes in progress finish first."""

    def begin(self, model: ModelState) -> None:
        self._forget_outage(model.breaker)
        model.calls += 1
        self.call = model.calls
        self.probe = model.breaker.start()

    def is_own_failure(self, model: ModelState, *, is_late: bool) -> bool:
        """Return whether a failed call seems to be the request's own fault, since the last outage: a later call was answered, or it fails
        again with a model that answered, after all others had their turn (`is_late`).
        """
        is_repeat = is_late and self.failures > 0 and model.answered > 0
        self._alone = self._alone or is_repeat or model.last_answered > self.call
        return self._alone

    def count_failure(self, breaker: Breaker) -> int:
        """Count a failed call that the breaker knows; return the attempts used up."""
        self.failures += not self._forget_outage(breaker)
        return self.failures

    def _forget_outage(self, breaker: Breaker) -> bool:
        """Return whether the breaker opened since the last call began; if so, forget earlier failures as the model's."""
        if self._openings == breaker.openings:
            return False
        self._openings, self.failures, self._alone = breaker.openings, 0, False
        return True


@dataclass
class ModelState:
    """The state of a model for the gateway's lifetime, over all its sets of requests."""

    spec: ModelSpec
    transport: Transport
    slots: ProviderSlots
    breaker: Breaker
    price: Price | None = None
    _bound: Price | None = None
    dead: str | None = None
    """Why no further request to this model makes sense; None: it does."""
    calls: int = 0
    """Calls started so far."""
    answered: int = 0
    last_answered: int = 0
    """Number of the answered call that started last."""
    rate_limited: int = 0
    """HTTP responses 429 so far."""
    limited_since: float | None = None
    """Time of the first 429 since the last response."""
    spent: Usage = field(default_factory=Usage)
    """Usage of its calls so far."""
    ceilings: defaultdict[str, Ceiling] = field(default_factory=lambda: defaultdict(Ceiling))
    """Ceilings by role."""
    _refusals: list[str] = field(default_factory=list)

    def answer(self, job: Job) -> None:
        """Record an answered call."""
        self.answered += 1
        self.last_answered = max(self.last_answered, job.call)
        self.limited_since = None
        self.breaker.record_answer()
        self.slots.record_answer()

    def learn(self, bill: Bill | None, request: Request) -> None:
        """Learn from an ended call, with its bill if any: later calls may cost as much."""
        if bill is not None:
            self._learn_price(bill)
        self.ceilings[request.role].learn(bill, request, self.price)

    def _learn_price(self, bill: Bill) -> None:
        """Bound an unlisted price by the stated cost of a call."""
        if (
            self.price is not self._bound
            or bill.reported_cost_usd is None
            or not (bill.prompt_tokens and bill.completion_tokens)
        ):
            return
        bound = compute_bound(bill.reported_cost_usd, bill.prompt_tokens, bill.completion_tokens)
        current = self._bound or bound
        self._bound = self.price = Price(min(current.prompt, bound.prompt), min(current.completion, bound.completion))

    def record_refusal(self, message: str) -> bool:
        """Record a final refusal; return whether so many had the same words, and nothing else, that the model is at fault."""
        if len(self._refusals) < SAME_REFUSALS:
            self._refusals.append(message)
        is_same = len(self._refusals) == SAME_REFUSALS and len(set(self._refusals)) == 1
        return is_same and not self.answered


@dataclass
class ModelQueue:
    """One set of requests to a model: unclaimed -> ready -> in flight -> settled, or back through `retries`, `undecided` or `elsewhere`."""

    state: ModelState
    role: str = CANDIDATE
    """The model's role: the requests of one gateway call have one role for each model."""
    total: int = 0
    replayed: int = 0
    done: int = 0
    failed: int = 0
    stopped: int = 0
    last_error: str = ""
    """Error of the last request that failed for good."""
    in_flight: int = 0
    claiming: int = 0
    """Requests from `unclaimed` or `elsewhere` that are being claimed."""
    unclaimed: deque[Job] = field(default_factory=deque)
    elsewhere: deque[Job] = field(default_factory=deque)
    """Requests that another run is sending; their responses will be in the store."""
    ready: deque[Job] = field(default_factory=deque)
    retries: list[tuple[float, int, Job]] = field(default_factory=list)
    """A heap ordered by the time of the next attempt."""
    undecided: list[Job] = field(default_factory=list)
    """Requests without attempts left, perhaps because of an outage that just began: the next response ends them, an outage does not."""
    clock: Callable[[], float] = time.monotonic
    _numbers: Iterator[int] = field(default_factory=count, repr=False)
    _samples: deque[tuple[float, int]] = field(default_factory=deque, repr=False)

    @property
    def spec(self) -> ModelSpec:
        return self.state.spec

    @property
    def ceiling(self) -> Ceiling:
        """The maximum usage of the model's calls in this role."""
        return self.state.ceilings[self.role]

    @property
    def is_exhausted(self) -> bool:
        return not (self.in_flight or self.claiming or any(self._waiting) or self.retries)

    @property
    def is_undecidable(self) -> bool:
        """Whether no further call can show if the undecided requests or the model are at fault."""
        return bool(self.undecided) and not (self.in_flight or self.claiming or self.ready or self.retries or self.unclaimed)

    @property
    def is_late(self) -> bool:
        """Whether every request has been sent once or is sent by another run."""
        return not (self.ready or self.unclaimed or self.claiming)

    @property
    def needs_claims(self) -> bool:
        """Whether to claim the next requests before the ready ones run out; follow-ups are claimed at once."""
        return bool(self.unclaimed) and (len(self.ready) < self.spec.max_concurrency or self.unclaimed[0].follows)

    def take_for_claim(self, *, is_recheck: bool) -> list[Job]:
        """Remove and return the next requests to claim: new ones, and, with none left and `is_recheck`, those that another run had."""
        size = 2 * self.spec.max_concurrency
        jobs: list[Job] = []
        while self.needs_claims and len(jobs) < size:
            jobs.append(self.unclaimed.popleft())
        if is_recheck and not self.unclaimed:
            jobs += [self.elsewhere.popleft() for _ in range(min(size, len(self.elsewhere)))]
        self.claiming += len(jobs)
        return jobs

    def may_send(self, now: float) -> bool:
        """Return whether a request is ready and the model accepts it now."""
        waiting = bool(self.ready) or (bool(self.retries) and self.retries[0][0] <= now)
        return waiting and self.in_flight < self.spec.max_concurrency and self.state.breaker.is_allowing(now)

    def find_next_time(self, now: float) -> float | None:
        """Return when mere waiting may change `may_send`, or None."""
        times = [self.state.slots.paused_until, self.state.breaker.open_until or now]
        if self.retries:
            times.append(self.retries[0][0])
        return min((moment for moment in times if moment > now), default=None)

    def take(self, now: float) -> Job:
        """Remove and return the next request: a due retry, else a new one."""
        if self.retries and self.retries[0][0] <= now:
            return heapq.heappop(self.retries)[2]
        return self.ready.popleft()

    def retry(self, job: Job, due: float) -> None:
        heapq.heappush(self.retries, (due, next(self._numbers), job))

    def ask_undecided_again(self, due: float) -> None:
        """Retry undecided requests after an outage."""
        for job in self.undecided:
            self.retry(job, due)
        self.undecided.clear()

    def drain(self) -> list[Job]:
        """Remove and return all requests not in flight."""
        jobs = [*(job for place in self._waiting for job in place), *(job for _, _, job in self.retries)]
        for place in (*self._waiting, self.retries):
            place.clear()
        return jobs

    @property
    def _waiting(self) -> tuple[deque[Job] | list[Job], ...]:
        return self.unclaimed, self.elsewhere, self.ready, self.undecided

    def progress(self) -> ModelProgress:
        """Return this set's counts, and the whole run's rate limits and cost."""
        rate = self._rate()
        remaining = self.total - self.replayed - self.done - self.failed - self.stopped
        return ModelProgress(
            self.spec.name,
            self.total,
            self.replayed,
            self.done,
            self.failed,
            self.stopped,
            rate=rate,
            rate_limited=self.state.rate_limited,
            cost_usd=self.state.spent.known_usd,
            unknown_cost_attempts=self.state.spent.unpriced,
            unknown_cost_usd_most=self.state.spent.most_usd or None,
            seconds_left=remaining / rate if rate else None,
        )

    def _rate(self) -> float:
        """Return responses per second over the last half minute."""
        now = self.clock()
        self._samples.append((now, self.done))
        while now - self._samples[0][0] > _RATE_WINDOW_S:
            self._samples.popleft()
        since, before = self._samples[0]
        return (self.done - before) / (now - since) if now > since else 0.0


class Arrival(NamedTuple):
    """One more request for a queue."""

    queue: ModelQueue
    job: Job | None
    """The request; None: its response is in the store already."""

    def enter(self, *, is_first: bool) -> None:
        self.queue.total += 1
        if self.job is None:
            self.queue.replayed += 1
        elif is_first:
            self.job.follows = True
            self.queue.unclaimed.appendleft(self.job)
        else:
            self.queue.unclaimed.append(self.job)


def compute_usage(bill: Bill, request: Request, price: Price | None, ceiling: Ceiling | None = None) -> Usage:
    """Return a call's usage; its maximum where the server does not report it."""
    usage = Usage(1, cost_usd=bill.cost_usd) if bill.cost_usd is not None else count_unknown_cost(request, price, ceiling)
    if bill.prompt_tokens is None or bill.completion_tokens is None:
        return usage._replace(tokens=compute_max_usage(request, price, ceiling).tokens)
    return usage._replace(tokens=bill.prompt_tokens + bill.completion_tokens)


def compute_failed_usage(error: CallError, request: Request, price: Price | None, ceiling: Ceiling | None = None) -> Usage:
    """Return the usage of a call without a response: as stated, else its maximum if it may be billed, else nothing."""
    if error.bill is not None:
        return compute_usage(error.bill, request, price, ceiling)
    return count_unknown_cost(request, price, ceiling) if error.billed else Usage(calls=1)


def make_unanswered_call(job: Job, usage: Usage) -> UnansweredCall | None:
    """Return the response store's row for a call without a response, or None if it cost nothing."""
    if not (usage.cost_usd or usage.unpriced):
        return None
    cost = None if usage.unpriced else usage.cost_usd
    return UnansweredCall(job.key, job.request.role, datetime.now(UTC), cost, usage.most_usd or None)


def make_response(job: Job, reply: Reply, latency: float, scrub: Scrubber, usage: Usage) -> Response:
    """Return the row of the response store. `usage`: of the call."""
    request = job.request
    return Response(
        request_key=job.key,
        prompt_id=request.prompt_id,
        model=request.model.name,
        model_variant=request.model.variant,
        draw=request.draw,
        snapshot=request.snapshot,
        text=scrub.response(reply.text),
        finish_reason=reply.finish_reason,
        served_model=reply.served_model,
        fingerprint=reply.fingerprint,
        reasoning=scrub.response(reply.reasoning) if reply.reasoning else reply.reasoning,
        **reply.bill._asdict(),
        latency_s=latency,
        attempts=job.sent,
        answered_at=datetime.now(UTC),
        role=request.role,
        host=reply.host,
        unknown_cost_attempts=usage.unpriced,
        unknown_cost_usd_most=usage.most_usd or None,
    )
