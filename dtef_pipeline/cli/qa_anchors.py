"""What `dtef qa anchors` does; the words are in `dtef_pipeline/cli/qa_anchors_group.py`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.asking.snapshot_label import require_safe
from dtef_pipeline.cli.left_out import open_warehouse, reads_tables, say_files
from dtef_pipeline.cli.ready import check_home_path, dagster_instance
from dtef_pipeline.cli.rubric_budgets import budgets_given, with_owners
from dtef_pipeline.cli.rubric_run import say_used
from dtef_pipeline.cli.terminal_width import say, terminal_fit
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.qa.anchor_tables import QA_JUDGE_DRIFT
from dtef_pipeline.qa.arbiter import NOBODY
from dtef_pipeline.report.column_lines import column_lines
from dtef_pipeline.report.terminal import columns_that_fit, intervals_of, render
from dtef_pipeline.tables import description
from dtef_pipeline.text.counted import counted
from resources.gateway.progress import kept_terminal
from resources.known_models import known_models
from resources.settings import Settings
from resources.table_reader import TableReader

_ANCHORS_STAGE = "qa_anchors"
_OF_EACH_JUDGE = (
    "judge_model",
    "evaluator",
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
class QaAnchorOptions:
    """Options of `dtef qa anchors`."""

    snapshot: str = "base"
    n: int = 50
    seed: int = 0
    judges_file: Path | None = None
    judge: str | None = None
    daily_budget: float | None = None
    max_cost_usd: tuple[str, ...] = ()
    max_calls: tuple[str, ...] = ()

    def config(self) -> dict[str, dict[str, Any]]:
        """Run configuration by asset name."""
        judges = {
            "judges_file": self.judges_file and str(self.judges_file),
            "judge": self.judge,
            "daily_budget": self.daily_budget,
        }
        given = {name: value for name, value in judges.items() if value is not None}
        asked = {"snapshot": self.snapshot, "n": self.n, "seed": self.seed}
        return {_ANCHORS_STAGE: {**asked, **given, **budgets_given(self.max_cost_usd, self.max_calls)}}


def run(options: QaAnchorOptions) -> int:
    """The exit code: 1 where it failed."""
    warehouse, settings = open_warehouse(), Settings.from_environment()
    check_home_path(settings)
    require_safe(options.snapshot)
    if options.judge == NOBODY:
        raise ConfigError("--judge none: allowed: a model, since anchors are there to be judged")
    if not warehouse.values("qa_judgements", "suite") and not len(warehouse.read_or_empty("qa_anchor_items")):
        raise WarehouseError("nothing to judge again: no judged answer; `dtef qa run` with a judge makes some")
    models = known_models(settings, COMPUTED_MODELS)
    if options.judge:
        models.resolve([options.judge])
    config = with_owners(options, set(models.specs), models).config()
    with kept_terminal():
        from assets.launch import materialize
        from assets.stage.shared_gateway import command

        with dagster_instance() as instance, command([]) as running:
            outcome = materialize(instance, [_ANCHORS_STAGE], [], config, running.tags)
            used = running.gateway.used if running.gateway else {}
    say_files(outcome)
    say_used(used)
    for failure in outcome.failures:
        say(f"error: {failure}", err=True)
    if outcome.failures:
        return 1
    rows = warehouse.read(_ANCHORS_STAGE, columns=["anchor", "score"], snapshot=options.snapshot)
    missing = f", {rows['score'].null_count:,} without a score" if rows["score"].null_count else ""
    kept = len(set(rows["anchor"].to_pylist()))
    click.echo(f"{counted(kept, 'anchor')}, {counted(len(rows), 'judgement')} in snapshot {options.snapshot}{missing}")
    say("`dtef qa anchors --show` says whether the judge has moved")
    return 0


@reads_tables
def show(reader: TableReader, output: str) -> None:
    """One line per judge and evaluator."""
    from dtef_pipeline.qa.anchored_answers import qa_judge_drift_rows

    judged = reader.rows(_ANCHORS_STAGE)
    if not len(judged):
        raise WarehouseError(f"no {_ANCHORS_STAGE} in {reader.warehouse.root} yet: `dtef qa anchors` makes them")
    frame = qa_judge_drift_rows(judged).to_pandas()
    if output != "table":
        click.echo(render(frame, output))
        return
    shown = frame.assign(interval=intervals_of(frame, "shift", ("shift_low", "shift_high")))
    columns = [name for name in _OF_EACH_JUDGE if shown[name].notna().any()]
    fit = terminal_fit(["judge_model", "evaluator", "verdict", "shift"], ["latest_snapshot", "reason"])
    click.echo(render(shown, "table", columns=columns, fit=fit))
    meanings = {column.name: description(column) for column in QA_JUDGE_DRIFT} | {"interval": "95 % interval of shift"}
    click.echo(column_lines(columns_that_fit(shown, columns, None, fit), meanings, fit.width))
