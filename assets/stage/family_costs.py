"""The roll-up of a family's model costs, defined once for every family."""

from collections.abc import Sequence
from typing import Any

import dagster as dg
import pyarrow as pa

from assets.stage.partitions import markdown, roll_up
from assets.stage.resources import Store
from assets.stage.roll_up import publish_tables, require_made
from dtef_pipeline.boards.costs import costs
from dtef_pipeline.family.record import Family

_SHOWN_COSTS = (
    *("role", "first_level", "purpose", "model", "answered", "failed", "budget_stopped", "calls", "prompt_tokens"),
    *("completion_tokens", "cost_usd", "unpriced", "unknown_cost_attempts", "unknown_cost_usd_most"),
)


def build_costs_asset(family: Family, deps: Sequence[str], command: str = "", group: str | None = None) -> dg.AssetsDefinition:
    """Return the asset `FAMILY_costs`. `deps`: the stages that call models; `command`: runs them; `group`: by default the family's name."""
    name, reads = family.name, [source.table for source in family.calls.tables]

    @dg.asset(
        name=f"{name}_costs",
        deps=[dg.AssetKey(stage) for stage in deps],
        **{**roll_up("costs", code_version="3"), "group_name": group or name},
    )
    def asset(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
        """What language models cost: one row per role, partition, snapshot, purpose and model variant, the most expensive first in each role.

        The family's rows of the table `costs`. A request that several rows share counts once. Responses without a known price are
        counted in `unpriced` and are not in `cost_usd`; `unknown_cost_attempts` counts calls that may have been billed, such as timeouts.
        Baselines and what runs on this machine cost nothing and have no rows.
        """
        if not store.warehouse.tables(reads):
            require_made(store, reads[0], family.part, command or f"dtef {name} run")
        responses, unknown, summary = store.responses.responses, store.responses.unknown_costs(), store.responses.summary()
        rows = store.warehouse.query(
            lambda connection: costs(connection, name, family.calls, responses, unknown=unknown, summary=summary), only=reads
        )
        sums = {column: pa.compute.sum(rows[column]).as_py() for column in ("cost_usd", "unpriced")}
        cost_metadata = {column: value for column, value in sums.items() if value is not None}
        return publish_tables(store, {"costs": rows}, family=name, costs=markdown(rows, _SHOWN_COSTS, n=30), **cost_metadata)

    definition: dg.AssetsDefinition = asset
    return definition
