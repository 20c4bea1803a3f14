"""Examples of responses that could not be read, by model: what a reader of the counts wants to see next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Any

import duckdb

from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.report.markup import Column, is_unknown, long_text, named, note, table, text, whole
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.report.pair_texts import middle_left_out

_UNREAD = ("unparseable", "wrong_length", "refused")
_MOST_REASONS, _MOST_EXAMPLES, _EXAMPLES_IN_ALL = 4, 2, 200
"""Of a model, of a reason, and in all."""
_LONGEST_EXAMPLE = 400
"""Characters of an example."""
_LONGEST_QUESTION = 90
"""Characters of a question that are in sight."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_EXAMPLE_COLUMNS = [
    Column("model", "Model", text),
    Column("status", "Status", text),
    Column("reason", "Reason", text),
    Column("times", "Times", whole, "Predictions of this model with this status and reason, in all snapshots"),
    Column("asked", "Question and segment", named, "Of the example, with how it was asked"),
    Column("response", "Response", named, "As the model wrote it; of a long one the middle is left out"),
]


def examples(connection: duckdb.DuckDBPyConnection) -> str:
    """Markup: for each model its most frequent reasons with examples; nothing where every response could be read."""
    if not has_table(connection, "predictions"):
        return ""
    frame = connection.execute(_examples_sql(connection)).df()
    if not len(frame):
        return ""
    frame["status"] = frame["status"].str.replace("_", " ")
    frame["response"] = [None if is_unknown(words) else middle_left_out(words, _LONGEST_EXAMPLE) for words in frame["response"]]
    shown = frame.assign(
        asked=list(map(_prompt_place, frame.to_dict("records"))), response=[raw(words) for words in frame["response"]]
    )
    caption = f"Up to {_MOST_EXAMPLES} examples of each model's {_MOST_REASONS} most frequent reasons; all responses: dtef export responses"
    return "<h3>Responses that could not be read</h3>" + table(
        shown, _EXAMPLE_COLUMNS, caption=caption, row_head="model", data=frame
    )


def _prompt_place(row: Mapping[Any, Any]) -> str:
    """Markup of an example's question, and beneath it its segment and how it was asked."""
    how = f"{row['segment']}. {row['round']}, context {row['context_level']}, {row['condition']}, snapshot {row['snapshot']}"
    return long_text(row["question"], most=_LONGEST_QUESTION) + note(how)


def raw(words: Any) -> str:
    """Markup of what a model wrote: text alone, however it is made, in a box that it cannot leave."""
    if is_unknown(words):
        return ""
    visible = _CONTROL.sub("\ufffd", words) or "(empty)"
    return f'<pre class="raw">{escape(visible)}</pre>'


_PREDICTION = f"{', '.join(KEYS.pair)}, context_level, condition, model_variant, snapshot, draw, prompt_id"
_KIND = "model_variant, status, reason"


def _examples_sql(connection: duckdb.DuckDBPyConnection) -> str:
    """Of each model its most frequent reasons, with examples from different prompts, of different questions where there are."""
    known = "SELECT round, question_id, min(question_text) AS question_text FROM survey_responses GROUP BY ALL"
    texts = known if has_table(connection, "survey_responses") else "SELECT '' AS round, '' AS question_id, '' AS question_text"
    return f"""
    WITH unread AS (
        SELECT {_PREDICTION}, model, question_order, status, coalesce(reason, '') AS reason FROM scores
        WHERE status IN {_UNREAD}
    ), kinds AS (
        SELECT {_KIND}, count(*) AS times FROM unread GROUP BY {_KIND}
        QUALIFY row_number() OVER (PARTITION BY model_variant ORDER BY times DESC, status, reason) <= {_MOST_REASONS}
    ), prompts AS (
        SELECT *, row_number() OVER (
            PARTITION BY {_KIND}, round, question_id ORDER BY segment, context_level, condition, snapshot, draw
        ) AS of_question FROM unread JOIN kinds USING ({_KIND})
        QUALIFY row_number() OVER (PARTITION BY {_KIND}, prompt_id ORDER BY snapshot, draw) = 1
    ), chosen AS (
        SELECT * FROM prompts QUALIFY row_number() OVER (
            PARTITION BY {_KIND} ORDER BY of_question, question_order, round, segment, context_level, condition
        ) <= {_MOST_EXAMPLES}
    ), texts AS ({texts})
    SELECT chosen.model, chosen.model_variant, status, reason, times, round, segment, question_id,
        coalesce(question_text, question_id) AS question, context_level, condition, snapshot, predictions.response
    FROM chosen JOIN predictions USING ({_PREDICTION}) LEFT JOIN texts USING (round, question_id)
    ORDER BY chosen.model, model_variant, times DESC, status, reason, question_order, round, segment, context_level, condition
    LIMIT {_EXAMPLES_IN_ALL}
    """
