"""Keys: what tells rows and partitions apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dtef_pipeline.identity import partition_key, split_partition_key


@dataclass(frozen=True, slots=True)
class Space:
    """The partitions of a family: each has a value of a first and of a second level, such as a suite and one of its blueprints.

    The levels are columns of the family's tables, folders of the warehouse, and the two parts of a partition's key.
    """

    name: str
    """What the partitions definition is called in Dagster."""
    first: str
    second: str
    order: Callable[[str], Any]
    """Sort key of the values of the first level."""

    def key(self, first: str, second: str) -> str:
        """The key of a partition: `first/second`."""
        return partition_key(first, second)

    def split(self, key: str) -> tuple[str, str]:
        """(value of the first level, value of the second level) of a partition's key."""
        return split_partition_key(key)

    def levels(self, key: str) -> dict[str, str]:
        """The value of each level, by the level's name: as the warehouse is told where a partition is kept."""
        first, second = self.split(key)
        return {self.first: first, self.second: second}
