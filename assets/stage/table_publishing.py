"""Results of families' roll-ups: tables in the warehouse."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import pyarrow as pa

from assets.stage.resources import Store
from dtef_pipeline.errors import WarehouseError
from resources.warehouse import build_family_levels


def require_made(store: Store, table: str, noun: str, command: str) -> None:
    """Raise WarehouseError if the table has no rows. `noun`: the noun for partitions whose stages make it; `command`: an alternative."""
    if not store.warehouse.tables([table]):
        raise WarehouseError(f"no {table} yet: materialize the stages of a {noun} first, or `{command}`")


def publish_tables(
    store: Store, tables: Mapping[str, pa.Table], *, family: str = "", **metadata: Any
) -> dg.MaterializeResult[Any]:
    """Write the tables, the asset's first, and return the asset's result. `family`: its part of tables over all families."""
    for name, rows in tables.items():
        store.warehouse.write(name, rows, **build_family_levels(name, family))
    store.warehouse.refresh_database()
    first, *extras = tables
    counts = {"dagster/row_count": len(tables[first]), **{f"{name}_rows": len(tables[name]) for name in extras}}
    return dg.MaterializeResult(metadata={**counts, **metadata})
