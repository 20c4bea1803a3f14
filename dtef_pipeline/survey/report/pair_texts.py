"""What models were shown and what they wrote: prompts and responses inside the page, as many as its budget of bytes holds.

Texts are kept once: prompts are lists of lines, most of which they share. All of it is data in a script element, drawn as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import duckdb

from dtef_pipeline.asking.models import COMPUTED_SQL
from dtef_pipeline.boards.cells import cells_sql, has_table, parameters
from dtef_pipeline.report.markup import paragraph
from dtef_pipeline.report.page_files import packed
from dtef_pipeline.survey.blueprint.options import ContextLevel
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.text.counted import counted

MOST_TEXT_BYTES = 1_500_000
"""Of prompts and responses in one page."""
LONGEST_TEXT = 2_000
"""Characters of a response or of a line of a prompt; of longer ones the middle is left out."""
_ROWS_LOOKED_AT = 20_000
"""Responses that are looked at: more never fit."""
_FRAME, _A_RESPONSE = 50, 40
"""Bytes around all texts, and of a response beside its texts at most: where it belongs."""


_Row = Mapping[str, Any]


class Places(NamedTuple):
    """Where the page has what a response is about: the numbers of questions (round and id), segments, models (variants) and ways."""

    questions: Mapping[tuple[str, str], int]
    segments: Mapping[str, int]
    models: Mapping[str, int]
    ways: Mapping[tuple[str, str], int]

    def of(self, row: _Row) -> str | None:
        """The numbers of a row with points between them; None: the page does not have its pair."""
        question, segment = self.questions.get((row["round"], row["question_id"])), self.segments.get(row["segment"])
        if question is None or segment is None:
            return None
        return f"{question}.{segment}.{self.models[row['model_variant']]}.{self.ways[row['context_level'], row['condition']]}"


class Texts:
    """Texts and prompts, each once, with the bytes that they and the responses made of them take in the page."""

    def __init__(self) -> None:
        self.pool: dict[str, int] = {}
        self.prompts: dict[tuple[int, ...], int] = {}
        self.bytes = _FRAME

    def add(self, row: _Row) -> list[int]:
        """The numbers of a response: prompt (-1: not known), response, status, reason and snapshot in the pool, draw."""
        self.bytes += _A_RESPONSE
        words = row["error"] if row["response"] is None else row["response"]
        told = (self._text(text) for text in (words, row["status"], row["reason"], row["snapshot"]))
        return [self._prompt(row), *told, int(row["draw"])]

    def _prompt(self, row: _Row) -> int:
        if row["user"] is None:
            return -1
        lines = tuple(map(self._text, [row["system"], *row["user"].split("\n")]))
        self.bytes += 0 if lines in self.prompts else 7 * len(lines)
        return self.prompts.setdefault(lines, len(self.prompts))

    def _text(self, text: str | None) -> int:
        text = middle_left_out(text or "")
        if text not in self.pool:
            self.pool[text] = len(self.pool)
            self.bytes += len(packed(text).encode()) + 1
        return self.pool[text]


def middle_left_out(text: str, most: int = LONGEST_TEXT) -> str:
    """The text, without its middle where it is longer than `most` characters: answers stand at the beginning or at the end."""
    if len(text) <= most:
        return text
    tail = most // 4
    head = most - tail
    return f"{text[:head]} … [{counted(len(text) - most, 'character')} left out] … {text[-tail:]}"


def texts(connection: duckdb.DuckDBPyConnection, places: Places, most_bytes: int = MOST_TEXT_BYTES) -> str:
    """Markup: the data that the script of pairs shows, and a word about what is left out. Nothing where no model was asked."""
    if not has_table(connection, "predictions"):
        return ""
    (count,) = connection.execute(f"{_said_sql(connection)} SELECT count(*) FROM said", parameters(_ALL_TEXTS)).fetchone() or (
        0,
    )
    if not count:
        return ""
    data, kept = held(_rows(connection), places, most_bytes)
    words = f"The page holds the prompts and responses behind {kept:,} of {counted(count, 'prediction')} of language models"
    rest = ", in the order of the questions. All of them: dtef export responses responses.jsonl; those of a pair: the command beneath it."
    return (
        paragraph(words + (rest if kept < count else "."))
        + f'<script type="application/json" id="pair-text-data">{packed(data)}</script>'
    )


def held(rows: Iterable[_Row], places: Places, most_bytes: int) -> tuple[dict[str, Any], int]:
    """The texts of the first rows of `_rows`, as many as fit; and how many rows that are.

    `pool`: texts. `prompts`: numbers in the pool, first that of the system prompt, then those of the lines. `said`: lists of responses, as
    `Texts.add` has them, by `Places.of`.
    """
    texts, said, kept = Texts(), dict[str, list[list[int]]](), 0
    held_texts = held_prompts = 0
    for row in rows:
        if (at := places.of(row)) is None:
            continue
        response = texts.add(row)
        if texts.bytes > most_bytes:
            break
        said.setdefault(at, []).append(response)
        kept, held_texts, held_prompts = kept + 1, len(texts.pool), len(texts.prompts)
    return {"pool": list(texts.pool)[:held_texts], "prompts": list(texts.prompts)[:held_prompts], "said": said}, kept


_ALL_TEXTS = SurveyBoardOptions(targets="all", non_answers=True)
_CELL = f"{', '.join(KEYS.pair)}, context_level, condition, model_variant, snapshot"


def _said_sql(connection: duckdb.DuckDBPyConnection) -> str:
    """Common table expressions ending in `said`: the scored predictions of language models in the snapshots that the boards take."""
    return f"""{cells_sql(connection, _ALL_TEXTS)}, said AS (
        SELECT {_CELL}, draw, question_order, prompt_id, status, reason FROM scores SEMI JOIN cells USING ({_CELL})
        WHERE NOT {COMPUTED_SQL} AND status NOT IN ('budget', 'missing'))"""


def _rows(connection: duckdb.DuckDBPyConnection) -> list[_Row]:
    order = f"question_order, round, question_id, segment, {ContextLevel.ORDER_SQL}, condition, model_variant, draw"
    prompt = f"{', '.join(KEYS.pair)}, context_level, condition, prompt_id"
    nothing = f'(SELECT {prompt}, NULL AS system, NULL AS "user" FROM said LIMIT 0)'
    prompts = "blueprints" if has_table(connection, "blueprints") else nothing
    query = f"""{_said_sql(connection)}, first AS (SELECT * FROM said ORDER BY {order} LIMIT {_ROWS_LOOKED_AT})
        SELECT round, question_id, segment, context_level, condition, model_variant, snapshot, draw, status, reason,
            asked.response, asked.error, prompts.system, prompts."user"
        FROM first JOIN predictions AS asked USING ({_CELL}, draw, prompt_id)
        LEFT JOIN (SELECT DISTINCT {prompt}, system, "user" FROM {prompts}) AS prompts USING ({prompt})
        ORDER BY {order}"""
    found: list[_Row] = connection.sql(query, params=parameters(_ALL_TEXTS)).to_arrow_table().to_pylist()
    return found
