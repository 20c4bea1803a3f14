"""Dagster's concurrency pools, one per provider: how many runs may call it at once, over all processes and machines."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

import dagster as dg

from assets.stage.dagster_internals import InstanceConcurrencyContext
from dtef_pipeline.asking.models import ModelSpec
from resources.gateway.queues import find_provider

LOOK_AGAIN_S = 1.0


@contextmanager
def provider_pools(
    instance: dg.DagsterInstance, run: dg.DagsterRun, models: Iterable[ModelSpec], log: Callable[[str], None]
) -> Iterator[None]:
    """Hold a slot of each provider's pool, after waiting for it. Pools without a limit do not block.

    The UI shows holders and waiting runs under Deployment, Concurrency. Slots and queue places of finished runs are released first.
    """
    with InstanceConcurrencyContext(instance, run) as claims, ExitStack() as slots:
        # The same order everywhere prevents deadlocks between runs.
        for pool in sorted({find_provider(spec) for spec in models if not spec.is_computed}):
            slots.callback(claims.free_step, _describe_holder(pool))
            _wait(instance, run, claims, pool, log)
        yield


def _wait(
    instance: dg.DagsterInstance,
    run: dg.DagsterRun,
    claims: InstanceConcurrencyContext,
    pool: str,
    log: Callable[[str], None],
) -> None:
    is_logged = False
    while not claims.claim(pool, _describe_holder(pool)):
        if not is_logged:
            log(f"waiting for the pool {pool}: as many runs as its limit ask this provider now")
            is_logged = True
        _release_ended(instance, pool)
        _requeue(instance, run, pool)
        time.sleep(LOOK_AGAIN_S)


def _release_ended(instance: dg.DagsterInstance, pool: str) -> None:
    """Release slots of finished runs. The daemon does this too, but commands can run without it."""
    info = instance.event_log_storage.get_concurrency_info(pool)
    for run_id in info.active_run_ids | info.assigned_run_ids | info.pending_run_ids:
        run = instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            instance.event_log_storage.free_concurrency_slots_for_run(run_id)


def _requeue(instance: dg.DagsterInstance, run: dg.DagsterRun, pool: str) -> None:
    """Leave the queue if a slot is free, so that the next claim takes it.

    Dagster assigns a released slot to the first in the queue. A run that joins at that moment is missed, and would wait for a free slot.
    """
    info = instance.event_log_storage.get_concurrency_info(pool)
    if run.run_id in info.pending_run_ids and info.slot_count > info.assigned_step_count:
        instance.event_log_storage.free_concurrency_slot_for_step(run.run_id, _describe_holder(pool))


def _describe_holder(pool: str) -> str:
    """Return the slot's holder as listed in the UI."""
    return f"predictions[{pool}]"
