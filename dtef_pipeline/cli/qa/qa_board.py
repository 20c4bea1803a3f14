"""`dtef qa board`, and what questions bring to the commands that take `--family`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import pandas as pd
import pyarrow as pa

from assets.qa.known_suites import known_suites
from dtef_pipeline.boards.cuts import of_cut
from dtef_pipeline.boards.family_views import BoardView
from dtef_pipeline.boards.served import split_served
from dtef_pipeline.cli.families import CommandFamily, fitting, meanings_of, of_models, require_rolled_up
from dtef_pipeline.cli.opened_warehouse import SERVED_REMEDY, NothingToShowError, reads_tables, say_mixed
from dtef_pipeline.cli.terminal import print_rows
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.result_views import QA_VIEW_BY_NAME, RETRIEVAL_STAGE_TABLE
from dtef_pipeline.qa.suite_boards import QA_BOARD_READS, RETRIEVAL_COUNT, RETRIEVAL_COUNT_TOLD, qa_boards, retrieval_means
from dtef_pipeline.qa.tables import QA_BOARDS, QA_CUTS
from dtef_pipeline.qa.watched_scores import QA_WATCHED
from resources.gateway.progress import waiting
from resources.warehouse import Warehouse, part_of_family


@reads_tables
def show(
    warehouse: Warehouse, by: str, models: Sequence[str], suites: Sequence[str], output: str, *, served: bool = False
) -> None:
    """`served`: whether models that one name stands for have rows of their own."""
    view = QA_VIEW_BY_NAME[by]
    if view.table != RETRIEVAL_STAGE_TABLE:
        require_rolled_up(warehouse, "qa", view.table, "qa_scores")
    rows = _split_boards(warehouse, view) if served else warehouse.rows(view.table, **part_of_family(view.table, "qa"))
    frame: pd.DataFrame = rows.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get).rename(
        columns={"first_level": "suite"}
    )
    frame = of_models(frame, models, by)
    if view.table == "qa_board":
        frame = of_cut(frame, view.name, QA_CUTS)
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
    if output == "table" and view.name == "overall" and not served:
        say_mixed(warehouse, "qa_responses", remedy=SERVED_REMEDY)


def _split_boards(warehouse: Warehouse, view: BoardView) -> pa.Table:
    """The table of the view, made anew with a row for each served model."""
    if view.table not in (made := {*QA_BOARDS, "comparisons"}):
        allowed = ", ".join(one.name for one in QA_VIEW_BY_NAME.values() if one.table in made)
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


QA_COMMANDS = CommandFamily(
    name="qa",
    part="part",
    asks="dtef qa run --model MODEL",
    subject=QA_WATCHED,
)
