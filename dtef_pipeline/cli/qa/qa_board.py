"""What questions bring to the commands that read their tables: the views of `dtef qa board`, and what is watched for drift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import pandas as pd
import pyarrow as pa

from assets.qa.suite_catalog import load_known_suites
from dtef_pipeline.boards.family_views import BoardView
from dtef_pipeline.boards.mixed_models import split_served
from dtef_pipeline.cli.families import CommandFamily, fitting_rows, require_rolled_up, view_frame
from dtef_pipeline.cli.warehouse_access import SERVED_REMEDY
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.result_views import QA_VIEWS, RETRIEVAL_STAGE_TABLE
from dtef_pipeline.qa.score_drift import QA_WATCHED
from dtef_pipeline.qa.suite_boards import QA_BOARD_READS, build_qa_boards, compute_retrieval_means
from dtef_pipeline.qa.tables import QA_BOARDS, QA_CUTS
from resources.gateway.progress import waiting
from resources.warehouse import Warehouse, build_family_levels


def _rows(warehouse: Warehouse, family: CommandFamily, view: BoardView, suites: Sequence[str], *, served: bool) -> pd.DataFrame:
    """The rows of a view. `served`: whether models that one name stands for have rows of their own."""
    if view.table != RETRIEVAL_STAGE_TABLE:
        require_rolled_up(warehouse, family.name, view.table, family.stored.scored)
    rows = (
        _split_boards(warehouse, view) if served else warehouse.rows(view.table, **build_family_levels(view.table, family.name))
    )
    frame = view_frame(family, view, rows)
    frame = fitting_rows(frame.rename(columns={"first_level": "suite"}), "suite", suites, "--suite")
    if view.check:
        return frame[frame["check"] == view.check].reset_index(drop=True)
    return compute_retrieval_means(frame) if view.table == RETRIEVAL_STAGE_TABLE and len(frame) else frame


def _split_boards(warehouse: Warehouse, view: BoardView) -> pa.Table:
    """The table of the view, made anew with a row for each served model."""
    if view.table not in (tables := {*QA_BOARDS, "comparisons"}):
        choices = ", ".join(entry.name for entry in QA_VIEWS if entry.table in tables)
        raise ConfigError(f"--served with --by {view.name}: allowed with --by {choices}")

    def split(connection: duckdb.DuckDBPyConnection) -> pa.Table:
        split_served(connection, "qa_scores", "qa_responses", ["request_key", "model_variant"])
        return build_qa_boards(connection, exposure=load_known_suites(None).exposure)[view.table]

    with waiting("making boards"):
        return warehouse.query(split, only=[*QA_BOARD_READS, "qa_responses"])


def _list_exposed_suites(warehouse: Warehouse, view: BoardView, frame: pd.DataFrame, suites: Sequence[str]) -> Iterator[str]:
    """Of which suites the answers may be in the training data."""
    if "exposure" in frame:
        public = frame[frame["exposure"].fillna("") != ""].drop_duplicates("suite")
        yield from (f"{suite}: {why}" for suite, why in zip(public["suite"], public["exposure"], strict=True))


QA_COMMANDS = CommandFamily("qa", QA_WATCHED, QA_VIEWS, QA_CUTS, _rows, _list_exposed_suites, remedy=SERVED_REMEDY)
