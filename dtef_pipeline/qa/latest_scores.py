"""The scores that boards are made of: of each part the responses of one snapshot, in an order that does not depend on how files lie."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import order_in, place_sql
from dtef_pipeline.qa.model import CITES_NOTHING

QA_BOARD_COLUMNS = (
    *("suite", "part", "item_id", "condition", "metric", "measured_by", "model", "model_variant", "snapshot", "draw"),
    *("cluster", "type", "status", "value", "score", "cites_nothing"),
)
"""The columns of `qa_scores` that boards read, and `cites_nothing`: whether a response has no score because it cites nothing."""
_CODED_TEXTS = (
    *("suite", "part", "item_id", "condition", "metric", "measured_by", "model", "model_variant", "snapshot", "cluster"),
    *("type",),
)
_BOARD_SERIES = "suite, part, condition, metric, measured_by, model_variant"
_ENOUGH_ITEMS = 0.5
"""Of the items that the fullest snapshot of a part has a score for, the share that another one must have to be the latest: a night of a few
items, or a run that was stopped, hides no whole one."""


def qa_snapshot_order(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The snapshots of all parts, the earliest first. `connection` has `qa_scores`."""
    return order_in(connection, "qa_scores")


def qa_scores(connection: duckdb.DuckDBPyConnection, columns: Sequence[str] = QA_BOARD_COLUMNS) -> pa.Table:
    """The rows of `qa_scores` in one order; columns that repeat are dictionaries. `connection` has the table."""
    text = {name: f"{name}::VARCHAR AS {name}" for name in _CODED_TEXTS}
    text |= {name: f"coalesce({name}, '')::VARCHAR AS {name}" for name in ("condition", "metric", "measured_by")}
    own = {**text, "cluster": "coalesce(nullif(cluster, ''), item_id)::VARCHAR AS cluster"}
    own["cites_nothing"] = f"coalesce(reason = '{CITES_NOTHING}', false) AS cites_nothing"
    named = ", ".join(own.get(name, name) for name in columns)
    order = ", ".join(("suite", "part", "condition", "metric", "measured_by", "model_variant", "snapshot", "item_id", "draw"))
    return _coded(connection.sql(f"SELECT {named} FROM qa_scores ORDER BY {order}").to_arrow_table())


def latest_scores(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Of each part, condition, metric, `measured_by` and model variant the rows of one snapshot; columns QA_BOARD_COLUMNS.

    It is the latest that has a score for at least half as many items as the fullest one; where none has a score, the latest of all.
    `connection` has `qa_scores`.
    """
    connection.register("rows_of_boards", qa_scores(connection))
    place = place_sql(qa_snapshot_order(connection))
    found = connection.sql(
        f"""
        WITH counted AS (
            SELECT {_BOARD_SERIES}, snapshot, count(DISTINCT item_id) FILTER (score IS NOT NULL) AS n FROM rows_of_boards GROUP BY ALL
        ), beside AS (
            SELECT *, max(n) OVER (PARTITION BY {_BOARD_SERIES}) AS most FROM counted
        ), latest AS (
            SELECT {_BOARD_SERIES}, snapshot FROM beside
            QUALIFY row_number() OVER (
                PARTITION BY {_BOARD_SERIES} ORDER BY n > 0 DESC, n >= {_ENOUGH_ITEMS} * most DESC, {place} DESC NULLS LAST
            ) = 1
        )
        SELECT rows_of_boards.* FROM rows_of_boards SEMI JOIN latest USING ({_BOARD_SERIES}, snapshot)
        ORDER BY {_BOARD_SERIES}, item_id, draw
        """
    ).to_arrow_table()
    connection.unregister("rows_of_boards")
    return _coded(found)


def _coded(rows: pa.Table) -> pa.Table:
    for name in {*_CODED_TEXTS} & {*rows.column_names}:
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, name, rows.column(name).cast(pa.string()).combine_chunks().dictionary_encode())
    return rows
