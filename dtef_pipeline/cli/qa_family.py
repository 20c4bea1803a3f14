"""What the commands that take `--family` do with `--family qa`: each is the function of the command's name."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pandas as pd

from dtef_pipeline.cli import qa_board, qa_report
from dtef_pipeline.cli.board_table import render_drift
from dtef_pipeline.cli.drift_exit import exit_code
from dtef_pipeline.cli.left_out import reads_tables
from dtef_pipeline.cli.spent_by_role import COUNTED_USAGE, spent_by
from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.cli.written_report import folder_given
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.qa.moved_judges import moved_judges
from dtef_pipeline.qa.report.pages import QA_PAGES_FOLDER
from dtef_pipeline.qa.report.terms import QA_NAMES
from dtef_pipeline.qa.result_tables import QA_MODEL_DRIFT
from dtef_pipeline.qa.result_views import QaView
from dtef_pipeline.qa.watched_scores import QA_WATCHED, QA_WATCHED_KEYS
from dtef_pipeline.report.terminal import render
from dtef_pipeline.survey.boards.meanings import COST_COLUMNS, DRIFT
from dtef_pipeline.tables import description
from resources.table_reader import TableReader

_ASK_QA_AGAIN = (
    "To have something to compare, ask the same again: the same `dtef qa run` on another day, with that day as --snapshot (such as "
    "2026-01-31). Only responses at temperature 0 are compared."
)
_QA_COSTS_BY = ("role", "suite", "evaluator", "model")
_SPENT_VIEW = QaView(
    "costs",
    "qa_costs",
    "",
    (*_QA_COSTS_BY, "model_variant", *COUNTED_USAGE, "cost"),
    ("role", "model", "model_variant", "cost"),
    ("prompt_tokens", "completion_tokens", "calls"),
)
_RULE_VIEW = QaView(
    "part",
    "qa_drift",
    "",
    (
        *("suite", "part", "model", "condition", "metric", "flagged", "gap", "lowest", "lowest_snapshot"),
        *("highest", "highest_snapshot", "n_snapshots", "n_items"),
    ),
    ("part", "model", "flagged", "gap"),
    ("n_items", "n_snapshots", "condition", "lowest", "highest"),
    who=("suite", "part", "model"),
)


def leaderboard(by: str, output: str) -> None:
    qa_board.show(by, (), output)


def report(out: Path) -> None:
    qa_report.report(folder_given(out, QA_PAGES_FOLDER))


@reads_tables
def costs(reader: TableReader, by: Sequence[str], output: str) -> None:
    qa_board.require_qa_table(reader, "qa_costs")
    frame = reader.rows("qa_costs").to_pandas()
    if not len(frame):
        raise WarehouseError("nothing to show: no model was asked; `dtef qa run --model MODEL` asks")
    frame = spent_by(frame, by or _QA_COSTS_BY, output)
    qa_board.print_qa_view(_SPENT_VIEW, frame, output, {"cost": COST_COLUMNS["cost"]})


def drift(by: str, fail_on: str | None, output: str) -> None:
    if by == "part" and fail_on:
        raise ConfigError("--fail-on with --by part: allowed with --by model; a part alone may have too few items")
    sys.exit(_drift_of_models(fail_on, output) if by == "model" else _drift_of_parts(output))


@reads_tables
def _drift_of_models(reader: TableReader, fail_on: str | None, output: str) -> int:
    """The exit code."""
    qa_board.require_qa_table(reader, "qa_model_drift")
    checks = reader.rows("qa_model_drift")
    rows = checks.to_pylist()
    if not rows:
        raise WarehouseError("nothing to show: no response is scored; `dtef qa run --snapshot LABEL` asks and scores")
    if output != "table":
        click.echo(render(checks.to_pandas(), output))
        return exit_code(rows, fail_on, QA_WATCHED)
    told = {name: description(QA_MODEL_DRIFT.field(name)) for name in QA_WATCHED_KEYS.asked}
    click.echo(render_drift(checks, QA_NAMES, {**DRIFT, **told}))
    if all(row["verdict"] is None for row in rows):
        say(f"\n{_ASK_QA_AGAIN}")
    for row in rows:
        if row.get("told_of_judges"):
            say(f"{row['model']}, {row['metric']}: {row['told_of_judges']}")
    for line in moved_judges(reader.rows("qa_judge_drift").to_pylist()):
        say(line)
    return exit_code(rows, fail_on, QA_WATCHED)


@reads_tables
def _drift_of_parts(reader: TableReader, output: str) -> int:
    """What the documented rule says of each part, the largest gap first; the exit code."""
    qa_board.require_qa_table(reader, "qa_drift")
    frame: pd.DataFrame = reader.rows("qa_drift").to_pandas()
    if not len(frame):
        raise WarehouseError("nothing to show: drift is looked for at temperature 0, and nothing is scored at it")
    frame = frame.sort_values(
        ["gap", "suite", "part", "model"], ascending=[False, True, True, True], na_position="last", kind="stable"
    )
    if output == "table":
        frame = frame.assign(note=frame["reason"].where(frame["gap"].isna(), ""))
    qa_board.print_qa_view(_RULE_VIEW, frame, output)
    return 0
