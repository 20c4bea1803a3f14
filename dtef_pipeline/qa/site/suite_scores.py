"""Data of the pages of the qa family: boards, and the items of each suite with the score of every model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import duckdb
import pandas as pd

from dtef_pipeline.boards.cells import register_missing_tables
from dtef_pipeline.qa.scoring import load_latest_scores
from dtef_pipeline.qa.site.qa_labels import WORDS, format_suite_title, rank_metric
from dtef_pipeline.qa.tables import QA_TABLES
from dtef_pipeline.report.row_reader import StoredRows
from dtef_pipeline.report.terminal import rename_variants
from dtef_pipeline.site.content import Link, convert_to_rows
from dtef_pipeline.site.paths import choose_file_names, state_address
from dtef_pipeline.text.shortening import shorten_to_line

UNREAD_SCORE, NO_SCORE = -1.0, -2.0
"""Codes in place of a score: the response could not be read (it counts 0), or has no score for another reason."""
RIGHT_FROM = 0.5
"""Lowest score of an answer that counts as right, for partial scores."""
QA_LATEST, SHOWN_RUNS, SHOWN_ITEMS = "latest_scores_of_qa", "shown_runs_of_qa", "shown_items_of_qa"
"""Tables of the connection: the scores that boards read, the runs whose responses are shown, and every item of a suite with its place."""
LINE_CHARACTERS, SEARCHED_CHARACTERS = 90, 1_500
"""Characters of a question in lists, and of a question with its options in the search index."""
SHOWN_RUN = "suite, part, condition, model_variant, snapshot"
"""Key of a run among the runs of all parts."""
_MAKE_SHOWN_RUNS = f"""
    CREATE OR REPLACE TEMP TABLE {SHOWN_RUNS} AS
    WITH scored AS (SELECT DISTINCT {SHOWN_RUN} FROM {QA_LATEST})
    FROM scored UNION ALL
    SELECT suite, part, condition, model_variant, coalesce(arg_max(snapshot, answered_at), max(snapshot)) FROM qa_responses
    ANTI JOIN scored USING (suite, part, condition, model_variant) GROUP BY ALL
"""
"""The runs that boards read, and the latest run of what has no score."""
_MAKE_SHOWN_ITEMS = f"""
    CREATE OR REPLACE TEMP TABLE {SHOWN_ITEMS} AS
    WITH scored AS (SELECT DISTINCT suite, part, item_id FROM {QA_LATEST})
    SELECT suite, part, item_id, row_number() OVER (PARTITION BY suite ORDER BY part, position NULLS LAST, item_id) - 1 AS place,
        coalesce(left(text, {4 * LINE_CHARACTERS}), '') AS text,
        left(concat_ws(' ', text, array_to_string(options, ' ')), {SEARCHED_CHARACTERS}) AS words
    FROM qa_items FULL JOIN scored USING (suite, part, item_id)
"""
"""The items of the files, then those that only have scores, because they were removed from the files."""
_MEAN_SCORES = f"""
    SELECT suite::VARCHAR AS suite, condition::VARCHAR AS condition, metric::VARCHAR AS metric, measured_by::VARCHAR AS measured_by,
        model_variant::VARCHAR AS model_variant, place,
        CASE WHEN count(score) = 0 THEN {NO_SCORE} WHEN bool_and(status = 'unparseable') THEN {UNREAD_SCORE}
            ELSE round(avg(score), 4) END AS score
    FROM {QA_LATEST} JOIN {SHOWN_ITEMS} USING (suite, part, item_id) WHERE suite = ? GROUP BY ALL ORDER BY ALL
"""
_VARIANTS = f"""
    SELECT DISTINCT model::VARCHAR AS model, model_variant::VARCHAR AS model_variant FROM {QA_LATEST}
    UNION SELECT DISTINCT model, model_variant FROM qa_responses
"""


def build_cut_sql(column: str, limit: int) -> str:
    """Return SQL of a text with at most `limit` characters; one that is cut ends with `…`."""
    return f"CASE WHEN length({column}) > {limit} THEN left({column}, {limit} - 1) || '…' ELSE {column} END"


class BoardKey(NamedTuple):
    """What the rows of a board share."""

    suite: str
    condition: str
    metric: str
    measured_by: str

    def select(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a table that have this key."""
        return frame[(frame[list(self._fields)] == list(self)).all(axis=1)]


