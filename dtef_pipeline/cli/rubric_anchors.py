"""What `dtef rubric anchors` does; the words are in `dtef_pipeline/cli/rubric_labels_group.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from dtef_pipeline.cli.left_out import open_warehouse, reads_tables, say_files
from dtef_pipeline.cli.ready import check_home_path, dagster_instance
from dtef_pipeline.cli.rubric_budgets import budgets_given
from dtef_pipeline.cli.rubric_run import say_used
from dtef_pipeline.cli.terminal_width import say, terminal_fit
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.judging.classes import USUAL_SCALE
from dtef_pipeline.report.column_lines import column_lines
from dtef_pipeline.report.terminal import columns_that_fit, intervals_of, render
from dtef_pipeline.rubric.validity_tables import RUBRIC_JUDGE_DRIFT
from dtef_pipeline.tables import description
from dtef_pipeline.text.counted import counted
from resources.gateway.progress import kept_terminal
from resources.settings import Settings
from resources.table_reader import TableReader

_STEP = "rubric_anchors"
_DRIFT_OF_JUDGES_SHOWN = (
    "judge",
    "verdict",
    "shift",
    "interval",
    "first_snapshot",
    "n_snapshots",
    "n_items",
    "latest_snapshot",
    "reason",
)


@dataclass(frozen=True)
class AnchorOptions:
    """Options of `dtef rubric anchors`."""

    snapshot: str = "base"
    n: int = 200
    seed: int = 0
    judges: tuple[str, ...] = ()
    scale: int = USUAL_SCALE
    max_cost_usd: tuple[str, ...] = ()
    max_calls: tuple[str, ...] = ()

    def config(self) -> dict[str, dict[str, Any]]:
        """Run configuration by asset name."""
        asked = {"snapshot": self.snapshot, "n": self.n, "seed": self.seed, "judges": list(self.judges), "scale": self.scale}
        return {_STEP: {**asked, **budgets_given(self.max_cost_usd, self.max_calls)}}


def run(options: AnchorOptions) -> int:
    """The exit code: 1 where it failed."""
    warehouse = open_warehouse()
    check_home_path(Settings.from_environment())
    with kept_terminal():
        from assets.launch import materialize
        from assets.stage.shared_gateway import command

        with dagster_instance() as instance, command([]) as running:
            outcome = materialize(instance, [_STEP], [], options.config(), running.tags)
            used = running.gateway.used if running.gateway else {}
    say_files(outcome)
    say_used(used)
    for failure in outcome.failures:
        say(f"error: {failure}", err=True)
    if outcome.failures:
        return 1
    rows = warehouse.read(_STEP, columns=["item", "class"], snapshot=options.snapshot)
    missing = rows["class"].null_count
    click.echo(
        f"{counted(len(set(rows['item'].to_pylist())), 'anchor')}, {counted(len(rows), 'judgement')} in snapshot {options.snapshot}"
        + (f", {missing:,} without a class" if missing else "")
    )
    say("`dtef rubric anchors --show` says which judges have moved")
    return 0


@reads_tables
def show(reader: TableReader, output: str) -> None:
    from dtef_pipeline.rubric.anchor_rows import judge_drift_rows

    judged = reader.rows(_STEP)
    if not len(judged):
        raise WarehouseError(f"no {_STEP} in {reader.warehouse.root} yet: `dtef rubric anchors` makes them")
    frame = judge_drift_rows(judged).to_pandas()
    if output != "table":
        click.echo(render(frame, output))
        return
    shown = frame.assign(interval=intervals_of(frame, "shift", ("shift_low", "shift_high")))
    columns = [name for name in _DRIFT_OF_JUDGES_SHOWN if shown[name].notna().any()]
    fit = terminal_fit(["judge", "verdict", "shift"], ["latest_snapshot", "reason"])
    click.echo(render(shown, "table", columns=columns, fit=fit))
    meanings = {column.name: description(column) for column in RUBRIC_JUDGE_DRIFT} | {"interval": "95 % interval of shift"}
    click.echo(column_lines(columns_that_fit(shown, columns, None, fit), meanings, fit.width))
