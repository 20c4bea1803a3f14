"""The one way to ask a language model: replay what is in the response store, ask what is missing, lose nothing.

Knows messages, models, draws and snapshots; knows nothing of surveys.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dtef_pipeline.errors import GatewayError
from dtef_pipeline.prediction.request import Failure, Request
from resources.asking import Asking, Pool, Sleep
from resources.litellm_transport import LitellmTransport
from resources.local_model import LocalTransport
from resources.progress import OnProgress
from resources.response_store import ResponseStore
from resources.response_writer import ResponseWriter
from resources.retries import Backoff
from resources.transport import Scrubber

_TICK_S = 0.2


@dataclass(frozen=True, slots=True)
class Answers:
    """What came of a set of requests. The answers themselves are in the store, under their request keys."""

    failures: dict[str, Failure]
    """By request key; these have no row in the store, so a rerun asks them again."""
    asked: int
    """Distinct requests sent to a model now, answered or failed."""
    replayed: int
    """Distinct requests whose answer was in the store already."""


class Gateway:
    """Asks language models for what the response store does not have yet."""

    def __init__(
        self,
        store: ResponseStore,
        *,
        environ: Mapping[str, str] | None = None,
        max_concurrency: int = 64,
        backoff: Backoff | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """
        Args:
            store: where answers are looked up and committed.
            environ: where API keys come from; by default the process's environment.
            max_concurrency: calls in progress at once over all models; each model has its own limit below it.
            backoff: waits between attempts.
            sleep: how to wait, for tests.
        """
        self.store = store
        self._limit, self._sleep = max_concurrency, sleep
        self._environ = os.environ if environ is None else environ
        self._backoff = backoff or Backoff()
        self._litellm = LitellmTransport(self._environ)
        self._local = LocalTransport()

    def answer(self, requests: Iterable[Request], *, on_progress: OnProgress | None = None) -> Answers:
        """Make sure that every request has an answer in the store, or a failure that says why not.

        Each answer is committed before anything else happens to it, so a run that is killed or interrupted keeps
        what it had; a rerun asks the rest. `on_progress` is called in this thread, a few times a second.

        Raises:
            GatewayError: some model can not be asked at all (no key, no package); nothing has been asked then.
            WarehouseError: the store cannot be read or written.
        """
        wanted = {request.key: request for request in requests}
        known = self.store.known(wanted)
        pools = self._pools(wanted, known)
        self._refuse_unaskable([pool for pool in pools if pool.queue])
        failures: dict[str, Failure] = {}

        def report() -> None:
            if on_progress is not None:
                on_progress(tuple(pool.progress for pool in pools))

        report()
        if len(known) < len(wanted):
            scrub = Scrubber(self._environ, [pool.spec for pool in pools])

            async def ask() -> None:
                writer = ResponseWriter(self.store)
                asking = Asking(pools, writer, self._limit, self._backoff, scrub, self._sleep)
                asking.failures = failures
                await asking.run()

            _run_in_thread(ask, report)
            report()
        return Answers(failures, asked=len(wanted) - len(known), replayed=len(known))

    def _pools(self, wanted: Mapping[str, Request], known: set[str]) -> list[Pool]:
        pools: dict[str, Pool] = {}
        for key, request in wanted.items():
            spec = request.model
            if spec.is_baseline:
                raise ValueError(f"{spec.name} is a baseline: it is computed, not asked")
            if (pool := pools.get(spec.variant)) is None:
                pool = pools[spec.variant] = Pool(spec, self._local if spec.is_local else self._litellm)
            pool.total += 1
            if key in known:
                pool.replayed += 1
            else:
                pool.queue.append((key, request))
        return list(pools.values())

    def _refuse_unaskable(self, pools: Iterable[Pool]) -> None:
        problems = {pool.spec.name: pool.transport.problem(pool.spec) for pool in pools}
        found = [f"{name}: {problem}" for name, problem in problems.items() if problem]
        if found:
            raise GatewayError(f"nothing was asked, because not every model can be: {'; '.join(found)}")


def _run_in_thread(main: Callable[[], Coroutine[Any, Any, None]], tick: Callable[[], None]) -> None:
    """Run a coroutine in an event loop of its own while this thread reports progress.

    So it works with or without a running loop around it, and an interrupt (Ctrl-C, Dagster's own) arrives here, where it
    becomes an orderly cancellation, instead of in the middle of a call.
    """
    started, finished = threading.Event(), threading.Event()
    state: dict[str, Any] = {}

    async def supervised() -> None:
        state["loop"], state["task"] = asyncio.get_running_loop(), asyncio.current_task()
        started.set()
        await main()

    def run() -> None:
        try:
            asyncio.run(supervised())
        except BaseException as error:  # handed to the caller's thread
            state["error"] = error
        finally:
            started.set()
            finished.set()

    thread = threading.Thread(target=run, name="dtef-gateway")
    thread.start()
    try:
        while not finished.wait(_TICK_S):
            tick()
    except BaseException:
        started.wait()
        if not finished.is_set():
            state["loop"].call_soon_threadsafe(state["task"].cancel)
        raise
    finally:
        thread.join()
    if "error" in state:
        raise state["error"]
