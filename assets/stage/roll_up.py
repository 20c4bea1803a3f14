"""Shared parts of families' roll-ups: their results in the warehouse, and what models cost."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa

from assets.stage.partitions import markdown, roll_up
from assets.stage.resources import Store
from dtef_pipeline.boards.costs import costs
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.family.record import Family
from resources.warehouse import build_family_levels

_SHOWN_COSTS = (
    *("role", "first_level", "purpose", "model", "answered", "failed", "budget_stopped", "calls", "prompt_tokens"),
    *("completion_tokens", "cost_usd", "unpriced", "unknown_cost_attempts", "unknown_cost_usd_most"),
)


def require_scored(store: Store, family: Family, table: str = "") -> None:
    """Raise WarehouseError if a table of the family has no rows, by default its scores."""
    table = table or family.scores_table
    if not store.warehouse.tables([table]):
        raise WarehouseError(f"no {table} yet: materialize the stages of a {family.part} first, or `dtef {family.name} run`")


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


def build_costs_asset(family: Family, deps: Sequence[str], group: str = "") -> dg.AssetsDefinition:
    """Return the asset `FAMILY_costs`. `deps`: the stages that call models; `group`: by default the family's name."""
    name, reads = family.name, [source.table for source in family.calls.tables]

    @dg.asset(
        name=f"{name}_costs",
        deps=[dg.AssetKey(stage) for stage in deps],
        **roll_up("costs", code_version="3", group=group or name),
    )
    def asset(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
        """What language models cost: one row per role, partition, snapshot, purpose and model variant, the most expensive first in each role.

        The family's rows of the table `costs`. A request that several rows share counts once. Responses without a known price are
        counted in `unpriced` and are not in `cost_usd`; `unknown_cost_attempts` counts calls that may have been billed, such as timeouts.
        Baselines and what runs on this machine cost nothing and have no rows.
        """
        if not store.warehouse.tables(reads):
            require_scored(store, family, reads[0])
        responses, unknown, summary = store.responses.responses, store.responses.unknown_costs(), store.responses.summary()
        rows = store.warehouse.query(
            lambda connection: costs(connection, name, family.calls, responses, unknown=unknown, summary=summary), only=reads
        )
        sums = {column: pa.compute.sum(rows[column]).as_py() for column in ("cost_usd", "unpriced")}
        cost_metadata = {column: value for column, value in sums.items() if value is not None}
        return publish_tables(store, {"costs": rows}, family=name, costs=markdown(rows, _SHOWN_COSTS, n=30), **cost_metadata)

    definition: dg.AssetsDefinition = asset
    return definition
