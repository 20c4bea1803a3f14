"""The only way to call a language model: stored responses are not requested again, new ones are stored before they are used.

Knows messages, models, draws and snapshots, not their meaning.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dtef_pipeline.asking.calls import PlanFollowUps
from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import CANDIDATE, EMBEDDER, Failure, Request
from dtef_pipeline.asking.request_list import RequestList, RequestsOfModel
from dtef_pipeline.text.number_words import format_count
from resources.gateway.budget import Accounts, Usage
from resources.gateway.direct_transport import DirectTransport, is_direct
from resources.gateway.dispatch import Dispatch
from resources.gateway.litellm_transport import LitellmTransport
from resources.gateway.local_model import LocalTransport
from resources.gateway.model_checks import add_stored_snapshots, describe_altered_settings, refuse, refuse_same_sent
from resources.gateway.prices import price
from resources.gateway.progress import OnProgress
from resources.gateway.queues import (
    Arrival,
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
from resources.gateway.transport import Scrubber, Transport
from resources.responses.claims import Claims
from resources.responses.store import ResponseStore, ResponseWriter

_TICK_S = 0.2


class LoopThread:
    """An event loop in a thread of its own, with or without a running event loop around it."""

    def __init__(self, main: Callable[[], Coroutine[Any, Any, None]], stop: Callable[[], None]) -> None:
        """`main`: the coroutine to run. `stop`: requests a quick, orderly end; called in the loop's thread."""
        self._main, self._stop = main, stop
        self._started, self._news = threading.Event(), threading.Event()
        self._end: Future[None] = Future()

    def run(self, tick: Callable[[], None]) -> None:
        """Run `main` to its end; `tick` is called in this thread a few times a second, also while an interrupted run ends.

        An interrupt (Ctrl-C, Dagster's own, an error in `tick`) requests an orderly end, waits for it, and is then raised; a second one
        cancels the rest at once.
        """
        with ThreadPoolExecutor(1, thread_name_prefix="dtef-gateway") as pool:
            self._end = pool.submit(asyncio.run, self._run_supervised())
            self._end.add_done_callback(lambda _: self._started.set())  # a loop that could not begin
            self._end.add_done_callback(lambda _: self._news.set())
            try:
                self._wait(tick)
            except BaseException:
                self.call_in_loop(self._stop)
                try:
                    self._wait(tick)
                except BaseException:
                    self.call_in_loop(self._task.cancel)
                raise
        self._end.result()

    def _wait(self, tick: Callable[[], None]) -> None:
        while not self._end.done():
            if self._news.wait(_TICK_S):
                self._news.clear()
            if not self._end.done():
                tick()

    def nudge(self) -> None:
        """Have `tick` called at once. Thread-safe."""
        self._news.set()

    def call_in_loop(self, work: Callable[[], object]) -> None:
        """Schedule work in the loop's thread; do nothing if the run has ended."""
        self._started.wait()
        if not self._end.done():
            self._loop.call_soon_threadsafe(work)

    async def _run_supervised(self) -> None:
        self._loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._task = task
        self._started.set()
        await self._main()


_log = logging.getLogger("dtef.gateway")
_NO_BUDGET = Budget()
_ModelKey = tuple[str, bool]
"""A variant, and whether the requests are for embeddings."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a set of requests. The responses are in the store, under their request keys."""

    failures: dict[str, Failure]
    """Failures by request key. They are not stored, so a rerun sends these requests again."""
    n_sent: int
    """Number of distinct requests sent to a model now, with or without a response."""
    replayed: int
    """Number of distinct requests with a response that was stored before."""


