"""Known models, and batches of partitions, for stages that call models."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from assets.stage.resources import Store
from dtef_pipeline.asking.models import Models
from dtef_pipeline.families import COMPUTED_MODELS
from resources.model_catalog import load_known_models

ToBeAsked = TypeVar("ToBeAsked")
"""A stage's plan for a partition."""


def load_store_models(store: Store) -> Models:
    """Return the shipped models, and those of DTEF_MODELS."""
    return load_known_models(store.settings, COMPUTED_MODELS)


def split_batches(plans: Sequence[ToBeAsked], sizes: Sequence[int], limit: int) -> Iterator[list[ToBeAsked]]:
    """Yield plans in order, in groups of total size up to `limit`; a larger plan has its own group."""
    group: list[ToBeAsked] = []
    total = 0
    for plan, size in zip(plans, sizes, strict=True):
        if group and total + size > limit:
            yield group
            group, total = [], 0
        group.append(plan)
        total += size
    if group:
        yield group
