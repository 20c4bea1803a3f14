"""The published boards of the rubric family, made of the tables of a connection."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import order_in
from dtef_pipeline.rubric.board import board, criterion_board, latest_runs
from dtef_pipeline.rubric.tables import RUBRIC_BOARDS
from dtef_pipeline.tables import in_schema

BOARD_READS = ("rubric_scores", "rubric_blueprints", "rubric_runs", "rubric_points")
"""The tables that boards are made of."""
_VIEW_OF = {
    "rubric_board": "overall",
    "rubric_board_tag": "tag",
    "rubric_board_blueprint": "blueprint",
    "rubric_board_prompt": "prompt",
}
_POINTS = """
    SELECT points.* EXCLUDE (criterion_id) FROM (
        SELECT blueprint, snapshot, prompt, model, model_variant, temperature, system_index, draw, block, path, position, criterion_id, score
        FROM rubric_points
    ) AS points SEMI JOIN runs USING (blueprint, snapshot)
"""


def rubric_boards(connection: duckdb.DuckDBPyConnection) -> dict[str, pa.Table]:
    """Every board by the name of its table. `connection` has the tables of BOARD_READS."""
    scores = connection.execute("SELECT * EXCLUDE (reasons) FROM rubric_scores").df()
    order = rubric_snapshot_order(connection)
    told = connection.execute("SELECT blueprint::VARCHAR, tags FROM rubric_blueprints").fetchall()
    tags = {blueprint: list(named or ()) for blueprint, named in told}
    boards = {name: board(scores, order, tags, view) for name, view in _VIEW_OF.items()}
    runs = latest_runs(scores, order)
    connection.register("runs", runs)
    boards["rubric_board_criterion"] = criterion_board(connection.execute(_POINTS).df(), runs)
    return {name: in_schema(rows, RUBRIC_BOARDS[name]) for name, rows in boards.items()}


def rubric_snapshot_order(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The snapshots of all blueprints, the earliest first."""
    return order_in(connection, "rubric_runs")
