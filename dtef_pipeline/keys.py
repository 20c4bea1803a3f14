"""A family's partitions, and the columns that group, join and order its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dtef_pipeline.identity import partition_key, split_partition_key


@dataclass(frozen=True, slots=True)
class Space:
    """The partitions of a family: each has a value for a first and a second level, such as a suite and one of its blueprints.

    The levels are columns of the family's tables, folders of the warehouse, and the two parts of a partition key. If
    partitions have only one level, the key is its value.
    """

    name: str
    """Name of the partitions definition in Dagster."""
    first: str
    second: str
    """Name of the second level; empty: there is none."""
    order: Callable[[str], Any]
    """Sort key of the values of the first level."""

    @property
    def last(self) -> str:
        """The level that identifies partitions: the second, or the first if it is the only one."""
        return self.second or self.first

    def key(self, first: str, second: str) -> str:
        """Return the key of a partition of two levels: `first/second`."""
        return partition_key(first, second)

    def split(self, key: str) -> tuple[str, str]:
        """Return (first level, second level) of a partition key."""
        return split_partition_key(key)

    def levels(self, key: str) -> dict[str, str]:
        """Return the value of each level by its name, as the warehouse takes them to find the partition."""
        if not self.second:
            return {self.first: key}
        first, second = self.split(key)
        return {self.first: first, self.second: second}


MODEL = ("model", "model_variant")
"""Columns that identify a model: its name, and its name with all settings."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The key columns of one family. The examples are of a family with tasks in blueprints in suites."""

    space: tuple[str, str]
    """The two levels of a partition: `("suite", "blueprint")`."""
    item: str
    """Columns that identify an item in a partition: `"task_id"`. Several partitions of one first level may have the same item."""
    noun: str
    """Noun for an item, also in column names such as `n_tasks`: `"task"`."""
    asked: tuple[str, ...]
    """Columns that describe how an item is requested. The first one is named where results are distinguished: `("system", "temperature")`."""
    cluster: str
    """Column of the units that are independent of each other: `"cluster"`, which is equal in rows of related tasks, in all blueprints and
    suites."""
    cluster_noun: str = "cluster"
    """Noun for a cluster, also in column names such as `n_clusters`: `"topic"`."""
    left_out: str | None = None
    """A column that is true in rows that are not a fair test; drift and clean boards exclude them. None: there are none."""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The breakdowns of boards, by name: `{"overall": (), "blueprint": ("blueprint", "author")}`."""
    score_again: str = "score them again"
    """Advice in messages about scores of an earlier software version: `"score those suites again with ..."`."""

    @property
    def pair(self) -> tuple[str, ...]:
        """Columns of one item in one partition."""
        return (*self.space, self.item)

    @property
    def cell(self) -> tuple[str, ...]:
        """Columns of a pair in one condition, which all models share."""
        return (*self.pair, *self.asked)

    @property
    def row(self) -> tuple[str, ...]:
        """Columns of one model's answer to a cell in one snapshot."""
        return (*self.cell, *MODEL, "snapshot")

    @property
    def series(self) -> tuple[str, ...]:
        """Columns of a model in one condition over all partitions and snapshots: a row of a board, a series of drift."""
        return (*MODEL, *self.asked)

    @property
    def shared_item(self) -> tuple[str, str]:
        """Columns of an item over all partitions of a first level."""
        return (self.space[0], self.item)

    @property
    def tested_columns(self) -> tuple[str, ...]:
        """Columns in which two compared snapshots must agree: those of the request, of the reference and of the metric."""
        return (*self.pair, "prompt_id", "truth_id", "metric")

    @property
    def described(self) -> tuple[str, ...]:
        """Columns that breakdowns group by but that do not identify rows: `("author",)`."""
        named = (name for columns in self.groups.values() for name in columns)
        return tuple(dict.fromkeys(name for name in named if name not in self.pair))
