"""The batteries of questions, linked over rounds. Results of different batteries are independent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.cells import has_table, require_current_scores
from dtef_pipeline.identity import digest
from dtef_pipeline.survey.answer_scales.batteries import BY_SURVEY, Wording, count_common_words, link_batteries
from dtef_pipeline.survey.identity import make_question_key, make_round_order
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.tables import QUESTION_BATTERIES

_LINKED_TABLE = "linked_batteries"
_SHARED_WORDS = 3
"""Words that texts must share to be shown as what they share."""


def load_question_clusters(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Return `cluster`, the linked battery, of each (round, question_id) of `survey_responses`; no rows without that table.

    After `take_links`, its links are used: for a connection to some of the rounds, because the other rounds link batteries, too. Raises
    WarehouseError for a survey that was ingested by a version without batteries.
    """
    if has_table(connection, _LINKED_TABLE):
        return pd.DataFrame(connection.table(_LINKED_TABLE).df())
    if not has_table(connection, "survey_responses"):
        return pd.DataFrame(columns=[*KEYS.shared_item, "cluster"], dtype="str")
    return load_linked_questions(connection)[[*KEYS.shared_item, "cluster"]]


def take_links(connection: duckdb.DuckDBPyConnection, clusters: pd.DataFrame) -> None:
    """Make `load_question_clusters` return these links, regardless of the connection's rounds."""
    connection.register(_LINKED_TABLE, clusters)


def load_linked_questions(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Return one row per question of a round of `survey_responses`: its battery, text and options, and its linked battery as `cluster`.

    Raises WarehouseError for a survey that was ingested by a version without batteries.
    """
    question = ", ".join(KEYS.shared_item)
    with require_current_scores(KEYS):
        questions = connection.execute(
            f"""SELECT {question}, min(battery) AS battery, min(question_text) AS question_text, min(options) AS options
                FROM survey_responses WHERE battery IS NOT NULL AND options IS NOT NULL AND question_text IS NOT NULL
                GROUP BY {question} ORDER BY {question}"""
        ).df()
    return questions.assign(cluster=link_batteries(questions))


def load_questionnaires(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Return `load_linked_questions` in the order of rounds and questionnaires; `same_item` is equal if text and options are equal."""
    places = connection.execute(
        "SELECT round, question_id, min(question_order) AS place FROM survey_responses GROUP BY ALL"
    ).df()
    rows = load_linked_questions(connection).merge(places, on=["round", "question_id"])
    rows = rows.assign(order=rows["round"].map(make_round_order)).sort_values(["order", "place"], ignore_index=True)
    keys = [digest(*make_question_key(*wording)) for wording in zip(rows["question_text"], rows["options"], strict=True)]
    return rows.assign(same_item=keys)


def build_question_batteries(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return one row of schema QUESTION_BATTERIES per question of a round; no rows without `survey_responses`.

    Raises WarehouseError for a survey that was ingested by a version without batteries.
    """
    if not has_table(connection, "survey_responses"):
        return QUESTION_BATTERIES.empty_table()
    questions = load_questionnaires(connection)
    reasons = {cluster: explain_link(group) for cluster, group in questions.groupby("cluster", sort=False)}
    rows = questions.assign(linked_battery=questions["cluster"], reason=questions["cluster"].map(reasons))[
        QUESTION_BATTERIES.names
    ]
    return pa.Table.from_pandas(rows, schema=QUESTION_BATTERIES, preserve_index=False).replace_schema_metadata(None)


def explain_link(questions: pd.DataFrame) -> str:
    """Return why the questions of a linked battery are together; empty for a single question. `questions` are rows of
    `load_questionnaires`.
    """
    return "; ".join(dict.fromkeys(_list_link_reasons(questions)))


def _list_link_reasons(questions: pd.DataFrame) -> Iterator[str]:
    for _, rows in questions.groupby(["round", "battery"], sort=False):
        name = str(rows["battery"].iloc[0])
        items = rows.drop_duplicates("same_item")
        if name.startswith(BY_SURVEY):
            yield f"named {name.removeprefix(BY_SURVEY)} by the survey"
        elif len(items) > 1:
            yield _describe_shared_wording(list(items["question_text"]), list(items["options"]))
    if questions.groupby("same_item")["round"].nunique().max() > 1:
        yield "questions asked in several rounds"
    elif len({*questions["round"]}) > 1:
        yield "questions with other words or options in another round"


def _describe_shared_wording(texts: Sequence[str], options: Sequence[Sequence[str]]) -> str:
    """Return the common wording or scale of a block's questions."""
    words = [question.split() for question in texts]
    opening, ending = count_common_words(words), count_common_words([[*reversed(word_list)] for word_list in words])
    if opening >= _SHARED_WORDS:
        return f"same stem: “{' '.join(words[0][:opening])} …”"
    if ending >= _SHARED_WORDS:
        return f"same stem: “… {' '.join(words[0][-ending:])}”"
    lacking = not any(Wording.reduce_wording(question, choices).asks for question, choices in zip(texts, options, strict=True))
    return (
        "items of one list with the same scale" if lacking else "neighbouring questions with the same scale, or repeated later"
    )
