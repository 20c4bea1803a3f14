"""What roll-ups of families return: tables in the warehouse, or pages in a folder of it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import dagster as dg
import duckdb
import pyarrow as pa

from assets.stage.resources import Store
from dtef_pipeline.errors import WarehouseError
from resources.warehouse import part_of_family
from resources.written_pages import WrittenPages, write_pages


def require_made(store: Store, table: str, of: str, command: str) -> None:
    """Raises WarehouseError where the table has no rows. `of`: whose stages make it; `command`: what else does."""
    if not store.warehouse.tables([table]):
        raise WarehouseError(f"no {table} yet: materialize the stages of a {of} first, or `{command}`")


def published(store: Store, tables: Mapping[str, pa.Table], *, family: str = "", **metadata: Any) -> dg.MaterializeResult[Any]:
    """Write the tables, of which the first is the asset's; what the asset returns. `family`: whose part of tables over all families it is."""
    for name, rows in tables.items():
        store.warehouse.write(name, rows, **part_of_family(name, family))
    store.warehouse.refresh_database()
    first, *others = tables
    counts = {"dagster/row_count": len(tables[first]), **{f"{name}_rows": len(tables[name]) for name in others}}
    return dg.MaterializeResult(metadata={**counts, **metadata})


def published_pages(
    store: Store,
    name: str,
    pages: Callable[[duckdb.DuckDBPyConnection], Iterable[tuple[str, str]]],
    only: Collection[str],
    told: Callable[[Mapping[str, int]], Mapping[str, Any]] = lambda _: {},
) -> dg.MaterializeResult[Any]:
    """Write pages into the folder `name` of the warehouse; what the asset returns.

    `pages`: (file name, HTML) of each, made of the tables `only`; `told`: what else is said of them, by the bytes of each.
    """
    folder = f"{store.warehouse.root}/{name}"

    def write(connection: duckdb.DuckDBPyConnection) -> WrittenPages:
        return write_pages(store.warehouse.fs, folder, pages(connection), store.warehouse.put)

    written = store.warehouse.query(write, only=only)
    return dg.MaterializeResult(
        metadata={
            "path": dg.MetadataValue.path(f"{folder}/index.html"),
            "pages": len(written.sizes),
            "bytes": sum(written.sizes.values()),
            **told(written.sizes),
            "removed": len(written.removed),
        }
    )
