"""The contents of the pages of surveys: boards, names, and the segments and questions that have pages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import duckdb
import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.boards.boards import load_evidence
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.boards.cuts import select_cut
from dtef_pipeline.site.content import Link
from dtef_pipeline.site.paths import board_page, choose_file_names, state_address
from dtef_pipeline.survey.attributes import NON_ANSWER_SQL
from dtef_pipeline.survey.boards.asking_settings import Setting, group_by_setting
from dtef_pipeline.survey.boards.board_rows import compute_board
from dtef_pipeline.survey.boards.survey_boards import BREAKDOWNS, PUBLISHED
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.identity import make_round_order
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.site.survey_labels import format_segment_label, format_setting_heading, map_variant_names
from dtef_pipeline.text.shortening import shorten

FAMILY = "survey"
_ENOUGH_PAIRS = 0.75
"""Share of the largest number of pairs of any setting, from which a setting has enough pairs."""
_LONGEST_TITLE = 110
"""Characters of a question in a table."""


class SegmentPage(NamedTuple):
    """A segment over all rounds."""

    place: int
    id: str
    attribute: str
    value: str
    label: str
    path: str
    n: float
    """Respondents in all rounds; NaN: not known."""
    n_rounds: int

    @property
    def link(self) -> Link:
        return Link(self.label, self.path)

    def pair_page(self, question: QuestionPage) -> str:
        """Return the address of a pair: this page with the question selected."""
        return state_address(self.path, question=PurePosixPath(question.path).stem)


class QuestionPage(NamedTuple):
    """A question of a round."""

    place: int
    round: str
    id: str
    text: str
    options: tuple[str, ...]
    path: str

    @property
    def title(self) -> str:
        return shorten(" ".join(self.text.split()), _LONGEST_TITLE)

    @property
    def link(self) -> Link:
        return Link(self.title, self.path)


class SurveyContents:
    """The data that the pages of surveys read."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    @cached_property
    def boards(self) -> Boards:
        """See `load_boards`."""
        return load_boards(self.connection)

    @property
    def overall(self) -> pd.DataFrame:
        return self.boards["overall"]

    @cached_property
    def metric(self) -> str:
        return str(self.overall["metric"].iloc[0]) if len(self.overall) else "js"

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The name of each variant."""
        return map_variant_names(self.overall) if len(self.overall) else {}

    @cached_property
    def settings(self) -> list[Setting]:
        """The settings, sorted by most ranked models, not much fewer pairs than others, most context."""
        ranked_rows = {key: rows[rows["rank"].notna() & ~rows["is_reference"]] for key, rows in group_by_setting(self.overall)}
        pairs = {key: int(rows["n_pairs"].max()) if len(rows) else 0 for key, rows in ranked_rows.items()}
        enough = _ENOUGH_PAIRS * max(pairs.values(), default=0)
        return sorted(ranked_rows, key=lambda key: (-len(ranked_rows[key]), pairs[key] < enough))

    @property
    def main(self) -> Setting:
        """The setting of the first leaderboard, which pages use if they show only one."""
        return self.settings[0]

    def title(self, setting: Setting) -> str:
        return format_setting_heading(setting, len({other.condition for other in self.settings}) > 1)

    def format_setting_title(self, row: Mapping[str, Any]) -> str:
        """Return a table row's setting, in words."""
        return self.title(Setting(str(row["context_level"]), str(row["condition"])))

    @cached_property
    def has_answers(self) -> bool:
        """Whether there are observed answers, which pages of segments and questions need."""
        return bool(self.settings) and has_table(self.connection, "survey_responses")

    @cached_property
    def segments(self) -> Mapping[str, SegmentPage]:
        """By id, countries first, then in the order of attributes and values."""
        if not self.has_answers:
            return {}
        rows = self.connection.execute(
            f"""
            SELECT segment, min(attribute), min(value), sum(n), count(*) FROM (
                SELECT round, segment, min(attribute) AS attribute, min(value) AS value, max(coalesce(segment_n, n)) AS n
                FROM survey_responses SEMI JOIN scores USING (round, segment) WHERE NOT {NON_ANSWER_SQL} GROUP BY ALL
            ) GROUP BY segment ORDER BY ALL
            """
        ).fetchall()
        files = choose_file_names(segment for segment, *_ in rows)
        pages = {
            id: SegmentPage(
                0,
                id,
                attribute,
                value,
                format_segment_label(attribute, value),
                _build_path("segments", files[id]),
                float("nan") if n is None else float(n),
                rounds,
            )
            for id, attribute, value, n, rounds in sorted(rows, key=lambda row: (row[1] != "country", row[1], row[2], row[0]))
        }
        return {id: page._replace(place=place) for place, (id, page) in enumerate(pages.items())}

    @cached_property
    def questions(self) -> Mapping[tuple[str, str], QuestionPage]:
        """By round and id, in the order of rounds and questionnaires."""
        if not self.has_answers:
            return {}
        rows = self.connection.execute(
            """
            SELECT round, question_id, min(question_text), min(options), min(question_order) AS place
            FROM survey_responses SEMI JOIN scores USING (round, question_id) GROUP BY round, question_id
            """
        ).fetchall()
        rows.sort(key=lambda row: (make_round_order(row[0]), row[4], row[1]))
        files = choose_file_names(f"{row[0]}-{row[1]}" for row in rows)
        return {
            (round, id): QuestionPage(
                place, round, id, text or id, tuple(options), _build_path("questions", files[f"{round}-{id}"])
            )
            for place, (round, id, text, options, _) in enumerate(rows)
        }

    @property
    def crumbs(self) -> list[Link]:
        return [Link("Surveys", board_page(FAMILY))]


def _build_path(folder: str, file: str) -> str:
    return f"{FAMILY}/{folder}/{file}.html"


Boards = Mapping[str, pd.DataFrame]
"""Rows by the name of their view."""


def load_boards(connection: duckdb.DuckDBPyConnection) -> Boards:
    """Return every published view, without questions that define a segment, with `name`, the model's name on pages.

    Boards that are not stored are computed, and tests are then empty, because boards and tests are stored together.
    """
    options = SurveyBoardOptions()
    lacking = [v.name for v in PUBLISHED if not has_table(connection, v.table) and (not v.needs or v.name == "comparisons")]
    evidence = load_evidence(connection, options) if lacking else None
    frames = {
        v.name: compute_board(connection, v.name, options, evidence)
        if v.name in lacking
        else _read_table(connection, v.table, v.name)
        for v in PUBLISHED
    }
    names = map_variant_names(frames["overall"]) if len(frames["overall"]) else {}
    return {name: _rename_models(frame, names) for name, frame in frames.items()}


def _read_table(connection: duckdb.DuckDBPyConnection, table: str, name: str) -> pd.DataFrame:
    if not has_table(connection, table):
        return pd.DataFrame()
    family = " AND family = 'survey'" if table == "comparisons" else ""
    frame = connection.execute(f"SELECT * FROM {table} WHERE targets = 'clean'{family}").df()
    return select_cut(frame, name, KEYS.groups) if table == BREAKDOWNS else frame


def _rename_models(frame: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    if "model_variant" not in frame:
        return frame
    variants = frame["model_variant"].astype(str)
    model_names = variants.map(names).fillna(frame["model"].astype(str))
    return frame.assign(name=model_names, is_reference=variants.map(is_computed).astype(bool))
