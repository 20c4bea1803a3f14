"""The families of other packages: an entry point of the group `dtef.families` names the record of each. Loads nothing heavy."""

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
def plugged_points() -> dict[str, EntryPoint]:
    """By the name of the family, without loading it."""
    return {point.name: point for point in sorted(entry_points(group=FAMILY_GROUP), key=lambda one: one.name)}


def plugged_families(taken: Collection[str]) -> tuple[Family, ...]:
    """The records. `taken`: names of other families.

    Raises ConfigError for one that cannot be loaded, that is no whole family of its entry point's name, or whose name is taken.
    """
    return tuple(_load(point, taken) for point in plugged_points().values())


def _load(point: EntryPoint, taken: Collection[str]) -> Family:
    package = point.dist.name if point.dist else "an unknown package"
    try:
        family: Family = point.load()
    except Exception as error:
        raise ConfigError(f"the family {point.name} of {package} cannot be loaded: {type(error).__name__}: {error}") from error
    if point.name in taken or getattr(family, "name", None) != point.name or family.load is None:
        allowed = (
            f"a Family called {point.name}, with a function that loads files, whose name is none of {', '.join(sorted(taken))}"
        )
        raise ConfigError(f"the family {point.name} of {package}: got {family!r:.80}; allowed: {allowed}")
    return family
