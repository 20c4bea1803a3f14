"""The scores that boards read: the responses of one snapshot per part, in an order that does not depend on that of the files."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import order_in
from dtef_pipeline.boards.latest_rows import encode_columns, select_latest_rows
from dtef_pipeline.qa.model import CITES_NOTHING

QA_BOARD_COLUMNS = (
    *("suite", "part", "item_id", "condition", "metric", "measured_by", "model", "model_variant", "snapshot", "draw"),
    *("cluster", "type", "status", "value", "score", "cites_nothing"),
)
"""Columns of `qa_scores` that boards read, and `cites_nothing`: whether a response has no score because it has no quotations."""
_CODED_TEXTS = (
    *("suite", "part", "item_id", "condition", "metric", "measured_by", "model", "model_variant", "snapshot", "cluster"),
    *("type",),
)
_BOARD_SERIES = ("suite", "part", "condition", "metric", "measured_by", "model_variant")


def load_qa_snapshot_order(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the snapshots of all parts, the earliest first. `connection` has `qa_scores`."""
    return order_in(connection, "qa_scores")


def load_qa_scores(connection: duckdb.DuckDBPyConnection, columns: Sequence[str] = QA_BOARD_COLUMNS) -> pa.Table:
    """Return the rows of `qa_scores` in a fixed order; columns with repeated values are dictionaries. `connection` has the table."""
    text = {name: f"{name}::VARCHAR AS {name}" for name in _CODED_TEXTS}
    text |= {name: f"coalesce({name}, '')::VARCHAR AS {name}" for name in ("condition", "metric", "measured_by")}
    expressions = {**text, "cluster": "coalesce(nullif(cluster, ''), item_id)::VARCHAR AS cluster"}
    expressions["cites_nothing"] = f"coalesce(reason = '{CITES_NOTHING}', false) AS cites_nothing"
    named = ", ".join(expressions.get(name, name) for name in columns)
    order = ", ".join(("suite", "part", "condition", "metric", "measured_by", "model_variant", "snapshot", "item_id", "draw"))
    return encode_columns(connection.sql(f"SELECT {named} FROM qa_scores ORDER BY {order}").to_arrow_table(), _CODED_TEXTS)


def load_latest_scores(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return the rows of one snapshot for each part, condition, metric, `measured_by` and model variant (see `select_latest_rows`), with
    the columns QA_BOARD_COLUMNS.

    `connection` has `qa_scores`.
    """
    order = load_qa_snapshot_order(connection)
    return encode_columns(select_latest_rows(connection, load_qa_scores(connection), _BOARD_SERIES, order), _CODED_TEXTS)