class Gateway:
    """A client of language models that sends only requests without a stored response.

    One gateway per run: its knowledge of providers and models, and its spending, extend over all its `answer` calls. Make one call at a
    time.
    """

    def __init__(
        self,
        store: ResponseStore,
        *,
        budget: Budget = _NO_BUDGET,
        budgets: Mapping[str, Budget] | None = None,
        environ: Mapping[str, str] | None = None,
        provider_limits: Mapping[str, int] | None = None,
        max_concurrency: int = 256,
        backoff: Backoff | None = None,
        breaker: BreakerRules | None = None,
        grace: float = 30.0,
        tell: Callable[[str], None] = _log.warning,
    ) -> None:
        """Args:
        store: where responses are looked up and committed.
        budget: the most the run may use over all models.
        budgets: the most that single models may use, by model name.
        environ: source of API keys; by default the process's environment.
        provider_limits: calls in flight at once to a provider, in this process; found by trying for other providers.
        max_concurrency: calls in flight at once over all models; each model and provider has its own limit below it.
        backoff: waits between attempts.
        breaker: when a failing model is paused, and when it is given up.
        grace: seconds that an interrupted run waits for calls in flight.
        tell: takes a line, in the caller's thread, when a model is given up or paused, or a budget is reached.
        """
        self.store = store
        self.accounts = Accounts(budget, budgets or {})
        self._environ = os.environ if environ is None else environ
        self._provider_limits = provider_limits or {}
        self._rules = Rules(max_concurrency, backoff or Backoff(), grace)
        self._breaker_rules, self.tell = breaker or BreakerRules(), tell
        self._local = LocalTransport()
        self._hosted: dict[bool, Transport] = {True: DirectTransport(self._environ), False: LitellmTransport(self._environ)}
        """By whether LiteLLM is bypassed."""
        self.providers: dict[str, ProviderSlots] = {}
        self._models: dict[_ModelKey, ModelState] = {}
        self._checked: dict[str, dict[str, ModelSpec]] = defaultdict(dict)
        """Models whose request settings were checked, by role and variant."""

    @property
    def models(self) -> tuple[ModelState, ...]:
        """The states of the models that requests went to, replayed ones included."""
        return tuple(self._models.values())

    @property
    def usage_by_role(self) -> Mapping[str, Usage]:
        """The usage of all `answer` calls so far, failed calls included, by role."""
        return dict(self.accounts.by_role)

    def answer(
        self, requests: Iterable[Request], *, on_progress: OnProgress | None = None, follow_up: PlanFollowUps | None = None
    ) -> Outcome:
        """Ensure that every request has a response in the store, or a failure with its reason.

        Each response is committed before any other use, so a killed or interrupted run keeps its responses; a rerun sends the rest. If
        other runs over the same store need the same request, one of them sends it, and it counts as replayed for the others. `on_progress`
        is called in this thread, a few times a second. `follow_up` is called in this thread too, as soon as requests are settled; the
        requests it returns are sent before those that wait.

        Raises:
            GatewayError: some model cannot be called at all (no key, no package, no price under a limit in dollars); nothing has been sent
        then, unless `follow_up` introduced the model.
            StoreError: the store cannot be read or written.
            KeyboardInterrupt: after calls in flight have had `grace` seconds to end, and their responses are committed.
        """
        queues: dict[_ModelKey, ModelQueue] = {}
        intake = Intake(self.store, partial(self._get_queue, queues), follow_up)
        for arrival in intake.take(requests):
            arrival.enter(is_first=False)
        waiting = [queue for queue in queues.values() if queue.unclaimed]
        self._refuse_unaskable(waiting)
        lines: deque[str] = deque()

        def tell_lines() -> None:
            while lines:
                self.tell(lines.popleft())

        def report() -> None:
            tell_lines()
            if on_progress is not None:
                on_progress(tuple(queue.progress() for queue in list(queues.values())))

        report()
        n_sent = 0
        if waiting:
            try:
                n_sent = self._ask(waiting, intake, lines.append, report)
            finally:
                tell_lines()
            report()
        self._note_costs(intake.failures)
        return Outcome(intake.failures, n_sent=n_sent, replayed=sum(queue.replayed for queue in queues.values()))

    def _note_costs(self, failures: dict[str, Failure]) -> None:
        """Add to each failure what its calls cost or may have cost, earlier runs included."""
        for key, cost in self.store.failure_costs(failures).items():
            failures[key] = replace(
                failures[key],
                cost_usd=cost.cost_usd,
                unknown_cost_attempts=cost.unknown,
                unknown_cost_usd_most=cost.most_usd,
            )

    def _ask(self, queues: list[ModelQueue], intake: Intake, tell: Callable[[str], None], report: Callable[[], None]) -> int:
        """Send the queued requests and their follow-ups; return how many requests were sent."""
        scrub = Scrubber(self._environ, [queue.spec for queue in queues])
        writer, claims = ResponseWriter(self.store), Claims(self.store)
        settled_keys: deque[str] = deque()

        def settle(key: str) -> None:
            settled_keys.append(key)
            thread.nudge()

        on_settled = settle if intake.is_followed else None
        dispatch = Dispatch(queues, writer, claims, self.accounts, self._rules, scrub, tell, on_settled)

        async def ask() -> None:
            async with writer:
                try:
                    await dispatch.run()
                finally:
                    await writer.run(claims.close)

        def stop() -> None:
            in_flight = sum(queue.in_flight for queue in queues)
            calls = format_count(in_flight, "call")
            tell(f"interrupted: waiting up to {self._rules.grace:g} s for {calls} in flight; interrupt again to stop at once")
            dispatch.stop()

        def tick() -> None:
            if keys := [settled_keys.popleft() for _ in range(len(settled_keys))]:
                arrivals = intake.follow(keys, dispatch.failures)
                if new_queues := _list_new_queues(arrivals, queues):
                    self._refuse_unaskable(new_queues)
                    scrub.know(queue.spec for queue in new_queues)
                    queues.extend(new_queues)
                thread.call_in_loop(partial(dispatch.enter, arrivals, len(keys)))
            report()

        thread = LoopThread(ask, stop)
        thread.run(tick)
        intake.failures |= dispatch.failures
        return dispatch.sent

    def _get_queue(self, queues: dict[_ModelKey, ModelQueue], model: ModelSpec, role: str) -> ModelQueue:
        """Return the queue of a model in a role, created if missing."""
        key = model.variant, role == EMBEDDER
        if (queue := queues.get(key)) is None:
            queue = queues[key] = ModelQueue(self._get_state(model, key), role)
        return queue

    def _get_state(self, spec: ModelSpec, key: _ModelKey) -> ModelState:
        if spec.is_computed:
            raise ValueError(f"{spec.name} is refused: its answers are computed, not requested")
        if (state := self._models.get(key)) is None:
            provider = find_provider(spec)
            if (slots := self.providers.get(provider)) is None:
                cap = min(self._rules.limit, self._provider_limits.get(provider, self._rules.limit))
                slots = self.providers[provider] = ProviderSlots(cap, self._rules.backoff)
            transport = self._local if spec.is_local else self._hosted[is_direct(spec)]
            state = self._models[key] = ModelState(spec, transport, slots, Breaker(self._breaker_rules))
        return state

    def _refuse_unaskable(self, queues: Sequence[ModelQueue]) -> None:
        problems = ((queue.spec, queue.state.transport.problem(queue.spec)) for queue in queues)
        refuse({spec.name: add_stored_snapshots(spec, problem, self.store) for spec, problem in problems})
        self._check_sent([queue for queue in queues if queue.role != EMBEDDER])
        for queue in queues:
            queue.state.price = price(queue.spec) or queue.state.price
        for role in dict.fromkeys(queue.role for queue in queues):
            role_prices = [(queue.spec, queue.state.price) for queue in queues if queue.role == role]
            self.accounts.refuse_unpriced(role_prices, role)

    def _check_sent(self, queues: Sequence[ModelQueue]) -> None:
        """Report settings that are not sent as configured. Raises GatewayError if two models would send the same request."""
        for queue in queues:
            specs = self._checked[queue.role]
            if queue.spec.variant not in specs:
                refuse_same_sent([*specs.values(), queue.spec], [queue.spec])
                specs[queue.spec.variant] = queue.spec
                for line in describe_altered_settings([queue.spec]):
                    self.tell(line)


