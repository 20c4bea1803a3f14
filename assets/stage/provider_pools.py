"""Dagster's concurrency pools, one per provider: how many runs may ask a provider at once, over all processes and machines of an instance."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

import dagster as dg

from assets.stage.dagster_internals import InstanceConcurrencyContext
from dtef_pipeline.asking.models import ModelSpec
from resources.gateway.slots import provider_of

LOOK_AGAIN_S = 1.0


@contextmanager
def provider_pools(
    instance: dg.DagsterInstance, run: dg.DagsterRun, models: Iterable[ModelSpec], log: Callable[[str], None]
) -> Iterator[None]:
    """Hold a slot of each provider's pool; waits until there is one. A pool without a limit holds up no run.

    The UI shows who holds and who waits under Deployment, Concurrency. Slots of runs that have ended are given back first.
    """
    with InstanceConcurrencyContext(instance, run) as claims, ExitStack() as held:
        # In one order everywhere, so that no two runs wait for each other.
        for pool in sorted({provider_of(spec) for spec in models if not spec.is_computed}):
            held.callback(claims.free_step, _holder(pool))
            _wait(instance, claims, pool, log)
        yield


def _wait(instance: dg.DagsterInstance, claims: InstanceConcurrencyContext, pool: str, log: Callable[[str], None]) -> None:
    logged = False
    while not claims.claim(pool, _holder(pool)):
        if not logged:
            log(f"waiting for the pool {pool}: as many runs as its limit ask this provider now")
            logged = True
        _free_ended(instance, pool)
        time.sleep(LOOK_AGAIN_S)


def _free_ended(instance: dg.DagsterInstance, pool: str) -> None:
    """The daemon does this too, but a command can run without one."""
    slots = instance.event_log_storage.get_concurrency_info(pool).claimed_slots
    for run_id in {slot.run_id for slot in slots}:
        holder = instance.get_run_by_id(run_id)
        if holder is None or holder.is_finished:
            instance.event_log_storage.free_concurrency_slots_for_run(run_id)


def _holder(pool: str) -> str:
    """What holds the slot, as the UI lists it."""
    return f"predictions[{pool}]"
