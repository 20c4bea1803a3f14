"""`dtef costs`: the calls of language models and their cost, for one family or all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.named_boards import TableLayout
from dtef_pipeline.cli.terminal import print_rows
from dtef_pipeline.cli.warehouse_access import reads_tables, warn_stale
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.families import FAMILIES
from dtef_pipeline.family.record import Family
from dtef_pipeline.tables import COSTS, description
from dtef_pipeline.text.amounts import format_row_cost
from resources.warehouse import Warehouse

_COST_COUNTS = ("answered", "failed", "budget_stopped", "calls", "prompt_tokens", "completion_tokens", "unpriced")
_BY_ANY_FAMILY: Mapping[str, str] = {
    **{name: name for name in ("family", "role", "model", "snapshot")},
    "variant": "model_variant",
}
"""The columns of COSTS that `--by` accepts with every family, by option value."""
SHOWN_COST = {"cost": description(COSTS.field("cost_usd")).partition(";")[0]}
"""Descriptions of columns that `dtef costs` shows but COSTS does not have."""


@reads_tables
def costs(warehouse: Warehouse, family: str | None, by: Sequence[str], snapshot: str | None, output: str) -> None:
    """Print calls and costs. Raises ConfigError if a column or snapshot is unknown, and WarehouseError if no family has costs."""
    families = [record for record in FAMILIES if family in (None, record.name)]
    columns = _map_columns(families[0]) if family else _BY_ANY_FAMILY
    by = by or (families[0].calls.summed_by if family else ("family", "role"))
    if unknown := [name for name in by if name not in columns]:
        scope = f"--family {family}" if family else "all families"
        raise ConfigError(f"--by {', '.join(unknown)} does not work with {scope}; choose from {', '.join(columns)}")
    frame = _read_cost_rows(warehouse, families, family)
    snapshots = sorted(frame["snapshot"].dropna().unique())
    if snapshot and snapshot not in snapshots:
        raise ConfigError(f"no costs of snapshot {snapshot}; there are: {', '.join(snapshots) or 'none'}")
    frame = frame[frame["snapshot"] == snapshot] if snapshot else frame
    if not len(frame) and output == "table":
        click.echo("no language model was called, and baselines cost nothing")
        return
    named = {"model_variant" if name == "variant" else name: columns[name] for name in by}
    totals = _sum_by_columns(frame.rename(columns={column: name for name, column in named.items()}), list(named))
    table = totals if output != "table" else _format_costs(totals)
    counts = ("answered", "failed", "budget_stopped", "calls", "prompt_tokens", "completion_tokens")
    layout = TableLayout(
        (*named, *counts, "cost"), (*named, "cost"), ("prompt_tokens", "completion_tokens", "budget_stopped", "calls")
    )
    print_rows(layout, table, output, (), "costs")


def _format_costs(totals: pd.DataFrame) -> pd.DataFrame:
    """Return the rows for people: `cost` in words, and no tokens if the stored responses do not state them."""
    is_unstated = (totals["answered"] > 0) & (totals["prompt_tokens"] == 0)
    tokens = {name: totals[name].astype("Int64").mask(is_unstated) for name in ("prompt_tokens", "completion_tokens")}
    return totals.assign(cost=[format_row_cost(row) for row in totals.to_dict("records")], **tokens)


def _map_columns(family: Family) -> dict[str, str]:
    """Return the columns of COSTS by the family's names for them."""
    space = family.space
    levels = {space.first: "first_level", space.second: "second_level", family.calls.purpose: "purpose"}
    return {**_BY_ANY_FAMILY, **{name: column for name, column in levels.items() if name}}


def _read_cost_rows(warehouse: Warehouse, families: Sequence[Family], family: str | None) -> pd.DataFrame:
    """Return the rows of the families that have costs. Warns if a family's scores are newer."""
    names = warehouse.values("costs", "family")
    records = [record for record in families if record.name in names]
    if not records:
        run = "`dtef run`" if family in (None, "survey") else f"`dtef {family} run`"
        roll_up = f"`dtef {family or 'survey'} board --refresh`"
        raise WarehouseError(
            f"no costs{f' of {family}' if family else ''} in {warehouse.root} yet: {run} or {roll_up} makes it"
        )
    for record in records:
        warn_stale(warehouse, "costs", record.scores_table, f"dtef {record.name} board --refresh", record.name)
    parts = [warehouse.rows("costs", family=record.name) for record in records]
    frame: pd.DataFrame = pa.concat_tables(parts).to_pandas()
    return frame


def _sum_by_columns(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Return the rows added up by these columns, the most expensive first.

    If snapshot, role or family is among the columns, the rows are grouped by it: snapshots sorted, roles and families in the order of
    `frame`.
    """
    groups = frame.groupby(names, sort=False, dropna=False)
    dollars = groups[["cost_usd", "unknown_cost_usd_most"]].sum(min_count=1)
    totals = groups[[*_COST_COUNTS, "unknown_cost_attempts"]].sum().join(dollars).reset_index()
    totals = totals.sort_values("cost_usd", ascending=False, na_position="last", kind="stable", ignore_index=True)
    for name in [column for column in ("snapshot", "role", "family") if column in names]:
        values = sorted(frame[name].dropna().unique()) if name == "snapshot" else frame[name].unique()
        place = {value: index for index, value in enumerate(values)}
        totals = totals.sort_values(name, key=lambda values, place=place: values.map(place), kind="stable", ignore_index=True)
    return totals