def _list_new_queues(arrivals: Sequence[Arrival], queues: Sequence[ModelQueue]) -> list[ModelQueue]:
    """Return the arrivals' queues that are not yet in use."""
    ids = {id(queue) for queue in queues}
    return list({id(new.queue): new.queue for new in arrivals if new.job is not None and id(new.queue) not in ids}.values())


class Intake:
    """The division of requests into those to send and those settled. Runs in the caller's thread."""

    def __init__(
        self, store: ResponseStore, get_queue: Callable[[ModelSpec, str], ModelQueue], follow_up: PlanFollowUps | None
    ) -> None:
        self._store, self._queue_of, self._follow_up = store, get_queue, follow_up
        self._seen, self._settled = set[str](), set[str]()
        self.failures: dict[str, Failure] = {}
        """Failures by request key."""

    @property
    def is_followed(self) -> bool:
        """Whether a response may have follow-ups."""
        return self._follow_up is not None

    def take(self, requests: Iterable[Request]) -> list[Arrival]:
        """Return the arrivals of these requests and of the follow-ups of settled ones, later steps of an episode first."""
        arrivals: list[Arrival] = []
        keys, new_arrivals = self._sort_requests(requests)
        while keys and self._follow_up is not None:
            arrivals = new_arrivals + arrivals
            keys, new_arrivals = self._sort_requests(self._follow_up(keys, self.failures))
        return new_arrivals + arrivals

    def follow(self, keys: Sequence[str], failures: Mapping[str, Failure]) -> list[Arrival]:
        """Return the follow-ups of requests settled just now. `failures`: all so far, by request key."""
        self._settled.update(keys)
        self.failures |= {key: failures[key] for key in keys if key in failures}
        return self.take(self._follow_up(keys, self.failures)) if self._follow_up is not None else []

    def _sort_requests(self, requests: Iterable[Request]) -> tuple[list[str], list[Arrival]]:
        """Return the settled keys and the new arrivals."""
        stored_keys, replays = list[str](), list[Arrival]()
        if isinstance(requests, RequestList):
            for part in requests.parts:
                stored_keys += part.stored_keys
                replays += self._take_replayed(part)
            requests = requests.iterate_missing()
        repeats, new = list[str](), dict[str, Request]()
        for request in requests:
            if request.key in self._settled:
                repeats.append(request.key)
            elif request.key not in self._seen:
                new[request.key] = request
        known_keys = self._store.find_known_keys(new)
        self._seen |= new.keys()
        self._settled |= known_keys
        arrivals = [
            Arrival(self._queue_of(request.model, request.role), None if key in known_keys else Job(key, request))
            for key, request in new.items()
        ]
        done_keys = [*repeats, *(key for key in new if key in known_keys)]
        return list(dict.fromkeys([*stored_keys, *done_keys])), replays + arrivals

    def _take_replayed(self, requests: RequestsOfModel) -> list[Arrival]:
        """Return arrivals for stored requests that are new here."""
        new = [key for key in requests.stored_keys if key not in self._seen]
        self._seen.update(new)
        self._settled.update(new)
        return [Arrival(self._queue_of(requests.model, CANDIDATE), None)] * len(new) if new else []
