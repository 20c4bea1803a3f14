"""Scores over the context levels for a curve, in which every level has the same pairs."""

from __future__ import annotations

import duckdb
import pandas as pd

from dtef_pipeline.boards.cells import cells_sql, parameters
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.keys import KEYS

_CURVE = ["model_variant", "condition"]


def restrict_to_shared_pairs(connection: duckdb.DuckDBPyConnection, board: pd.DataFrame) -> pd.DataFrame:
    """Return the overall board with each `score` (0-1, higher is better) over the pairs that its model has a score for at all of its
    levels.

    `n_pairs` is their number. If a model has the same pairs at every level, its rows are unchanged; otherwise they have no interval,
    because that of the board is for other pairs. If no pair has a score at every level, the score is null.
    """
    if not len(board):
        return board
    options = SurveyBoardOptions(metric=str(board["metric"].iloc[0]) if "metric" in board else "js")
    means = _load_curve_means(connection, options)
    key = [*_CURVE, "context_level"]
    rows = board[key].astype(str).merge(means, on=key, how="left")
    unlike = (board["score"].notna() & (rows["shared_pairs"].fillna(0).to_numpy() != board["n_pairs"].to_numpy())).to_numpy()
    curve = [board[name].astype(str) for name in _CURVE]
    lacks_ends = pd.Series(unlike, index=board.index).groupby(curve).transform("any").to_numpy()
    shared_board = board.copy()
    shared_board.loc[unlike, "score"] = rows.loc[unlike, "shared_score"].to_numpy(dtype=float)
    shared_board.loc[unlike, "n_pairs"] = rows.loc[unlike, "shared_pairs"].fillna(0).to_numpy(dtype=int)
    for end in {"score_low", "score_high"} & set(shared_board.columns):
        shared_board.loc[lacks_ends, end] = None
    return shared_board


def _load_curve_means(connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions) -> pd.DataFrame:
    connection.execute("SET threads = 1")
    series, pair = ", ".join(_CURVE), ", ".join(KEYS.pair)
    query = f"""
        {cells_sql(connection, options)}, scored AS (FROM cells WHERE score IS NOT NULL),
        levels AS (SELECT {series}, count(DISTINCT context_level) AS levels FROM scored GROUP BY ALL),
        everywhere AS (
            SELECT {series}, {pair} FROM scored JOIN levels USING ({series})
            GROUP BY {series}, {pair}, levels HAVING count(*) = levels
        )
        SELECT {series}, context_level, avg(score) AS shared_score, count(*) AS shared_pairs
        FROM scored SEMI JOIN everywhere USING ({series}, {pair}) GROUP BY ALL ORDER BY ALL
        """
    return connection.execute(query, parameters(options)).df()
