"""The batteries of questions, linked over rounds: what results on questions are independent by."""

from __future__ import annotations

import duckdb
import pandas as pd

from dtef_pipeline.boards.cells import has_table, scores_of_this_version
from dtef_pipeline.survey.batteries import linked_batteries
from dtef_pipeline.survey.keys import KEYS

_GIVEN = "linked_batteries"


def question_clusters(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """`cluster`, the linked battery, of each (round, question_id) of `survey_responses`; no rows where there is no such table.

    Those of `take_links`, where a connection to some of the rounds was given them: rounds that are left out link batteries too.

    Raises WarehouseError for a survey that was ingested by a version without batteries.
    """
    if has_table(connection, _GIVEN):
        return pd.DataFrame(connection.table(_GIVEN).df())
    if not has_table(connection, "survey_responses"):
        return pd.DataFrame(columns=[*KEYS.shared_item, "cluster"], dtype="str")
    return asked_questions(connection)[[*KEYS.shared_item, "cluster"]]


def take_links(connection: duckdb.DuckDBPyConnection, clusters: pd.DataFrame) -> None:
    """Let `question_clusters` be these, of all rounds, whichever rounds the connection has."""
    connection.register(_GIVEN, clusters)


def asked_questions(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """One row per question of a round of `survey_responses`: its battery, text and options, and its linked battery as `cluster`.

    Raises WarehouseError for a survey that was ingested by a version without batteries.
    """
    question = ", ".join(KEYS.shared_item)
    with scores_of_this_version(KEYS):
        asked = connection.execute(
            f"""SELECT {question}, min(battery) AS battery, min(question_text) AS question_text, min(options) AS options
                FROM survey_responses WHERE battery IS NOT NULL AND options IS NOT NULL AND question_text IS NOT NULL
                GROUP BY {question} ORDER BY {question}"""
        ).df()
    return asked.assign(cluster=linked_batteries(asked))
