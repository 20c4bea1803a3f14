"""Execution of a stage's requests."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import dagster as dg
import pyarrow as pa

from assets.stage.call_counts import CallsOfStage
from assets.stage.partitions import get_stage_verb
from assets.stage.provider_pools import provider_pools
from assets.stage.resources import Store, command_of
from dtef_pipeline.asking.calls import STORED_COLUMNS, Ask, PlanFollowUps
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Request
from dtef_pipeline.asking.request_list import RequestList, list_keys
from dtef_pipeline.family.run_settings import RunSettings, budgets_of
from dtef_pipeline.family.stage import Limits
from resources.gateway import Gateway
from resources.gateway.progress import ModelProgress, RunProgress, display_progress


@contextmanager
def open_gateway(
    context: dg.AssetExecutionContext,
    store: Store,
    settings: RunSettings,
    specs: Sequence[ModelSpec],
    expected: Mapping[str, int],
) -> Iterator[tuple[Gateway, RunProgress]]:
    """Open the run's gateway within its budgets, its displayed progress, and slots of providers. `expected`: responses by model name.

    All stages of a run share one gateway and budget; with a multiprocess executor, those of a process do. For each limit, the first value
    given by a stage holds.
    """
    budgets, roles = budgets_of(settings, specs)
    log, verb = context.log.info, get_stage_verb(context.asset_key.to_user_string())
    with provider_pools(context.instance, context.run, specs, log), display_progress(log, verb) as display:
        gateway = store.open_gateway(command_of(context.run))
        gateway.accounts.limit(settings.budget, budgets, roles)
        gateway.tell = display.say
        yield gateway, RunProgress(display, expected)


@contextmanager
def asking(
    context: dg.AssetExecutionContext,
    store: Store,
    settings: RunSettings,
    specs: Sequence[ModelSpec],
    expected: Mapping[str, int],
    limits: Limits,
) -> Iterator[Ask]:
    """Yield a function that answers or replays requests, window by window. For the arguments see `open_gateway`."""
    if not specs:
        yield lambda requests: {}
        return
    with open_gateway(context, store, settings, specs, expected) as (gateway, progress):
        for role, daily in limits.daily.items():
            gateway.accounts.limit_daily(role, daily)
        gateway.accounts.allowed_unpriced.update(limits.unpriced)
        if (listener := store.run_state.call_listener) is None:
            yield _Asks(gateway, progress, None)
            return
        listener.begin(sum(expected.values()))
        try:
            yield _Asks(gateway, progress, listener)
        finally:
            listener.end()


@dataclass(frozen=True, slots=True)
class _Asks:
    """The gateway of a run as an `Ask` that supports follow-up requests."""

    gateway: Gateway
    progress: RunProgress
    listener: CallsOfStage | None

    def __call__(self, requests: Sequence[Request]) -> Mapping[str, Failure]:
        return self._answer_requests(requests, None)

    def ask_until_done(self, requests: Sequence[Request], follow_up: PlanFollowUps) -> object:
        return self._answer_requests(requests, follow_up)

    def _answer_requests(self, requests: Sequence[Request], follow_up: PlanFollowUps | None) -> Mapping[str, Failure]:
        self.progress.is_open = follow_up is not None
        failures: Mapping[str, Failure]
        if self.listener is None:
            failures = self.gateway.answer(requests, on_progress=self.progress, follow_up=follow_up).failures
        else:
            failures = self._call_listener(requests, follow_up, self.listener)
        self.progress.window_done()
        return failures

    def _call_listener(
        self, requests: Sequence[Request], follow_up: PlanFollowUps | None, calls: CallsOfStage
    ) -> Mapping[str, Failure]:
        def show(models: tuple[ModelProgress, ...]) -> None:
            self.progress(models)
            calls.update_progress(models)

        def follow(keys: Sequence[str], failures: Mapping[str, Failure]) -> Sequence[Request]:
            calls.settle(keys, failures)
            return follow_up(keys, failures) if follow_up is not None else ()

        try:
            failures = self.gateway.answer(requests, on_progress=show, follow_up=None if follow_up is None else follow).failures
            calls.settle(list_keys(requests), failures)
        finally:
            calls.call_done()
        return failures


def answer_calls(
    requests: Sequence[Sequence[Request]],
    keys: Sequence[str],
    ask: Ask,
    lookup: Callable[[Sequence[str], Sequence[str]], pa.Table],
) -> tuple[pa.Table, Mapping[str, Failure]]:
    """Send the requests of several partitions together.

    Returns the columns STORED_COLUMNS of all stored responses to the keys, and failures by request key. `lookup`: returns responses, given
    their keys and columns.
    """
    rows = lookup(keys, STORED_COLUMNS)
    stored_keys = set(rows["request_key"].to_pylist())
    lists = [part for part in requests if isinstance(part, RequestList)]
    together: Sequence[Request] = RequestList.concatenate(lists).mark_stored(stored_keys)
    if len(lists) < len(requests):
        together = [request for group in requests for request in group]
    failures = ask(together) if together else {}
    lacking = [key for key in keys if key not in stored_keys]
    return pa.concat_tables([rows, lookup(lacking, STORED_COLUMNS)]) if lacking else rows, failures
