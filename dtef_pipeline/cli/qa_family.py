"""What the commands that take `--family` do with `--family qa`: each is the function of the command's name."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from dtef_pipeline.cli import qa_board, qa_report, qa_run
from dtef_pipeline.cli.family_drift import WatchedFamily, drift_of_models
from dtef_pipeline.cli.opened_warehouse import reads_tables
from dtef_pipeline.cli.spent_by_role import COUNTED_USAGE, spent_by
from dtef_pipeline.cli.written_report import folder_given, refuse_snapshot
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.qa.anchored_answers import qa_judge_drift_rows
from dtef_pipeline.qa.netted_scores import moved_judges, net_of_judge
from dtef_pipeline.qa.report.pages import QA_PAGES_FOLDER
from dtef_pipeline.qa.report.terms import QA_NAMES
from dtef_pipeline.qa.result_views import QaView
from dtef_pipeline.qa.watched_scores import QA_DRIFT_READS, qa_watched_drift
from dtef_pipeline.survey.boards.meanings import COST_COLUMNS
from resources.warehouse import Warehouse

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


def report(out: Path, snapshot: str | None) -> None:
    refuse_snapshot(snapshot)
    qa_report.report(folder_given(out, QA_PAGES_FOLDER))


def rollup() -> None:
    sys.exit(qa_run.rollup())


@reads_tables
def costs(warehouse: Warehouse, by: Sequence[str], output: str) -> None:
    qa_board.require_qa_table(warehouse, "qa_costs")
    frame = warehouse.rows("qa_costs").to_pandas()
    if not len(frame):
        raise WarehouseError("nothing to show: no model was asked; `dtef qa run --model MODEL` asks")
    frame = spent_by(frame, by or _QA_COSTS_BY, output)
    qa_board.print_qa_view(_SPENT_VIEW, frame, output, {"cost": COST_COLUMNS["cost"]})


def drift(by: str, since: Sequence[str], fail_on: str | None, output: str) -> None:
    if by == "part" and (given := "--fail-on" if fail_on else "--since" if since else ""):
        raise ConfigError(f"{given} with --by part: allowed with --by model; a part alone may have too few items")
    sys.exit(drift_of_models(_OF_QA, since, fail_on, output) if by == "model" else _drift_of_parts(output))


def _qa_checks(warehouse: Warehouse, options: WatchOptions) -> pa.Table:
    """QA_MODEL_DRIFT."""
    found = warehouse.query(lambda connection: qa_watched_drift(connection, options), only=QA_DRIFT_READS)
    return net_of_judge(found.checks, warehouse.rows("qa_anchors"), options)


def _of_judges(warehouse: Warehouse, options: WatchOptions, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What the judge's drift has to do with that of models, and the judges that moved."""
    for row in rows:
        if row["told_of_judges"]:
            yield f"{row['model']}, {row['metric']}: {row['told_of_judges']}"
    yield from moved_judges(qa_judge_drift_rows(warehouse.rows("qa_anchors"), options).to_pylist())


_OF_QA = WatchedFamily("qa", QA_NAMES, _qa_checks, _of_judges, "dtef qa run")


@reads_tables
def _drift_of_parts(warehouse: Warehouse, output: str) -> int:
    """What the documented rule says of each part, the largest gap first; the exit code."""
    qa_board.require_qa_table(warehouse, "qa_drift")
    frame: pd.DataFrame = warehouse.rows("qa_drift").to_pandas()
    if not len(frame):
        raise WarehouseError("nothing to show: drift is looked for at temperature 0, and nothing is scored at it")
    frame = frame.sort_values(
        ["gap", "suite", "part", "model"], ascending=[False, True, True, True], na_position="last", kind="stable"
    )
    if output == "table":
        frame = frame.assign(note=frame["reason"].where(frame["gap"].isna(), ""))
    qa_board.print_qa_view(_RULE_VIEW, frame, output)
    return 0
