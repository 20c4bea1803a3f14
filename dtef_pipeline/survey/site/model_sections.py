"""The survey sections of a model's page: strengths and weaknesses, and the worst answers with prompt and response."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from dtef_pipeline.site.content import Block, Column, Fold, Section, Table, convert_to_rows
from dtef_pipeline.site.leads import first_and_last
from dtef_pipeline.site.number_text import show
from dtef_pipeline.site.sentences import write_sentence
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.survey.blueprint.wording import format_attribute
from dtef_pipeline.survey.boards.schemas import BOARD_COLUMNS
from dtef_pipeline.survey.site.contents import SENTENCES, SurveyContents
from dtef_pipeline.survey.site.detail_pages import Axis
from dtef_pipeline.survey.site.pairs import ANSWERS, PAIRS, SCORED, Place, Texts, show_pair
from dtef_pipeline.survey.site.survey_labels import MARGINAL

_WORST_SHOWN, _UNREAD_SHOWN = 5, 3
"""Answers shown that could be read, and that could not."""
_ATTRIBUTE_COLUMNS = (
    Column("attribute", "Attribute"),
    Column("score", "Score", "score", ends=("score_low", "score_high")),
    Column("skill", "Skill", "number", BOARD_COLUMNS["skill"], ends=("skill_low", "skill_high")),
    Column("n_pairs", "Pairs", "count"),
)
_LEAD_COLUMNS = (
    Column("lead", "Lead", "signed", f"Score minus that of the {MARGINAL} on the same pairs"),
    Column("score", "Score", "score"),
    Column("pairs", "Pairs", "count"),
)


@dataclass(frozen=True)
class SurveyModelSections:
    """The sections of each model, by name."""

    contents: SurveyContents

    @cached_property
    def worst(self) -> pd.DataFrame:
        """The lowest scores by series, of readable answers, then of others: `series`, `s`, `q`, `score`, `code`, `observed`, `is_read`."""
        return self.contents.query_frame(f"""
            SELECT series, s, q, score, code, observed, NOT starts_with(code, '!') AS is_read
            FROM {SCORED} JOIN (SELECT s, q, series, code FROM {ANSWERS}) USING (s, q, series)
            JOIN (SELECT s, q, observed FROM {PAIRS}) USING (s, q)
            QUALIFY row_number() OVER (PARTITION BY series, is_read ORDER BY score, md5('{SEED}/' || s || '/' || q))
                <= CASE WHEN is_read THEN {_WORST_SHOWN} ELSE {_UNREAD_SHOWN} END
            ORDER BY series, is_read DESC, score, s, q
            """)

    @property
    def places(self) -> list[Place]:
        """The pairs whose texts the sections show."""
        return list(zip(self.worst["s"], self.worst["q"], strict=True))

    def build_sections(self, name: str, texts: Texts) -> list[Section]:
        """Return the sections of a model; none if it is not on the first leaderboard."""
        series = next((place for place in self.contents.main_series if self.contents.series[place].name == name), None)
        return [] if series is None else [self._build_strengths_section(series), self._build_worst_section(series, texts)]

    def _build_strengths_section(self, series: int) -> Section:
        attributes = self.contents.select_models("attribute")
        if len(attributes):
            attributes = attributes[attributes["model_variant"] == self.contents.series[series].model_variant]
            attributes = attributes.sort_values("score", ascending=False, kind="stable")
        blocks: list[Block] = [
            Table("By attribute", _ATTRIBUTE_COLUMNS, convert_to_rows(attributes, attribute=format_attribute))
        ]
        rows = {"Segment": self._list_leads("s", series), "Question": self._list_leads("q", series)}
        for noun, leads in rows.items():
            columns = [Column("place", noun, "long"), *_LEAD_COLUMNS]
            blocks.append(
                Table(f"Strongest and weakest {noun.lower()}s, compared with the {MARGINAL}", columns, first_and_last(leads))
            )
        answer = write_sentence(SENTENCES, "strengths", segments=rows["Segment"])
        return Section("strengths", "strengths and weaknesses", blocks, answer)

    def _list_leads(self, key: Axis, series: int) -> list[dict[str, Any]]:
        """Return a series' leads over the leave-one-out marginal, largest first, by segment or by question."""
        pages = self.contents.segments if key == "s" else self.contents.questions
        frame = self.contents.query_frame(
            f"SELECT {key} AS place, avg(score - others) AS lead, avg(score) AS score, count(*) AS pairs "
            f"FROM {SCORED} WHERE series = ? AND others IS NOT NULL GROUP BY {key} ORDER BY lead DESC, {key}",
            series,
        )
        return convert_to_rows(frame, place=lambda place: pages[place].link)

    def _build_worst_section(self, series: int, texts: Texts) -> Section:
        folds = []
        answers = self.worst[self.worst["series"] == series]
        for row in convert_to_rows(answers):
            pair = (row["s"], row["q"])
            responses = [response for response in texts.get(pair, ()) if response.series == series]
            blocks = show_pair(self.contents, pair, row["observed"], [("Predicted", row["code"])], responses)
            segment, question = self.contents.segments[pair[0]], self.contents.questions[pair[1]]
            folds.append(Fold(f"{show(row['score'], 'score')}: {segment.label}, {question.title}", blocks))
        lowest = answers.loc[answers["is_read"], "score"].min()
        answer = "" if pd.isna(lowest) else f"Its lowest score on a readable answer is {show(lowest, 'score')}."
        return Section("worst", "worst answers", folds, answer)
