"""A family's partitions, and the columns by which its tables are grouped, joined and ordered: written once per family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dtef_pipeline.identity import partition_key, split_partition_key


@dataclass(frozen=True, slots=True)
class Space:
    """The partitions of a family: each has a value of a first and of a second level, such as a suite and one of its blueprints.

    The levels are columns of the family's tables, folders of the warehouse, and the two parts of a partition's key. Where
    partitions have one level alone, the key is its value.
    """

    name: str
    """What the partitions definition is called in Dagster."""
    first: str
    second: str
    """Empty: there is no second level."""
    order: Callable[[str], Any]
    """Sort key of the values of the first level."""

    @property
    def last(self) -> str:
        """The level that tells partitions apart: the second, or the first where it is the only one."""
        return self.second or self.first

    def key(self, first: str, second: str) -> str:
        """The key of a partition of two levels: `first/second`."""
        return partition_key(first, second)

    def split(self, key: str) -> tuple[str, str]:
        """(value of the first level, value of the second level) of a partition's key."""
        return split_partition_key(key)

    def levels(self, key: str) -> dict[str, str]:
        """The value of each level, by the level's name: as the warehouse takes them to find the partition."""
        if not self.second:
            return {self.first: key}
        first, second = self.split(key)
        return {self.first: first, self.second: second}


MODEL = ("model", "model_variant")
"""Who was asked: a model by its name, and with all its settings."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The key columns of one family. The examples are of a family that sets tasks, which stand in blueprints, which stand in suites."""

    space: tuple[str, str]
    """The two levels of a partition: `("suite", "blueprint")`."""
    item: str
    """What is asked in a partition: `"task_id"`. The same item may stand in several partitions of one first level."""
    noun: str
    """What people call an item, also in names of columns such as `n_tasks`: `"task"`."""
    asked: tuple[str, ...]
    """Columns that describe how an item is requested. The first one is named where results are distinguished: `("system", "temperature")`."""
    cluster: str
    """What results are independent by: `"cluster"`, which is equal in rows of tasks that hang together, in all blueprints and suites."""
    cluster_noun: str = "cluster"
    """What people call a cluster, also in names of columns such as `n_clusters`: `"topic"`."""
    left_out: str | None = None
    """A column that is true in rows that are no fair test, which drift and clean boards leave out; None: there are none."""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The breakdowns of boards, by name: `{"overall": (), "blueprint": ("blueprint", "author")}`."""
    score_again: str = "score them again"
    """What messages advise for scores that an earlier version of the software made: `"score those suites again with ..."`."""

    @property
    def pair(self) -> tuple[str, ...]:
        """One item in one partition."""
        return (*self.space, self.item)

    @property
    def cell(self) -> tuple[str, ...]:
        """A pair, asked in one way: what all models are asked alike."""
        return (*self.pair, *self.asked)

    @property
    def row(self) -> tuple[str, ...]:
        """A cell as one model answered it in one snapshot."""
        return (*self.cell, *MODEL, "snapshot")

    @property
    def series(self) -> tuple[str, ...]:
        """A model asked in one way, over all partitions and snapshots: a line of a board, a series of drift."""
        return (*MODEL, *self.asked)

    @property
    def shared_item(self) -> tuple[str, str]:
        """An item in all partitions of a first level together."""
        return (self.space[0], self.item)

    @property
    def tested_columns(self) -> tuple[str, ...]:
        """What two snapshots must have in common to be compared: what was asked, and what the response is scored against and by."""
        return (*self.pair, "prompt_id", "truth_id", "metric")

    @property
    def described(self) -> tuple[str, ...]:
        """Columns that breakdowns group by and that tell no rows apart: `("author",)`."""
        named = (name for columns in self.groups.values() for name in columns)
        return tuple(dict.fromkeys(name for name in named if name not in self.pair))
