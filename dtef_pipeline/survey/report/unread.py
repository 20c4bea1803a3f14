"""Examples of responses that could not be read, by model: what a reader of the counts wants to see next."""

from __future__ import annotations

import re
from html import escape
from typing import Any

import duckdb

from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.report.markup import Column, is_unknown, named, table, text, whole
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.report.pair_texts import middle_left_out

_UNREAD = ("unparseable", "wrong_length", "refused")
_MOST_REASONS, _MOST_EXAMPLES, _EXAMPLES_IN_ALL = 4, 2, 200
"""Of a model, of a reason, and in all."""
_LONGEST_EXAMPLE = 400
"""Characters of an example."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_EXAMPLE_COLUMNS = [
    Column("model", "Model", text),
    Column("status", "Status", text),
    Column("reason", "Reason", text),
    Column("times", "Times", whole, "Predictions of this model with this status and reason, in all snapshots"),
    Column("place", "Pair", text, "Round, segment, question, context level, condition and snapshot of the example"),
    Column("response", "Response", named, "As the model wrote it; of a long one the middle is left out"),
]


def examples(connection: duckdb.DuckDBPyConnection) -> str:
    """Markup: for each model its most frequent reasons with examples; nothing where every response could be read."""
    if not has_table(connection, "predictions"):
        return ""
    frame = connection.execute(_EXAMPLES_SQL).df()
    if not len(frame):
        return ""
    frame["status"] = frame["status"].str.replace("_", " ")
    frame["response"] = [None if is_unknown(words) else middle_left_out(words, _LONGEST_EXAMPLE) for words in frame["response"]]
    shown = frame.assign(response=[raw(words) for words in frame["response"]])
    caption = f"Up to {_MOST_EXAMPLES} examples of each model's {_MOST_REASONS} most frequent reasons; all responses: dtef responses export"
    return "<h3>Responses that could not be read</h3>" + table(
        shown, _EXAMPLE_COLUMNS, caption=caption, row_head="model", data=frame
    )


def raw(words: Any) -> str:
    """Markup of what a model wrote: text alone, however it is made, in a box that it cannot leave."""
    if is_unknown(words):
        return ""
    visible = _CONTROL.sub("\ufffd", words)
    return f'<pre class="raw">{escape(visible)}</pre>'


_PREDICTION = f"{', '.join(KEYS.pair)}, context_level, condition, model_variant, snapshot, draw, prompt_id"
_KIND = "model_variant, status, reason"
_EXAMPLES_SQL = f"""
    WITH unread AS (
        SELECT {_PREDICTION}, model, question_order, status, coalesce(reason, '') AS reason FROM scores
        WHERE status IN {_UNREAD}
    ), kinds AS (
        SELECT {_KIND}, count(*) AS times FROM unread GROUP BY {_KIND}
        QUALIFY row_number() OVER (PARTITION BY model_variant ORDER BY times DESC, status, reason) <= {_MOST_REASONS}
    ), chosen AS (
        SELECT * FROM unread JOIN kinds USING ({_KIND}) QUALIFY row_number() OVER (
            PARTITION BY {_KIND} ORDER BY question_order, round, segment, context_level, condition, snapshot, draw
        ) <= {_MOST_EXAMPLES}
    )
    SELECT chosen.model, chosen.model_variant, status, reason, times,
        concat_ws(', ', round, segment, question_id, 'context ' || context_level, condition, snapshot) AS place, predictions.response
    FROM chosen JOIN predictions USING ({_PREDICTION})
    ORDER BY chosen.model, model_variant, times DESC, status, reason, question_order, place, draw LIMIT {_EXAMPLES_IN_ALL}
    """
