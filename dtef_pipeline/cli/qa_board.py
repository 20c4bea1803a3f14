"""What `dtef qa board` does; the words are in `dtef_pipeline/cli/qa_board_group.py`, the views in `qa/result_views.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import pandas as pd
import pyarrow as pa

from assets.qa.known_suites import known_suites
from dtef_pipeline.boards.served import split_served
from dtef_pipeline.cli.opened_warehouse import SERVED_REMEDY, reads_tables, say_mixed, say_stale
from dtef_pipeline.cli.rubric_check import fitting
from dtef_pipeline.cli.terminal import print_rows
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.qa.published_results import QA_BOARD_READS, qa_boards
from dtef_pipeline.qa.result_tables import QA_BOARDS
from dtef_pipeline.qa.result_views import QA_VIEW_BY_NAME, RETRIEVAL_STAGE_TABLE, QaView
from dtef_pipeline.qa.retrieval_means import RETRIEVAL_COUNT, RETRIEVAL_COUNT_TOLD, retrieval_means
from dtef_pipeline.qa.stored_tables import QA_TABLES
from dtef_pipeline.tables import description
from resources.gateway.progress import waiting
from resources.warehouse import Warehouse

QA_ROLLED_UP_BY = "`dtef qa run` makes it, and `dtef rollup --family qa`"


@reads_tables
def show(warehouse: Warehouse, by: str, suites: Sequence[str], output: str, *, served: bool = False) -> None:
    """`served`: whether models that one name stands for have rows of their own."""
    view = QA_VIEW_BY_NAME[by]
    if view.table != RETRIEVAL_STAGE_TABLE:
        require_qa_table(warehouse, view.table)
    rows = _split_boards(warehouse, view) if served else warehouse.rows(view.table)
    frame: pd.DataFrame = rows.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    if suites:
        frame = _of_suites(frame, suites)
    if view.check:
        frame = frame[frame["check"] == view.check].reset_index(drop=True)
    if not len(frame):
        raise WarehouseError(f"nothing to show by {by}: it needs {view.needs}")
    if view.table == RETRIEVAL_STAGE_TABLE:
        print_qa_view(view, retrieval_means(frame), output, {RETRIEVAL_COUNT: RETRIEVAL_COUNT_TOLD})
    else:
        print_rows(view, frame, output, _exposed(frame), meanings_of(view.table), ends=view.ends)
    if output == "table" and view.table == "qa_board" and not served:
        say_mixed(warehouse, "qa_responses", remedy=SERVED_REMEDY)


def _split_boards(warehouse: Warehouse, view: QaView) -> pa.Table:
    """The table of the view, made anew with a row for each served model."""
    if view.table not in QA_BOARDS:
        allowed = ", ".join(one.name for one in QA_VIEW_BY_NAME.values() if one.table in QA_BOARDS)
        raise ConfigError(f"--served with --by {view.name}: allowed with --by {allowed}")

    def split(connection: duckdb.DuckDBPyConnection) -> pa.Table:
        split_served(connection, "qa_scores", "qa_responses", ["request_key", "model_variant"])
        return qa_boards(connection, exposure=known_suites(None).exposure)[view.table]

    with waiting("making boards"):
        return warehouse.query(split, only=[*QA_BOARD_READS, "qa_responses"])


def require_qa_table(warehouse: Warehouse, table: str) -> None:
    """Raises WarehouseError where no roll-up has made it, with what does. Says so where scores are newer."""
    if not warehouse.tables_in(table) or table not in warehouse.tables():
        raise WarehouseError(f"no {table} in {warehouse.root} yet: {QA_ROLLED_UP_BY}")
    say_stale(warehouse, table, "qa_scores", "dtef rollup --family qa")


def meanings_of(table: str) -> dict[str, str]:
    """What each column of a table means."""
    return {column.name: description(column) for column in QA_TABLES[table].schema or ()}


def print_qa_view(view: QaView, frame: pd.DataFrame, output: str, told: dict[str, str] | None = None) -> None:
    """The rows as a table for people, or for other programs. `told`: what columns mean that the view's table does not have."""
    print_rows(view, frame, output, (), {**meanings_of(view.table), **(told or {})}, ends=view.ends)


def _of_suites(frame: pd.DataFrame, patterns: Sequence[str]) -> pd.DataFrame:
    suites = fitting(sorted(frame["suite"].astype(str).unique()), patterns, "--suite")
    return frame[frame["suite"].isin(suites)].reset_index(drop=True)


def _exposed(frame: pd.DataFrame) -> Iterator[str]:
    """Beside a board: of which suites the answers may be in the training data."""
    if "exposure" in frame:
        told = frame[frame["exposure"].fillna("") != ""].drop_duplicates("suite")
        yield from (f"{suite}: {why}" for suite, why in zip(told["suite"], told["exposure"], strict=True))
