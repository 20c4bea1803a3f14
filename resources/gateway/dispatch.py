"""Sending of one set of requests: which may be sent now, and the effects of a failed call on its request, model and provider.

A request that waits, for another attempt or for its model, takes no slot. Each response is committed as soon as it arrives.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from dtef_pipeline.asking.request import LAST_ERROR, Failure
from dtef_pipeline.text.number_words import format_count
from resources.gateway.budget import WITHOUT_BILL, Accounts, Usage, count_unknown_cost
from resources.gateway.prices import Bill
from resources.gateway.queues import (
    SAME_REFUSALS,
    Arrival,
    Job,
    ModelQueue,
    Rules,
    compute_failed_usage,
    compute_usage,
    make_response,
    make_unanswered_call,
)
from resources.gateway.transport import CallError, Scope, Scrubber, Transport
from resources.responses.claims import ClaimOutcome, Claims
from resources.responses.store import ResponseWriter

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
        chunks = [(queue, chunk) for queue in self._queues if (chunk := queue.take_for_claim(is_recheck=looks))]
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


# Maximum wait, so that a missed event delays the run for a moment only.
_LONGEST_SLEEP_S = 5.0


class Dispatch:
    """The dispatch of all queued requests; collects failures, while responses are in the store."""

    def __init__(
        self,
        queues: Sequence[ModelQueue],
        writer: ResponseWriter,
        claims: Claims,
        accounts: Accounts,
        rules: Rules,
        scrub: Scrubber,
        tell: Callable[[str], None],
        on_settled: Callable[[str], None] | None = None,
    ) -> None:
        """Args:
        queues: with all requests in `unclaimed`.
        writer: commits responses; all other work on the store uses its thread too.
        claims: keep other runs from sending the same requests.
        accounts: the remaining budgets.
        rules: limits and waits.
        scrub: removes secrets from what is shown and stored.
        tell: takes one line when a model or a budget ends, or a model is paused.
        on_settled: takes the key of each request that now has a response or a failure; the caller then adds follow-ups with `enter`.
        """
        self._queues, self._writer, self._accounts, self._rules = list(queues), writer, accounts, rules
        self._scrub, self._take_line, self._take_settled = scrub, tell, on_settled
        self._changed = asyncio.Event()
        self._flight = SingleFlight(self._queues, claims, writer, self._changed.set, self._settle)
        self._open: dict[int, Transport] = {}
        self._followed = 0
        self._calls: set[asyncio.Task[None]] = set()
        self._fault: BaseException | None = None
        self._stopping = False
        self.failures: dict[str, Failure] = {}
        self.sent = 0
        """Distinct requests that were sent at least once."""

    async def run(self) -> None:
        """Send until every request is settled, or until stopped, with a grace period for calls in flight. Responses are committed."""
        await self._open_transports()
        supply = asyncio.create_task(self._run_supply())
        try:
            await self._dispatch_until_done()
            await self._flight.flush()
        finally:
            supply.cancel()
            for call in self._calls:
                call.cancel()
            await asyncio.gather(supply, *self._calls, return_exceptions=True)
            for transport in self._open.values():
                await transport.close()
        if self._fault is not None:
            raise self._fault

    def enter(self, arrivals: Sequence[Arrival], n_settled: int) -> None:
        """Put the follow-ups of `n_settled` settled requests before those that wait. Call in the event loop's thread."""
        for arrival in reversed(arrivals):
            if all(arrival.queue is not queue for queue in self._queues):
                self._queues.append(arrival.queue)
            arrival.enter(is_first=True)
        self._followed -= n_settled
        self._changed.set()

    def _settle(self, key: str) -> None:
        if self._take_settled is not None:
            self._followed += 1
            self._take_settled(key)

    async def _open_transports(self) -> None:
        for transport in [queue.state.transport for queue in self._queues]:
            if id(transport) not in self._open:
                self._open[id(transport)] = transport
                await transport.open()

    def stop(self) -> None:
        """Send nothing more. Call in the event loop's thread."""
        self._stopping = True
        self._changed.set()

    def _tell(self, line: str) -> None:
        self._take_line(self._scrub(line))

    async def _run_supply(self) -> None:
        try:
            await self._flight.run()
        except Exception as error:
            self._end_with(error)

    async def _dispatch_until_done(self) -> None:
        while not self._stopping:
            await self._open_transports()
            for queue in self._queues:
                if queue.is_undecidable:
                    self._end_undecided(queue)
            self._fail_undeliverable()
            if not self._followed and all(queue.is_exhausted for queue in self._queues):
                return
            now = self._rules.clock()
            self._send_ready(now)
            if any(queue.needs_claims for queue in self._queues):
                self._flight.signal_need()
            await self._wait_for_change(now)
        if self._calls and self._fault is None:
            await asyncio.wait(self._calls, timeout=self._rules.grace)

    async def _wait_for_change(self, now: float) -> None:
        times = [moment for queue in self._queues if (moment := queue.find_next_time(now)) is not None]
        await self._rules.wait(self._changed, min([_LONGEST_SLEEP_S, *(moment - now for moment in times)]))
        self._changed.clear()

    def _send_ready(self, now: float) -> None:
        """Send calls one by one, always of the model with the fewest in flight, so that a slow model does not starve others."""
        able = [queue for queue in self._queues if queue.may_send(now)]
        while able:
            queue = min(able, key=lambda queue: queue.in_flight)
            if not (self._has_slot(queue, now) and self._send(queue, now)) or not queue.may_send(now):
                able.remove(queue)

    def _has_slot(self, queue: ModelQueue, now: float) -> bool:
        """Return whether run, provider and model have a slot left; each keeps slots for queues with nothing in flight."""
        slots, name = queue.state.slots, queue.spec.name
        siblings = [sibling for sibling in self._queues if sibling.state.slots is slots]
        # A model with several temperatures has one queue for each.
        peers = [sibling for sibling in siblings if sibling.spec.name == name]
        return (
            _is_slot_left(self._rules.limit, len(self._calls), queue, self._queues)
            and slots.free(now) > 0
            and _is_slot_left(slots.limit, slots.in_flight, queue, siblings)
            and _is_slot_left(queue.spec.max_concurrency, sum(sibling.in_flight for sibling in peers), queue, peers)
        )

    def _send(self, queue: ModelQueue, now: float) -> bool:
        """Start one call if the budget allows it."""
        job = queue.take(now)
        usage = self._accounts.estimate(job.request, queue.state.price, queue.ceiling)
        # If a model's price is known only from its bills, its first call is made alone: nothing bounds the cost of others. Under a limit on
        # tokens, every model's first call is made alone, because its reply may show that calls use more than estimated.
        is_early = bool(queue.in_flight) and (
            self._is_price_missing(queue) or (usage.tokens > 0 and not queue.ceiling.may_begin(queue.in_flight))
        )
        if is_early or not self._accounts.reserve(queue.spec.name, usage, job.request.role):
            queue.ready.appendleft(job)
            if self._accounts.find_reached_limit(queue.spec.name, job.request.role):
                self._changed.set()
            return False
        job.reserved = usage
        job.begin(queue.state)
        self.sent += job.sent == 0
        job.sent += 1
        queue.in_flight += 1
        queue.state.slots.in_flight += 1
        call = asyncio.create_task(self._call(queue, job))
        self._calls.add(call)
        call.add_done_callback(self._handle_end)
        return True

    def _is_price_missing(self, queue: ModelQueue) -> bool:
        return self._accounts.is_price_missing(queue.spec, queue.state.price, queue.role)

    def _handle_end(self, call: asyncio.Task[None]) -> None:
        self._calls.discard(call)
        self._changed.set()
        if not call.cancelled() and (error := call.exception()) is not None:
            self._end_with(error)

    def _end_with(self, error: BaseException) -> None:
        self._fault = self._fault or error
        self.stop()

    async def _call(self, queue: ModelQueue, job: Job) -> None:
        """Make one attempt, which keeps its slot until the response is committed."""
        began, usage = self._rules.clock(), Usage(calls=1)
        bill: Bill | None = None
        try:
            reply = await queue.state.transport.ask(job.request)
            bill = reply.bill
        except CallError as error:
            bill = error.bill
            queue.state.learn(bill, job.request)
            usage = compute_failed_usage(error, job.request, queue.state.price, queue.ceiling)
            if (lost_call := make_unanswered_call(job, usage)) is not None:
                # Before it is settled, because a daily budget reads the store again.
                await self._writer.commit(lost_call)
            self._handle_failure(queue, job, error, began)
        except asyncio.CancelledError:
            # It was sent, so it may still be answered and billed.
            usage = count_unknown_cost(job.request, queue.state.price, queue.ceiling)
            if (lost_call := make_unanswered_call(job, usage)) is not None:
                self._writer.take(lost_call)
            queue.state.breaker.record_abandoned(probe=job.probe)
            raise
        else:
            latency = self._rules.clock() - began
            queue.state.learn(bill, job.request)
            usage = compute_usage(bill, job.request, queue.state.price, queue.ceiling)
            queue.state.answer(job)
            self._end_undecided(queue)
            await self._writer.commit(make_response(job, reply, latency, self._scrub, usage))
            queue.done += 1
            self._settle(job.key)
        finally:
            queue.in_flight -= 1
            queue.state.slots.in_flight -= 1
            if usage.unpriced and (bill is None or bill.prompt_tokens is None or bill.completion_tokens is None):
                queue.ceiling.count_unknown(job.request, usage)
            # Earlier calls of unknown cost count more if this reply shows that they may have used more.
            usage += queue.ceiling.take_uncounted(queue.state.price)
            queue.state.spent += usage
            if usage.unpriced and self._is_price_missing(queue):
                self._give_up(queue, WITHOUT_BILL)
            self._accounts.settle(queue.spec.name, job.reserved, usage, job.request.role)

    def _handle_failure(self, queue: ModelQueue, job: Job, error: CallError, began: float) -> None:
        """Apply a failed call to its request, model and provider."""
        now, model = self._rules.clock(), queue.state
        job.last_error = error.message
        if error.scope is Scope.PASSING and not error.rate_limited:
            return self._handle_passing_failure(queue, job, error.reached, now)
        model.breaker.record_answer()
        self._end_undecided(queue)
        if error.rate_limited:
            return self._retry_rate_limited(queue, job, error, began, now)
        if error.scope is Scope.MODEL:
            self._give_up(queue, error.message)
        elif not error.of_prompt and model.record_refusal(error.message):
            self._give_up(queue, f"the first {SAME_REFUSALS} requests all failed: {error.message}")
        return self._fail(queue, job, error.message)

    def _handle_passing_failure(self, queue: ModelQueue, job: Job, reached: bool, now: float) -> None:
        """Retry; a later response or the opening of the breaker shows whether the request was at fault."""
        breaker, backoff = queue.state.breaker, self._rules.backoff
        own_fault = job.is_own_failure(queue.state, is_late=queue.is_late)
        if breaker.record_failure(now, probe=job.probe, reached=reached, alone=own_fault) and breaker.open_until is not None:
            self._tell(
                f"{job.last_error}; call after call fails, so no more calls are sent to this model for {breaker.open_until - now:.3g} s"
            )
            queue.ask_undecided_again(now + backoff.wait(1))
        if breaker.is_exhausted:
            self._give_up(
                queue,
                f"given up after {format_count(breaker.failed_probes, 'probe')}: {job.last_error}",
            )
        if job.count_failure(breaker) > queue.spec.retries:
            queue.undecided.append(job)
        else:
            queue.retry(job, now + backoff.wait(max(1, job.failures)))

    def _end_undecided(self, queue: ModelQueue) -> None:
        """Fail requests without attempts left: the model answers others, or no call remains that could tell."""
        jobs, queue.undecided = queue.undecided, []
        for job in jobs:
            self._fail(queue, job, job.last_error)

    def _retry_rate_limited(self, queue: ModelQueue, job: Job, error: CallError, began: float, now: float) -> None:
        """Retry after the server's wait, without counting a failure, or fail if waits exceed `patience`."""
        model, backoff = queue.state, self._rules.backoff
        model.rate_limited += 1
        job.rate_limits += 1
        wait = max(error.retry_after or 0.0, backoff.wait(job.rate_limits))
        job.waited += wait
        if wait > backoff.patience or job.waited > backoff.patience:
            # Such a long wait would block the provider's other models.
            model.slots.record_rate_limit(began, now, None)
            return self._fail(queue, job, f"{job.last_error} (the limit of {backoff.patience:g} s of waiting is reached)")
        model.slots.record_rate_limit(began, now, error.retry_after)
        if model.limited_since is None:
            model.limited_since = now
        elif now - model.limited_since > backoff.patience:
            self._give_up(queue, f"only rate limits for {now - model.limited_since:.3g} s: {job.last_error}")
        return queue.retry(job, now + wait)

    def _give_up(self, queue: ModelQueue, reason: str) -> None:
        if queue.state.dead is None:
            # If the reason is the message of a call, it names the model already.
            queue.state.dead = f"{queue.spec.name}: {reason.replace(f'{queue.spec.name}: ', '', 1)}"
            self._tell(f"{queue.state.dead}; this run sends it no more requests")

    def _fail_undeliverable(self) -> None:
        """Fail requests that will not be sent: of abandoned models, and beyond a budget."""
        for queue in self._queues:
            if queue.state.dead is not None:
                self._fail_rest(queue, queue.state.dead, "error")
            elif (limit := self._accounts.find_reached_limit(queue.spec.name, queue.role)) is not None:
                self._fail_rest(queue, limit, "budget")

    def _fail_rest(self, queue: ModelQueue, reason: str, status: str) -> None:
        jobs = queue.drain()
        # An error is more useful than the budget that ended the attempts: the request's own error, or else the last one that persists.
        errors = {job.key: job.last_error for job in jobs if job.last_error} if status == "budget" else {}
        last = next(reversed(errors.values()), queue.last_error) if status == "budget" else ""
        if jobs and status == "budget" and not queue.stopped:
            are = "request is" if len(jobs) == 1 else "requests are"
            self._tell(f"{queue.spec.name}: {reason}; {len(jobs):,} {are} not sent{_quote_error(last)}")
        for job in jobs:
            error = _quote_error(errors.get(job.key, last))
            self._fail(queue, job, f"not sent{' again' if job.sent else ''}: {reason}{error}", status)

    def _fail(self, queue: ModelQueue, job: Job, message: str, status: str = "error") -> None:
        if status == "budget":
            queue.stopped += 1
        else:
            queue.failed += 1
            queue.last_error = message
        self._flight.give_back(job.key)
        self.failures[job.key] = Failure(job.key, self._scrub(message), job.sent, status)
        self._settle(job.key)


def _quote_error(error: str) -> str:
    return f"{LAST_ERROR}{error}" if error else ""


def _is_slot_left(limit: int, in_use: int, queue: ModelQueue, queues: Sequence[ModelQueue]) -> bool:
    """Return whether the queue may take a free slot: up to half of all are kept for queues with none in flight."""
    if not queue.in_flight:
        return in_use < limit
    waiting = sum(1 for sibling in queues if not sibling.in_flight and not sibling.is_exhausted)
    return in_use + min(waiting, limit // 2) < limit
