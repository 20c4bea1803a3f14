"""What `dtef estimate` and `dtef run` say of the questions before anything is asked: in how many batteries they are, and what that can tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import duckdb
import pandas as pd

from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.survey.boards.linked import question_clusters
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.question_draw import what_it_tells
from resources.table_reader import TableReader

if TYPE_CHECKING:
    from dtef_pipeline.cli.selection import Selection
    from resources.warehouse import Warehouse


def question_lines(warehouse: Warehouse, chosen: Selection) -> Iterator[str]:
    """A line for each round, and one for all where there are several. None where surveys cannot be read: whoever asks them says so."""

    def found(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
        return _questions(connection, chosen)

    try:
        questions = TableReader(warehouse).query(found, only=["survey_responses"])
    except (WarehouseError, duckdb.Error):
        return
    for round_id, own in questions.groupby("round", sort=False):
        yield f"{round_id}: {what_it_tells(own, chosen.questions)}"
    if len(chosen.rounds) > 1:
        yield f"{' and '.join(chosen.rounds)} together: {what_it_tells(questions, chosen.questions)}"


def _questions(connection: duckdb.DuckDBPyConnection, chosen: Selection) -> pd.DataFrame:
    """One row per question that the chosen segments answered: `round`, `question_id`, `draw_order`, `is_target`, and its `cluster`.

    Batteries are linked over all rounds, as on boards.
    """
    rows = connection.execute(
        f"""SELECT {", ".join(KEYS.shared_item)}, min(draw_order) AS draw_order, NOT bool_and(circular) AS is_target
            FROM survey_responses
            WHERE list_contains($1, round) AND (len($2) = 0 OR list_contains($2, segment))
            GROUP BY {", ".join(KEYS.shared_item)} ORDER BY list_position($1, round), draw_order""",
        [list(chosen.rounds), list(chosen.segments)],
    ).df()
    return rows.merge(question_clusters(connection), on=list(KEYS.shared_item))
