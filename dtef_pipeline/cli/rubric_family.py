"""What the commands that take `--family` do with `--family rubric`: each is the function of the command's name."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from dtef_pipeline.cli import rubric_board, rubric_read, rubric_run
from dtef_pipeline.cli.family_drift import WatchedFamily, drift_of_models
from dtef_pipeline.cli.opened_warehouse import reads_tables
from dtef_pipeline.cli.spent_by_role import COUNTED_USAGE, spent_by
from dtef_pipeline.cli.written_report import folder_given
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.report.names import Names
from dtef_pipeline.rubric.board_views import RubricView
from dtef_pipeline.rubric.watched_drift import DRIFT_READS, WATCHED, net_drift, watched_drift
from dtef_pipeline.survey.boards.meanings import COST_COLUMNS
from resources.warehouse import Warehouse

RUBRIC_NAMES = Names(
    place={},
    asked={"judges": "Judged by"},
    usual={},
    whole_way=WATCHED.way,
    part="blueprint",
    cell="cell",
    reference="",
    subject=WATCHED,
)
"""What rubrics call the things that drift is about."""
_COSTS_BY = ("role", "model")
_COSTS_VIEW = RubricView(
    "costs",
    "rubric_costs",
    "",
    ("role", "model", "model_variant", *COUNTED_USAGE, "cost"),
    ("role", "model", "model_variant", "cost"),
    ("prompt_tokens", "completion_tokens", "calls"),
)
_DRIFT_VIEW = RubricView(
    "blueprint",
    "rubric_drift",
    "",
    (
        *("blueprint", "model", "flagged", "investigate", "gap", "lowest", "lowest_snapshot"),
        *("highest", "highest_snapshot", "n_snapshots", "n_items"),
    ),
    ("blueprint", "model", "flagged", "gap"),
    ("n_items", "n_snapshots", "lowest", "highest"),
    who=("blueprint", "model"),
)


def leaderboard(by: str, output: str) -> None:
    rubric_board.show(by, (), output)


def report(out: Path, snapshot: str | None) -> None:
    rubric_read.report(folder_given(out, "rubric_report"), snapshot)


def rollup() -> None:
    sys.exit(rubric_run.rollup())


@reads_tables
def costs(warehouse: Warehouse, by: Sequence[str], output: str) -> None:
    rubric_board.require_rolled_up(warehouse, "rubric_costs")
    frame = warehouse.rows("rubric_costs").to_pandas()
    if not len(frame):
        raise WarehouseError("nothing to show: no model was asked of a rubric; `dtef rubric run` asks")
    frame = spent_by(frame, by or _COSTS_BY, output)
    rubric_board.print_view(_COSTS_VIEW, frame, output, told={"cost": COST_COLUMNS["cost"]})


def drift(by: str, since: Sequence[str], fail_on: str | None, output: str) -> None:
    if by == "blueprint" and (given := "--fail-on" if fail_on else "--since" if since else ""):
        raise ConfigError(f"{given} with --by blueprint: allowed with --by model; a blueprint alone has too few prompts")
    sys.exit(drift_of_models(_OF_RUBRICS, since, fail_on, output) if by == "model" else _drift_of_blueprints(output))


def _rubric_checks(warehouse: Warehouse, options: WatchOptions) -> pa.Table:
    """RUBRIC_MODEL_DRIFT."""
    found = warehouse.query(lambda connection: watched_drift(connection, options), only=DRIFT_READS)
    return net_drift(found.checks, warehouse.rows("rubric_anchors").to_pandas(), options)


def _beside_rows(warehouse: Warehouse, options: WatchOptions, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the judges' drift has to do with that of models."""
    return [f"{row['model']}: {row['told_of_judges']}" for row in rows if row["told_of_judges"]]


_OF_RUBRICS = WatchedFamily("rubric", RUBRIC_NAMES, _rubric_checks, _beside_rows, "dtef rubric run")


@reads_tables
def _drift_of_blueprints(warehouse: Warehouse, output: str) -> int:
    """What the documented rule says of each blueprint, the largest gap first; the exit code."""
    rubric_board.require_rolled_up(warehouse, "rubric_drift")
    frame: pd.DataFrame = warehouse.rows("rubric_drift").to_pandas()
    if not len(frame):
        raise WarehouseError("nothing to show: drift is looked for at temperature 0, and nothing is scored at it")
    frame = frame.sort_values(["gap", "blueprint", "model"], ascending=[False, True, True], na_position="last", kind="stable")
    if output == "table":
        frame = frame.assign(note=frame["reason"].where(frame["gap"].isna(), ""))
    rubric_board.print_view(_DRIFT_VIEW, frame, output)
    return 0
