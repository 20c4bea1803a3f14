"""The published results and boards of the qa family, made of the tables of a connection."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.keys import MODEL
from dtef_pipeline.qa.latest_scores import latest_scores, qa_scores, qa_snapshot_order
from dtef_pipeline.qa.models_paired import compare_models
from dtef_pipeline.qa.pass_rates import pass_rates
from dtef_pipeline.qa.result_tables import QA_BOARDS, QA_PASS_AT_K
from dtef_pipeline.qa.suite_boards import BOARD_KEYS, BY_CLUSTER, BY_PART, OVERALL, qa_results, suite_board
from dtef_pipeline.tables import in_schema

QA_BOARD_READS = ("qa_scores",)
"""The tables that results and boards are made of."""
_VIEW_OF_BOARD = {"qa_board": OVERALL, "qa_board_part": BY_PART, "qa_board_cluster": BY_CLUSTER}
_PROGRAMS = "code"
"""The type of items whose responses are programs."""


def qa_boards(connection: duckdb.DuckDBPyConnection, *, exposure: Mapping[str, str] | None = None) -> dict[str, pa.Table]:
    """Every table of QA_BOARDS by its name. `connection` has the tables of QA_BOARD_READS; `exposure`: as of `suite_board`."""
    latest, order = latest_scores(connection), qa_snapshot_order(connection)
    frames = {table: suite_board(latest, view, exposure=exposure, order=order) for table, view in _VIEW_OF_BOARD.items()}
    frames["qa_results"] = qa_results(qa_scores(connection))
    frames["qa_pass_at_k"] = _pass_rates(latest)
    frames["qa_comparisons"] = compare_models(latest)
    return {name: in_schema(frames[name], schema) for name, schema in QA_BOARDS.items()}


def _pass_rates(latest: pa.Table) -> pd.DataFrame:
    names = [*BOARD_KEYS[BY_PART], *MODEL]
    programs = latest.filter(pc.equal(latest["type"], _PROGRAMS))
    if not len(programs):
        return pd.DataFrame(columns=QA_PASS_AT_K.names)
    rows: pd.DataFrame = pass_rates(programs, names).to_pandas()
    return rows.astype(dict.fromkeys(names, "str")).sort_values([*names, "k"], ignore_index=True)
