"""Execution of a stage's requests."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import dagster as dg
import pyarrow as pa

from assets.stage.partitions import get_stage_verb
from assets.stage.provider_pools import provider_pools
from assets.stage.resources import Store, command_of
from dtef_pipeline.asking.calls import STORED_COLUMNS, Ask
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Request
from dtef_pipeline.asking.request_list import RequestList
from dtef_pipeline.family.run_settings import RunSettings, budgets_of
from dtef_pipeline.family.stage import Limits


@contextmanager
def asking(
    context: dg.AssetExecutionContext,
    store: Store,
    settings: RunSettings,
    specs: Sequence[ModelSpec],
    expected: Mapping[str, int],
    limits: Limits,
) -> Iterator[Ask]:
    """Yield a function that sends requests, with slots of providers, budgets, and a display. `expected`: responses by model name."""
    if not specs:
        yield lambda requests: {}
        return
    budgets, roles = budgets_of(settings, specs)
    with (
        provider_pools(context.instance, context.run, specs, context.log.info),
        store.asking(
            context.log.info,
            expected,
            settings.budget,
            budgets,
            command_of(context.run),
            roles,
            daily_budgets=limits.daily,
            unpriced_models=limits.unpriced,
            stage=get_stage_verb(context.asset_key.to_user_string()),
        ) as ask,
    ):
        yield ask


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
