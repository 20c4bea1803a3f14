"""The contents of the pages of surveys: boards, names, and the segments and questions that have pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import duckdb
import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.site.content import Link
from dtef_pipeline.site.paths import board_page, choose_file_names, state_address
from dtef_pipeline.survey.attributes import NON_ANSWER_SQL
from dtef_pipeline.survey.blueprint.options import ContextLevel
from dtef_pipeline.survey.boards.survey_boards import BREAKDOWNS, BY_NAME
from dtef_pipeline.survey.boards.survey_subject import Setting, group_by_setting
from dtef_pipeline.survey.identity import make_round_order
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.site.survey_labels import format_condition, format_segment_label, map_variant_names
from dtef_pipeline.tables import select_cut
from dtef_pipeline.text.shortening import shorten

FAMILY = "survey"
SENTENCES, GUIDES = "survey/sentences.txt.j2", "survey/guides.txt.j2"
CRUMBS = (Link("Surveys", board_page(FAMILY)),)
_ENOUGH_PAIRS = 0.75
"""Share of the largest number of pairs of any setting, from which a setting has enough pairs."""
_LONGEST_TITLE = 110
"""Characters of a question in a table."""


class SegmentPage(NamedTuple):
    """A segment over all rounds. `s`: its place among the segments."""

    s: int
    segment: str
    attribute: str
    label: str
    page: str
    n_people: float
    """Respondents in all rounds; NaN: not known."""
    n_rounds: int

    @property
    def link(self) -> Link:
        return Link(self.label, self.page)

    def pair_page(self, question: QuestionPage) -> str:
        """Return the address of a pair: this page with the question selected."""
        return state_address(self.page, question=question.name)


class QuestionPage(NamedTuple):
    """A question of a round. `q`: its place among the questions."""

    q: int
    round: str
    question_id: str
    title: str
    text: str
    options: Sequence[str]
    name: str
    """The name of its file, and in addresses."""

    @property
    def page(self) -> str:
        return f"{FAMILY}/questions/{self.name}.html"

    @property
    def link(self) -> Link:
        return Link(self.title, self.page)


class Series(NamedTuple):
    """A model at one context level and condition."""

    name: str
    model_variant: str
    context_level: str
    condition: str
    is_reference: bool

    @property
    def setting(self) -> Setting:
        return Setting(self.context_level, self.condition)


class SurveyContents:
    """The data that the pages of surveys read."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._boards: dict[str, pd.DataFrame] = {}

    def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, values).fetchall()

    def query_frame(self, sql: str, *values: object) -> pd.DataFrame:
        frame: Any = self.connection.execute(sql, values).df()
        return pd.DataFrame(frame)

    def board(self, name: str) -> pd.DataFrame:
        """Return a stored board, without questions that define a segment, with `name`, the model's name on pages, and `is_reference`.

        Empty if it is not stored.
        """
        if name not in self._boards:
            frame = self._read_board(name)
            if len(frame):
                variants = frame["model_variant"].astype(str)
                names = map_variant_names(frame) if name == "overall" else self.names
                model_names = variants.map(names).fillna(frame["model"].astype(str))
                frame = frame.assign(name=model_names, is_reference=variants.map(is_computed).astype(bool))
            self._boards[name] = frame
        return self._boards[name]

    def _read_board(self, name: str) -> pd.DataFrame:
        table = BY_NAME[name].table
        if not has_table(self.connection, table):
            return pd.DataFrame()
        family = " AND family = 'survey'" if name == "comparisons" else ""
        frame = self.query_frame(f"SELECT * FROM {table} WHERE targets = 'clean'{family}")
        return select_cut(frame, name, KEYS.groups) if table == BREAKDOWNS else frame

    @cached_property
    def metric(self) -> str:
        overall = self.board("overall")
        return str(overall["metric"].iloc[0]) if len(overall) else "js"

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The name of each variant."""
        overall = self.board("overall")
        return dict(zip(overall["model_variant"], overall["name"], strict=True)) if len(overall) else {}

    @cached_property
    def settings(self) -> list[Setting]:
        """The settings, sorted by most ranked models, not much fewer pairs than others, most context.

        The first is that of the first leaderboard, which pages use if they show only one.
        """
        settings = dict(group_by_setting(self.board("overall")))
        ranked_rows = {key: rows[rows["rank"].notna() & ~rows["is_reference"]] for key, rows in settings.items()}
        pairs = {key: rows["n_pairs"].max() if len(rows) else 0 for key, rows in ranked_rows.items()}
        enough = _ENOUGH_PAIRS * max(pairs.values(), default=0)
        return sorted(ranked_rows, key=lambda key: (-len(ranked_rows[key]), pairs[key] < enough))

    @cached_property
    def series(self) -> Sequence[Series]:
        """The models by place: the settings in the order of the leaderboards, in each language models first."""
        rows = self.board("overall")[list(Series._fields)].itertuples(index=False)
        return sorted((Series(*row) for row in rows), key=lambda one: (self.settings.index(one.setting), one.is_reference, one))

    @cached_property
    def main_series(self) -> list[int]:
        """The places of the series that means are over: on the first leaderboard, language models or, if there are none, baselines."""
        places = [place for place, series in enumerate(self.series) if series.setting == self.settings[0]]
        return [place for place in places if not self.series[place].is_reference] or places

    @property
    def noun(self) -> str:
        """The noun for these series: `model` or `baseline`."""
        return "baseline" if self.series[self.main_series[0]].is_reference else "model"

    def select_models(self, name: str) -> pd.DataFrame:
        """Return the models' rows of a board in the setting of the first leaderboard."""
        rows = self.settings[0].select_rows(self.board(name))
        return rows[~rows["is_reference"]] if len(rows) else rows

    def title(self, setting: Setting) -> str:
        """Return `With 5 context questions`, with the condition if there are several."""
        heading = ContextLevel(setting.level).heading
        is_only = len({other.condition for other in self.settings}) == 1
        return heading if is_only else f"{heading}, {format_condition(setting.condition)}"

    def format_setting_title(self, row: Mapping[str, Any]) -> str:
        """Return a table row's setting, in words."""
        return self.title(Setting(str(row["context_level"]), str(row["condition"])))

    @cached_property
    def has_answers(self) -> bool:
        """Whether there are observed answers, which pages of segments and questions need."""
        return bool(self.settings) and has_table(self.connection, "survey_responses")

    @cached_property
    def segments(self) -> Sequence[SegmentPage]:
        """The segments by place: countries first, then in the order of attributes and values."""
        if not self.has_answers:
            return []
        rows = self.query(f"""
            SELECT segment, min(attribute) AS attribute, min(value) AS value, coalesce(sum(n), 'nan'::DOUBLE), count(*) FROM (
                SELECT round, segment, min(attribute) AS attribute, min(value) AS value, max(coalesce(segment_n, n)) AS n
                FROM survey_responses SEMI JOIN scores USING (round, segment) WHERE NOT {NON_ANSWER_SQL} GROUP BY ALL
            ) GROUP BY segment ORDER BY min(attribute) <> 'country', 2, 3, 1
            """)
        files = choose_file_names(segment for segment, *_ in rows)
        return [
            SegmentPage(
                s, id, attribute, format_segment_label(attribute, value), f"{FAMILY}/segments/{files[id]}.html", n, n_rounds
            )
            for s, (id, attribute, value, n, n_rounds) in enumerate(rows)
        ]

    @cached_property
    def questions(self) -> Sequence[QuestionPage]:
        """The questions by place, in the order of rounds and questionnaires."""
        if not self.has_answers:
            return []
        rows = self.query("""
            SELECT round, question_id, coalesce(nullif(min(question_text), ''), question_id), min(options), min(question_order) AS place
            FROM survey_responses SEMI JOIN scores USING (round, question_id) GROUP BY round, question_id ORDER BY place, question_id
            """)
        rows.sort(key=lambda row: make_round_order(row[0]))
        files = choose_file_names(f"{round}-{id}" for round, id, *_ in rows)
        titles = shorten_apart([" ".join(text.split()) for _, _, text, *_ in rows], _LONGEST_TITLE)
        return [
            QuestionPage(q, round, id, title, text, options, files[f"{round}-{id}"])
            for q, ((round, id, text, options, _), title) in enumerate(zip(rows, titles, strict=True))
        ]


def shorten_apart(texts: Sequence[str], limit: int) -> list[str]:
    """Shorten each text to `limit` characters, except different texts that would then read alike: these stay whole."""
    n_texts = Counter(shorten(text, limit) for text in set(texts))
    return [short if n_texts[short := shorten(text, limit)] == 1 else text for text in texts]
