"""Families of other packages: each entry point of the group `dtef.families` names a record. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from dtef_pipeline.errors import ConfigError

if TYPE_CHECKING:
    from dtef_pipeline.family.record import Family

FAMILY_GROUP = "dtef.families"
"""The entry-point group: the name is that of the family, the object its `Family`."""


@cache
def find_plugin_points() -> dict[str, EntryPoint]:
    """Return the entry points by family name, without loading them."""
    return {point.name: point for point in sorted(entry_points(group=FAMILY_GROUP), key=lambda entry: entry.name)}


def load_plugin_families(names: Collection[str]) -> tuple[Family, ...]:
    """Load the family records. `names`: names that are taken by other families.

    Raises ConfigError if a record cannot be loaded, is not a complete family with its entry point's name, or has a name that is taken.
    """
    return tuple(_load(point, names) for point in find_plugin_points().values())


def _load(point: EntryPoint, names: Collection[str]) -> Family:
    from dtef_pipeline.family.record import Family

    package = point.dist.name if point.dist else "an unknown package"
    try:
        family = point.load()
    except Exception as error:
        raise ConfigError(f"the family {point.name} of {package} cannot be loaded: {type(error).__name__}: {error}") from error
    is_whole = isinstance(family, Family) and family.is_assembled and bool(family.space.second) and family.name == point.name
    if point.name in names or not is_whole or not all(name.startswith(f"{point.name}_") for name in family.tables):
        choices = (
            f"a Family called {point.name}, with a function that loads files, a space of two levels, and tables called {point.name}_..., "
            f"whose name is none of {', '.join(sorted(names))}"
        )
        raise ConfigError(f"the family {point.name} of {package}: got {family!r:.80}; allowed: {choices}")
    record: Family = family
    return record
