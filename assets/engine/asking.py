"""Has a stage's requests answered."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import dagster as dg

from assets.stage.provider_pools import provider_pools
from assets.stage.resources import Store
from assets.stage.shared_gateway import command_of
from dtef_pipeline.asking.calls import Ask
from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.family.run_settings import RunSettings
from dtef_pipeline.family.stage import Limits


def budgets_of(settings: RunSettings, specs: Sequence[ModelSpec]) -> tuple[dict[str, Budget], dict[str, Budget]]:
    """By model name, what the models files say and over it what the run says; and by role."""
    roles: dict[str, Budget] = {role: Budget(**budget.model_dump()) for role, budget in settings.role_budgets.items()}
    return {spec.name: spec.budget for spec in specs} | settings.budgets, roles


@contextmanager
def asking(
    context: dg.AssetExecutionContext,
    store: Store,
    settings: RunSettings,
    specs: Sequence[ModelSpec],
    expected: Mapping[str, int],
    limits: Limits,
) -> Iterator[Ask]:
    """Has requests answered, with the providers' places held, the budgets of the run, and a display of what is `expected` by model name."""
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
            of_days=limits.daily,
            unpriced=limits.unpriced,
        ) as ask,
    ):
        yield ask
