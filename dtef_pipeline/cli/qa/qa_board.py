"""`dtef qa board`, and what questions bring to the commands that take `--family`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from assets.qa.known_suites import known_suites
from dtef_pipeline.boards.served import split_served
from dtef_pipeline.cli.families import CommandFamily, fitting, meanings_of, of_models, require_rolled_up
from dtef_pipeline.cli.opened_warehouse import SERVED_REMEDY, NothingToShowError, reads_tables, say_mixed
from dtef_pipeline.cli.terminal import TableView, print_rows
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.anchored_answers import qa_judge_drift_rows
from dtef_pipeline.qa.netted_scores import moved_judges, net_of_judge
from dtef_pipeline.qa.report.pages import qa_pages
from dtef_pipeline.qa.report.terms import QA_NAMES
from dtef_pipeline.qa.result_tables import QA_BOARDS
from dtef_pipeline.qa.result_views import QA_VIEW_BY_NAME, RETRIEVAL_STAGE_TABLE
from dtef_pipeline.qa.retrieval_means import RETRIEVAL_COUNT, RETRIEVAL_COUNT_TOLD, retrieval_means
from dtef_pipeline.qa.stored_tables import QA_TABLES
from dtef_pipeline.qa.suite_boards import QA_BOARD_READS, qa_boards
from dtef_pipeline.qa.watched_scores import QA_DRIFT_READS, qa_watched_drift
from dtef_pipeline.report.board_view import BoardView
from resources.gateway.progress import waiting
from resources.warehouse import Warehouse


@reads_tables
def show(
    warehouse: Warehouse, by: str, models: Sequence[str], suites: Sequence[str], output: str, *, served: bool = False
) -> None:
    """`served`: whether models that one name stands for have rows of their own."""
    view = QA_VIEW_BY_NAME[by]
    if view.table != RETRIEVAL_STAGE_TABLE:
        require_rolled_up(warehouse, "qa", view.table, "qa_scores")
    rows = _split_boards(warehouse, view) if served else warehouse.rows(view.table)
    frame: pd.DataFrame = rows.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    frame = of_models(frame, models, by)
    if suites:
        frame = _of_suites(frame, suites)
    if view.check:
        frame = frame[frame["check"] == view.check].reset_index(drop=True)
    if not len(frame):
        raise NothingToShowError(f"nothing to show by {by}: it needs {view.needs}")
    if view.table == RETRIEVAL_STAGE_TABLE:
        told = {**meanings_of(view.table), RETRIEVAL_COUNT: RETRIEVAL_COUNT_TOLD}
        print_rows(view, retrieval_means(frame), output, (), told)
    else:
        print_rows(view, frame, output, _exposed(frame), meanings_of(view.table))
    if output == "table" and view.table == "qa_board" and not served:
        say_mixed(warehouse, "qa_responses", remedy=SERVED_REMEDY)


def _split_boards(warehouse: Warehouse, view: BoardView) -> pa.Table:
    """The table of the view, made anew with a row for each served model."""
    if view.table not in QA_BOARDS:
        allowed = ", ".join(one.name for one in QA_VIEW_BY_NAME.values() if one.table in QA_BOARDS)
        raise ConfigError(f"--served with --by {view.name}: allowed with --by {allowed}")

    def split(connection: duckdb.DuckDBPyConnection) -> pa.Table:
        split_served(connection, "qa_scores", "qa_responses", ["request_key", "model_variant"])
        return qa_boards(connection, exposure=known_suites(None).exposure)[view.table]

    with waiting("making boards"):
        return warehouse.query(split, only=[*QA_BOARD_READS, "qa_responses"])


def _of_suites(frame: pd.DataFrame, patterns: Sequence[str]) -> pd.DataFrame:
    suites = fitting(sorted(frame["suite"].astype(str).unique()), patterns, "--suite")
    return frame[frame["suite"].isin(suites)].reset_index(drop=True)


def _exposed(frame: pd.DataFrame) -> Iterator[str]:
    """Beside a board: of which suites the answers may be in the training data."""
    if "exposure" in frame:
        told = frame[frame["exposure"].fillna("") != ""].drop_duplicates("suite")
        yield from (f"{suite}: {why}" for suite, why in zip(told["suite"], told["exposure"], strict=True))


def _model_checks(warehouse: Warehouse, options: WatchOptions) -> pa.Table:
    """QA_MODEL_DRIFT."""
    found = warehouse.query(lambda connection: qa_watched_drift(connection, options), only=QA_DRIFT_READS)
    return net_of_judge(found.checks, warehouse.rows("qa_anchors"), options)


def _drift_lines(warehouse: Warehouse, options: WatchOptions, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What the judge's drift has to do with that of models, and the judges that moved."""
    for row in rows:
        if row["told_of_judges"]:
            yield f"{row['model']}, {row['metric']}: {row['told_of_judges']}"
    yield from moved_judges(qa_judge_drift_rows(warehouse.rows("qa_anchors"), options).to_pylist())


QA_COMMANDS = CommandFamily(
    name="qa",
    part="part",
    asks="dtef qa run --model MODEL",
    names=QA_NAMES,
    costs_by=("role", "suite", "evaluator", "model"),
    rule_view=TableView(
        (
            *("suite", "part", "model", "condition", "metric", "flagged", "gap", "lowest", "lowest_snapshot"),
            *("highest", "highest_snapshot", "n_snapshots", "n_items"),
        ),
        ("part", "model", "flagged", "gap"),
        ("n_items", "n_snapshots", "condition", "lowest", "highest"),
        who=("suite", "part", "model"),
    ),
    model_checks=_model_checks,
    drift_lines=_drift_lines,
    pages=lambda snapshot: qa_pages,
    page_tables=tuple(QA_TABLES),
)
