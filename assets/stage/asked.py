"""What the stages that ask models in several roles share: their configuration of budgets, and who asks."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import dagster as dg
from pydantic import Field

from assets.stage.asking_config import AskingConfig, checked_budgets
from assets.stage.provider_pools import provider_pools
from assets.stage.resources import Store
from assets.stage.shared_gateway import command_of
from dtef_pipeline.asking.calls import Ask
from dtef_pipeline.asking.daily_budget import DailyBudget
from dtef_pipeline.asking.models import Budget, Models, ModelSpec
from dtef_pipeline.asking.request import ROLES
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS
from resources.known_models import known_models

ToBeAsked = TypeVar("ToBeAsked")
"""What a stage is about to ask about a partition."""
Made = TypeVar("Made")
"""What it makes of a partition."""


class RolesConfig(AskingConfig):
    """In which snapshot models are asked, and what that may cost: in all, of a model, and of what models are asked as."""

    role_budgets: dict[str, dict[str, float]] = Field(
        default={},
        description="By role (candidate, judge, embedder, analyst), what the run may use of models in it: max_cost_usd, max_calls.",
    )

    def budgets_of(self, models: Sequence[ModelSpec]) -> dict[str, Budget]:
        """By model name: what the models files say, and over it what the run says."""
        return {spec.name: spec.budget for spec in models} | self.budgets_of_models

    @property
    def budgets_of_roles(self) -> dict[str, Budget]:
        if unknown := sorted(set(self.role_budgets) - set(ROLES)):
            raise ConfigError(f"role_budgets: {', '.join(unknown)}; allowed: {', '.join(ROLES)}")
        return checked_budgets("role_budgets", self.role_budgets)


def models_of(store: Store) -> Models:
    """The shipped models, and those of DTEF_MODELS."""
    return known_models(store.settings, COMPUTED_MODELS)


@contextmanager
def asking(
    context: dg.AssetExecutionContext,
    store: Store,
    config: RolesConfig,
    specs: Sequence[ModelSpec],
    expected: Mapping[str, int],
    *,
    daily: Mapping[str, DailyBudget] | None = None,
    unpriced: Collection[str] = (),
) -> Iterator[Ask]:
    """Has requests answered, with the providers' places held, the budgets of the run, and a display of what is `expected` by model name.

    `daily`: by role, what it may cost on a day; `unpriced`: models that are asked under a limit in dollars though their price is not known.
    """
    command = command_of(context.run)
    with (
        provider_pools(context.instance, context.run, specs, context.log.info),
        store.asking(
            context.log.info,
            expected,
            config.budget,
            config.budgets_of(specs),
            command,
            config.budgets_of_roles,
            of_days=daily,
            unpriced=unpriced,
        ) as ask,
    ):
        yield ask


def groups(plans: Sequence[ToBeAsked], sizes: Sequence[int], most: int) -> Iterator[list[ToBeAsked]]:
    """Plans in their order, in groups whose sizes come to at most so much: small partitions are asked together, a larger one alone."""
    group: list[ToBeAsked] = []
    held = 0
    for plan, size in zip(plans, sizes, strict=True):
        if group and held + size > most:
            yield group
            group, held = [], 0
        group.append(plan)
        held += size
    if group:
        yield group


def made_at_once(group: Sequence[ToBeAsked], made: Callable[[Sequence[ToBeAsked]], dict[str, Made]]) -> dict[str, Made]:
    """What is made of a group of partitions in one go, by key: all are asked at once, so that what is slow is waited for once.

    Nothing where the group is one partition, or where one of several cannot be asked or read: each is then tried by itself, so that what is
    wrong is told of that one. Nothing is asked twice by that: what was answered is stored.
    """
    if len(group) < 2:
        return {}
    try:
        return made(group)
    except Exception:
        return {}