@dataclass(frozen=True)
class SuiteScores:
    """The items of a suite in their order, with the score of each model."""

    suite: str
    file: str
    """Base name of its files."""
    items: pd.DataFrame
    """`place` (place from 0), `part`, `item_id`, `line` (beginning of the question), `page` (its address), `words` (for the search)."""
    variants: Sequence[str]
    """Model variants with responses or scores."""
    keys: Sequence[BoardKey]
    """Keys of its boards, the main one first."""
    means: pd.DataFrame
    """One row per key, `model_variant` and item (`place`): `score` is the mean over draws, UNREAD_SCORE or NO_SCORE."""

    @property
    def link(self) -> Link:
        """Its title with its page."""
        return Link(format_suite_title(self.suite), f"qa/suites/{self.file}.html")

    @cached_property
    def parts(self) -> list[str]:
        return list(dict.fromkeys(self.items["part"]))

    @cached_property
    def main(self) -> pd.DataFrame:
        """The scored rows of the main board, with the columns of `items`; unreadable responses count 0."""
        rows = self.keys[0].select(self.means) if self.keys else self.means
        rows = rows[rows["score"] != NO_SCORE]
        return rows.assign(score=rows["score"].clip(lower=0)).merge(self.items.drop(columns="words"), on="place")

    @cached_property
    def models(self) -> list[str]:
        """The variants by their mean on the main board, the best first."""
        best = self.main.groupby("model_variant")["score"].mean().to_dict()
        return sorted(self.variants, key=lambda variant: (-best.get(variant, -1.0), variant))


class QaScores:
    """The scores on all pages. `connection` has `qa_scores` and views named like the family's other tables; missing ones are empty."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.rows = StoredRows(connection)
        self.connection = connection
        register_missing_tables(connection, {name: spec.schema for name, spec in QA_TABLES.items()})
        connection.register(QA_LATEST, load_latest_scores(connection))
        connection.execute(_MAKE_SHOWN_RUNS)
        connection.execute(_MAKE_SHOWN_ITEMS)
        variants = rename_variants(connection.sql(_VARIANTS).df())
        self.names: dict[str, str] = dict(zip(variants["model_variant"], variants["model"], strict=True))
        board = self.rows.frame("qa_board")
        texts = {name: board[name].fillna("") for name in ("condition", "metric", "measured_by", "note", "exposure")}
        self.board = board.assign(**texts, model=board["model_variant"].map(self.names).fillna(board["model"]))
        """The rows of `qa_board` with the models' names on the site."""
        overall = self.select_cut("overall")
        self.exposure: dict[str, str] = dict(zip(overall["suite"], overall["exposure"], strict=True))

    def select_cut(self, cut: str) -> pd.DataFrame:
        """Return the rows of a cut of `board`."""
        return self.board[self.board["cut"] == cut]

    def read_rows(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        """Return the rows of a table with names in words."""
        if "model_variant" in frame:
            frame = frame.assign(model=frame["model_variant"].map(self.names).fillna(frame["model"]))
        return convert_to_rows(frame, **{name: make for name, make in WORDS.items() if name in frame})

    @cached_property
    def suites(self) -> dict[str, SuiteScores]:
        """Every suite with items or scores, by name."""
        names = self.connection.sql(f"SELECT DISTINCT suite FROM {SHOWN_ITEMS} ORDER BY suite").fetchall()
        return {name: self._build_suite(name, file) for name, file in choose_file_names(name for (name,) in names).items()}

    def _build_suite(self, name: str, file: str) -> SuiteScores:
        items = self.connection.sql(f"SELECT * FROM {SHOWN_ITEMS} WHERE suite = ? ORDER BY place", params=[name]).df()
        lines = [
            shorten_to_line(text, LINE_CHARACTERS) or item for text, item in zip(items["text"], items["item_id"], strict=True)
        ]
        pages = [state_address(f"qa/suites/{file}.html", item=item) for item in items["item_id"]]
        means = self.connection.sql(_MEAN_SCORES, params=[name]).df()
        sizes = means.groupby(list(BoardKey._fields)).size().to_dict()
        keys = sorted(map(BoardKey._make, sizes), key=lambda key: (rank_metric(key.metric), -sizes[key], key))
        runs = self.connection.sql(f"SELECT DISTINCT model_variant FROM {SHOWN_RUNS} WHERE suite = ?", params=[name]).fetchall()
        items = items.drop(columns=["suite", "text"]).assign(line=lines, page=pages)
        return SuiteScores(name, file, items, [variant for (variant,) in runs], keys, means)

    @cached_property
    def item_scores(self) -> pd.DataFrame:
        """Every score of each suite's main board: the columns of `SuiteScores.main`, `model`, and `item` and `label` over all suites."""
        rows = pd.concat([suite.main for suite in self.suites.values()], ignore_index=True)
        titles = rows["suite"].map(format_suite_title)
        return rows.assign(
            model=rows["model_variant"].map(self.names),
            item=rows["suite"] + "/" + rows["part"] + "/" + rows["item_id"],
            label=titles + ": " + rows["line"],
        )
