"""What a family hands in to have its scores watched for drift."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.keys import Keys


@dataclass(frozen=True, slots=True)
class Subject:
    """A family's key columns, its tables of drift, and the words that people read about them. The examples are as in `Keys`.

    Tables name the parts of what was asked by the words of the keys: MODEL_DRIFT has the columns `suites`, `n_blueprints` and `n_tasks`, if
    those are the levels of the space and the noun for an item. The column `moved` names items by that noun.
    """

    keys: Keys
    checks: pa.Schema
    """DRIFT_CHECKS: one row per series within a partition."""
    models: pa.Schema
    """MODEL_DRIFT: one row per series over all partitions."""
    timeline: pa.Schema
    """DRIFT_SERIES: one row per snapshot of a series over all partitions."""
    computed: str
    """SQL that is true in rows which no model was asked for: `starts_with(model, 'baseline/')`."""
    in_order: Callable[[str], Any]
    """Sort key of the values of the space's first level."""
    truth: str
    """The kind of change when items are scored against something else: `"rubric"`."""
    truths: str
    """What items are scored against, as people call it: `"rubrics"`."""
    clusters: Callable[[duckdb.DuckDBPyConnection], pd.DataFrame]
    """What items hang together, given a connection to the tables: `cluster` of each `Keys.shared_item`. One that has no row is by itself."""
    way: str
    """The way of asking, in words around the values of its columns: `"system {system}"`."""
    apart: str = "false"
    """SQL of the space's last level that is true in partitions which no verdict is about; `false`: there are none."""
    unlike: str = "asked something else"
    """What a snapshot did that cannot be compared with the others."""
    joint: str = " at "
    """What stands in a sentence between a series and its way of asking."""

    def asked(self, row: Mapping[str, Any]) -> str:
        """The way of asking of a row: `system 2`."""
        return self.way.format_map(row)

    def at(self, row: Mapping[str, Any]) -> str:
        """The same, to follow the name of a series: ` at system 2`."""
        return f"{self.joint}{self.asked(row)}"


def clusters_by_name(clusters: pd.DataFrame, keys: Keys) -> dict[str, str]:
    """The clusters, as of `Subject.clusters`, by what an item is called whatever the partition: `first level/item`."""
    first, item = keys.shared_item
    return dict(
        zip(clusters[first].astype(str) + "/" + clusters[item].astype(str), clusters["cluster"].astype(str), strict=True)
    )
