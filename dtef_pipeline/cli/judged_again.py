"""What `dtef rubric anchors` and `dtef qa anchors` both do: have stored responses judged again, and show whether a judge has moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import pyarrow as pa

from dtef_pipeline.cli.opened_warehouse import say_skipped
from dtef_pipeline.cli.started_runs import dagster_instance, say_used
from dtef_pipeline.cli.terminal import say, terminal_fit
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.report.column_lines import column_lines
from dtef_pipeline.report.fitting import shown_columns
from dtef_pipeline.report.terminal import intervals_of, render
from dtef_pipeline.tables import description
from dtef_pipeline.text.counted import counted
from resources.gateway.progress import kept_terminal
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    import pandas as pd

_OF_A_JUDGE = ("verdict", "shift", "interval", "first_snapshot", "n_snapshots", "n_items", "latest_snapshot", "reason")


def judge_again(
    warehouse: Warehouse, stage: str, config: Mapping[str, Mapping[str, Any]], snapshot: str, anchor: str, judged: str
) -> bool:
    """Whether the stage ran through; failures are told, or else what the snapshot now holds.

    `anchor`: the column of the stage's table that names what was judged; `judged`: the column that is empty where a judge said nothing.
    """
    with kept_terminal():
        from assets.launch import materialize
        from assets.stage.partitions import SNAPSHOT_TAG
        from assets.stage.shared_gateway import command

        with dagster_instance() as instance, command([]) as running:
            outcome = materialize(instance, [stage], [], config, {**running.tags, SNAPSHOT_TAG: snapshot})
            used = running.gateway.used if running.gateway else {}
    say_skipped(outcome, warehouse)
    say_used(used)
    for failure in outcome.failures:
        say(f"error: {failure}", err=True)
    if outcome.failures:
        return False
    rows = warehouse.read(stage, columns=[anchor, judged], snapshot=snapshot)
    kept, empty = len(set(rows[anchor].to_pylist())), rows[judged].null_count
    missing = f", {empty:,} without a {judged}" if empty else ""
    click.echo(f"{counted(kept, 'anchor')}, {counted(len(rows), 'judgement')} in snapshot {snapshot}{missing}")
    return True


def anchored_rows(warehouse: Warehouse, stage: str, command: str) -> pa.Table:
    """What judges said of the anchors so far. Raises WarehouseError where they were never asked."""
    judged = warehouse.rows(stage)
    if not len(judged):
        raise WarehouseError(f"no {stage} in {warehouse.root} yet: `{command}` makes them")
    return judged


def print_judge_drift(frame: pd.DataFrame, schema: pa.Schema, who: Sequence[str], output: str) -> None:
    """A line per judge. `frame`: rows of the schema; `who`: the columns that name a judge."""
    if output != "table":
        click.echo(render(frame, output))
        return
    shown = frame.assign(interval=intervals_of(frame, "shift", ("shift_low", "shift_high")))
    columns = [name for name in (*who, *_OF_A_JUDGE) if shown[name].notna().any()]
    fit = terminal_fit([*who, "verdict", "shift"], ["latest_snapshot", "reason"])
    click.echo(render(shown, "table", columns=columns, fit=fit))
    meanings = {column.name: description(column) for column in schema} | {"interval": "95 % interval of shift"}
    click.echo(column_lines(shown_columns(columns, fit), meanings, fit.width))
