"""The record of rubrics for commands that read their tables: the boards of `dtef rubric board`, and the drift subject."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from dtef_pipeline.boards.named_boards import Board
from dtef_pipeline.cli.families import (
    CommandFamily,
    ExplainedColumns,
    filter_by_patterns,
    fitting_rows,
    print_board,
    read_stored_board,
    require_table,
)
from dtef_pipeline.cli.options import refuse_others
from dtef_pipeline.cli.rubric import rubric_labels
from dtef_pipeline.cli.warehouse_access import NothingToShowError
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.blueprint_run import format_criteria_count
from dtef_pipeline.rubric.board import (
    compare_over_blueprints,
    describe_several_policies,
    describe_unlike_runs,
    list_test_blueprints,
    load_rubric_snapshot_order,
    select_averaged_runs,
)
from dtef_pipeline.rubric.rubric_boards import CHAMPIONS_BOARD, COMPARE_BOARD, LABELS_BOARD, RUBRIC_BOARDS
from dtef_pipeline.rubric.rubric_drift import WATCHED
from dtef_pipeline.rubric.rubric_roll_ups import DISAGREED_FROM
from dtef_pipeline.rubric.tables import RUBRIC_CUTS
from resources.gateway.progress import waiting
from resources.warehouse import Warehouse

_AVERAGED = ("overall", "tag", COMPARE_BOARD)
"""Boards that average over blueprints."""
_COMPARABLE_RUNS = (
    "SELECT blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot, judges, judge_hash, policy FROM rubric_runs"
)
_LABELS_NEEDED = ("labels_needed", "prompts_needed")
_COMPARED_READ = ("rubric_scores", "rubric_runs", "rubric_blueprints")


def _show(by: str, **options: Any) -> None:
    if by == LABELS_BOARD:
        refuse_others(("by",), f"--by {by}", exempt=("refresh",))
        rubric_labels.show(options["output"])
    else:
        print_board("rubric", by, **options)


def _read_rows(warehouse: Warehouse, family: CommandFamily, board: Board, blueprints: Sequence[str]) -> pd.DataFrame:
    if blueprints and not board.filters_partitions:
        names = [entry.name for entry in RUBRIC_BOARDS if entry.filters_partitions]
        raise ConfigError(
            f"--blueprint does not work with --by {board.name}, but with --by {', '.join(names[:-1])} or {names[-1]}"
        )
    if board.name == COMPARE_BOARD:
        return _compare_models(warehouse, blueprints)
    if board.table == "rubric_corrected":
        return _read_corrected_board(warehouse, blueprints)
    frame = read_stored_board(warehouse, family, board)
    if blueprints and "blueprint" not in frame:
        return fitting_rows(frame[frame["cut"] == "blueprint"], "value", blueprints, "--blueprint")
    return fitting_rows(frame, "blueprint", blueprints, "--blueprint")


def _read_corrected_board(warehouse: Warehouse, blueprints: Sequence[str]) -> pd.DataFrame:
    """Return the board corrected by people's labels: the matching blueprints separately, or all together without patterns."""
    frame: pd.DataFrame = warehouse.rows("rubric_corrected").to_pandas()
    if frame.empty:
        raise NothingToShowError(
            f"no rubric_corrected in {warehouse.root} yet: after `dtef import labels SHEET` it is made by `dtef rubric board --refresh`"
        )
    frame = frame.assign(**{name: np.ceil(frame[name].astype("float64")).astype("Int64") for name in _LABELS_NEEDED})
    if not blueprints:
        return frame[frame["blueprint"].isna()]
    return fitting_rows(frame.dropna(subset="blueprint"), "blueprint", blueprints, "--blueprint")


def _compare_models(warehouse: Warehouse, patterns: Sequence[str]) -> pd.DataFrame:
    """Compare models over the matching blueprints; without patterns over all but tests, as on the board."""
    require_table(warehouse, "rubric_scores", "`dtef rubric run` makes it")

    def compute_frame(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
        scores = connection.execute("SELECT * EXCLUDE (reasons) FROM rubric_scores WHERE level IN ('cell', 'model')").df()
        selection = _choose_blueprints(connection, sorted(scores["blueprint"].astype(str).unique()), patterns)
        return compare_over_blueprints(scores, load_rubric_snapshot_order(connection), selection)

    with waiting("comparing models"):
        return warehouse.query(compute_frame, only=_COMPARED_READ)


def _choose_blueprints(connection: duckdb.DuckDBPyConnection, names: Sequence[str], patterns: Sequence[str]) -> Sequence[str]:
    """Return the matching blueprints; without patterns all but tests."""
    tests = list_test_blueprints(connection)
    return filter_by_patterns(names, patterns, "--blueprint") if patterns else [name for name in names if name not in tests]


def _describe_board(warehouse: Warehouse, board: Board, frame: pd.DataFrame, blueprints: Sequence[str]) -> Iterator[str]:
    if board.name == "agreement":
        n = len(warehouse.rows("rubric_disagreed", columns=["blueprint"]))
        if n:
            how = "`dtef sql 'FROM rubric_disagreed'` lists them, the worst first"
            yield f"{format_criteria_count(n)} whose judges differ by more than {DISAGREED_FROM:g} (standard deviation): {how}"
    elif board.name in _AVERAGED:
        yield from describe_unlike_runs(_average_runs(warehouse, board, blueprints))
    elif "rank" in board.columns and board.name != CHAMPIONS_BOARD:
        yield from describe_several_policies(_average_runs(warehouse, board, blueprints)["policy"])


def _average_runs(warehouse: Warehouse, board: Board, patterns: Sequence[str]) -> pd.DataFrame:
    """Return the latest run of each blueprint in the rows."""

    def compute_frame(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
        scores = connection.execute("SELECT * EXCLUDE (reasons) FROM rubric_scores WHERE level = 'model'").df()
        runs = connection.sql(_COMPARABLE_RUNS).to_arrow_table().to_pandas()
        runs = select_averaged_runs(scores, runs, load_rubric_snapshot_order(connection))
        selection = (
            _choose_blueprints(connection, runs["blueprint"].tolist(), patterns)
            if board.name in _AVERAGED
            else runs["blueprint"]
        )
        return runs[runs["blueprint"].isin(list(selection))]

    return warehouse.query(compute_frame, only=_COMPARED_READ)


RUBRIC_COMMANDS = CommandFamily(
    "rubric",
    WATCHED,
    RUBRIC_BOARDS,
    RUBRIC_CUTS,
    _read_rows,
    _describe_board,
    _show,
    explained_columns={"rubric/runs": ExplainedColumns("dtef_pipeline.cli.rubric.rubric_show.RUN_COMPARISON_COLUMNS")},
)
