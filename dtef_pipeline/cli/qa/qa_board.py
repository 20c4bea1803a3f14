"""The record of questions for commands that read their tables: the boards of `dtef qa board`, and the drift subject."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from dtef_pipeline.boards.named_boards import Board
from dtef_pipeline.cli.families import CommandFamily, fitting_rows, require_rolled_up, select_board_rows
from dtef_pipeline.qa.qa_boards import QA_BOARDS, RETRIEVAL_STAGE_TABLE
from dtef_pipeline.qa.score_drift import QA_WATCHED
from dtef_pipeline.qa.suites import compute_retrieval_means
from dtef_pipeline.qa.tables import QA_CUTS
from resources.warehouse import Warehouse, build_family_levels


def _rows(warehouse: Warehouse, family: CommandFamily, board: Board, suites: Sequence[str]) -> pd.DataFrame:
    if board.table != RETRIEVAL_STAGE_TABLE:
        require_rolled_up(warehouse, family.name, board.table, family.record.scores_table)
    frame = select_board_rows(family, board, warehouse.rows(board.table, **build_family_levels(board.table, family.name)))
    frame = fitting_rows(frame.rename(columns={"first_level": "suite"}), "suite", suites, "--suite")
    if board.check:
        return frame[frame["check"] == board.check].reset_index(drop=True)
    return compute_retrieval_means(frame) if board.table == RETRIEVAL_STAGE_TABLE and len(frame) else frame


def _list_exposed_suites(warehouse: Warehouse, board: Board, frame: pd.DataFrame, suites: Sequence[str]) -> Iterator[str]:
    """Yield the suites whose answers may be in training data."""
    if "exposure" in frame:
        public = frame[frame["exposure"].fillna("") != ""].drop_duplicates("suite")
        yield from (f"{suite}: {exposure}" for suite, exposure in zip(public["suite"], public["exposure"], strict=True))


QA_COMMANDS = CommandFamily("qa", QA_WATCHED, QA_BOARDS, QA_CUTS, _rows, _list_exposed_suites)
