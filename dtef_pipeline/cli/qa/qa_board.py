"""The record of questions for commands that read their tables: the views of `dtef qa board`, and the drift subject."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from dtef_pipeline.boards.named_boards import BoardView
from dtef_pipeline.cli.families import CommandFamily, fitting_rows, require_rolled_up, view_frame
from dtef_pipeline.qa.qa_boards import QA_VIEWS, RETRIEVAL_STAGE_TABLE
from dtef_pipeline.qa.score_drift import QA_WATCHED
from dtef_pipeline.qa.suite_boards import compute_retrieval_means
from dtef_pipeline.qa.tables import QA_CUTS
from resources.warehouse import Warehouse, build_family_levels


def _rows(warehouse: Warehouse, family: CommandFamily, view: BoardView, suites: Sequence[str]) -> pd.DataFrame:
    if view.table != RETRIEVAL_STAGE_TABLE:
        require_rolled_up(warehouse, family.name, view.table, family.record.scored)
    frame = view_frame(family, view, warehouse.rows(view.table, **build_family_levels(view.table, family.name)))
    frame = fitting_rows(frame.rename(columns={"first_level": "suite"}), "suite", suites, "--suite")
    if view.check:
        return frame[frame["check"] == view.check].reset_index(drop=True)
    return compute_retrieval_means(frame) if view.table == RETRIEVAL_STAGE_TABLE and len(frame) else frame


def _list_exposed_suites(warehouse: Warehouse, view: BoardView, frame: pd.DataFrame, suites: Sequence[str]) -> Iterator[str]:
    """Yield the suites whose answers may be in training data."""
    if "exposure" in frame:
        public = frame[frame["exposure"].fillna("") != ""].drop_duplicates("suite")
        yield from (f"{suite}: {why}" for suite, why in zip(public["suite"], public["exposure"], strict=True))


QA_COMMANDS = CommandFamily("qa", QA_WATCHED, QA_VIEWS, QA_CUTS, _rows, _list_exposed_suites)
