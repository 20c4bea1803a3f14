"""The survey sections of a model's page: strengths and weaknesses, and the worst answers with prompt and response."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import pandas as pd

from dtef_pipeline.site.content import Block, Column, Fold, Link, Section, Table, TemplateBlock, convert_to_rows
from dtef_pipeline.site.leads import first_and_last
from dtef_pipeline.site.number_text import show
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.survey.blueprint.wording import format_attribute
from dtef_pipeline.survey.site.contents import SurveyContents
from dtef_pipeline.survey.site.means import Axis, Means
from dtef_pipeline.survey.site.pair_store import ANSWERS, PAIRS, Series, shares
from dtef_pipeline.survey.site.survey_labels import MARGINAL
from dtef_pipeline.survey.site.texts import Place, ResponseText, Texts

_WORST_SHOWN, _UNREAD_SHOWN = 5, 3
"""Answers shown that could be read, and that could not."""
_LEAD_COLUMN = Column("lead", "Lead", "signed", f"Score minus that of the {MARGINAL} on the same pairs")
_LEAD_ON_PAIRS = (_LEAD_COLUMN, Column("score", "Score", "score"), Column("pairs", "Pairs", "count"))
_ATTRIBUTE_COLUMNS = (
    Column("attribute", "Attribute"),
    Column("score", "Score", "score", ends=("score_low", "score_high")),
    Column("skill", "Skill", "number", f"0: the {MARGINAL}, 1: a perfect model", ends=("skill_low", "skill_high")),
    Column("n_pairs", "Pairs", "count"),
)
_ANSWER_COLUMNS = (
    Column("option", "Answer"),
    Column("observed", "Observed", "percent", always=True),
    Column("predicted", "Predicted", "percent", always=True),
)


class Worst(NamedTuple):
    """A pair with a low score of a model."""

    series: int
    s: int
    q: int
    score: float
    code: str
    observed: str

    @property
    def is_read(self) -> bool:
        return not self.code.startswith("!")


@dataclass(frozen=True)
class SurveyModelSections:
    """The sections of each model, by name."""

    contents: SurveyContents
    means: Means
    series: Sequence[Series]

    @cached_property
    def worst(self) -> dict[int, list[Worst]]:
        """The lowest scores by series: of readable answers, then of others."""
        rows = self.contents.connection.execute(f"""
            SELECT series, s, q, score, code, observed FROM ({self.means.scored_pairs_sql})
            JOIN (SELECT s, q, series, code FROM {ANSWERS}) USING (s, q, series) JOIN (SELECT s, q, observed FROM {PAIRS}) USING (s, q)
            QUALIFY row_number() OVER (PARTITION BY series, starts_with(code, '!') ORDER BY score, md5('{SEED}/' || s || '/' || q))
                <= CASE WHEN starts_with(code, '!') THEN {_UNREAD_SHOWN} ELSE {_WORST_SHOWN} END
            ORDER BY series, starts_with(code, '!'), score, s, q
            """).fetchall()
        by_series: dict[int, list[Worst]] = {}
        for row in rows:
            by_series.setdefault(row[0], []).append(Worst(*row))
        return by_series

    @property
    def places(self) -> list[Place]:
        """The pairs whose texts the sections show."""
        return [(answer.s, answer.q) for answers in self.worst.values() for answer in answers]

    def build_model_sections(self, name: str, texts: Texts) -> Iterator[Section]:
        """Yield the sections of a model; none if it is not on the first leaderboard."""
        place = next((place for place in self.means.main_series if self.series[place].name == name), None)
        if place is None:
            return
        yield self._build_strengths_section(place, name)
        yield self._build_worst_section(place, texts)

    def _build_strengths_section(self, place: int, name: str) -> Section:
        segments, questions = list(self.contents.segments.values()), list(self.contents.questions.values())
        by_segment, by_question = self._select_leads("s", place), self._select_leads("q", place)
        blocks: list[Block] = [Table("By attribute", _ATTRIBUTE_COLUMNS, self._build_attribute_rows(place))]
        for noun, rows, links in (
            ("Segment", by_segment, [segment.link for segment in segments]),
            ("Question", by_question, [question.link for question in questions]),
        ):
            cells = [{**row, "place": links[int(row["place"])]} for row in convert_to_rows(rows)]
            columns = [Column("place", noun, "long"), *_LEAD_ON_PAIRS]
            blocks.append(Table(f"Strongest and weakest {noun}s, compared with the {MARGINAL}", columns, first_and_last(cells)))
        answer = ""
        if len(by_segment):
            above = int((by_segment["lead"] > 0).sum())
            best, last = by_segment.iloc[0], by_segment.iloc[-1]
            named = [f"{segments[int(end['place'])].label} ({show(end['lead'], 'signed')})" for end in (best, last)]
            answer = (
                f"It beats the {MARGINAL} in {above} of {len(by_segment)} segments; "
                f"its lead is largest in {named[0]} and smallest in {named[1]}."
            )
        return Section("strengths", "strengths and weaknesses", blocks, answer)

    def _select_leads(self, key: Axis, place: int) -> pd.DataFrame:
        leads = self._model_leads[key]
        return leads[leads["series"] == place].sort_values("lead", ascending=False, kind="stable")

    @cached_property
    def _model_leads(self) -> dict[Axis, pd.DataFrame]:
        return {"s": self.means.leads("s"), "q": self.means.leads("q")}

    def _build_attribute_rows(self, place: int) -> list[dict[str, Any]]:
        rows = self.contents.main.select_rows(self.contents.boards["attribute"])
        model_rows = rows[rows["model_variant"] == self.series[place].variant].sort_values(
            "score", ascending=False, kind="stable"
        )
        return convert_to_rows(model_rows, attribute=format_attribute)

    def _build_worst_section(self, place: int, texts: Texts) -> Section:
        items = self.worst.get(place, [])
        blocks = [
            self._build_answer_block(
                item, [response for response in texts.get((item.s, item.q), ()) if response.series == place]
            )
            for item in items
        ]
        read = [item.score for item in items if item.is_read]
        answer = f"Its lowest score on a readable answer is {show(min(read), 'score')}." if read else ""
        return Section("worst", "worst answers", blocks, answer)

    def _build_answer_block(self, item: Worst, responses: Sequence[ResponseText]) -> Fold:
        segment = list(self.contents.segments.values())[item.s]
        question = list(self.contents.questions.values())[item.q]
        predicted = shares(item.code.partition("*")[0])[:-1] if item.is_read else []
        rows: list[dict[str, Any]] = [
            {"option": option, "observed": share, "predicted": predicted[place] if predicted else None}
            for place, (option, share) in enumerate(zip(question.options, shares(item.observed), strict=True))
        ]
        texts = [{"about": response.describe(), "words": response.words} for response in responses]
        link = Link("All models on this pair", segment.pair_page(question))
        values = {"prompt": responses[0].prompt if responses else "", "responses": texts, "link": link}
        answers = Table(f"{question.text} ({question.round})", _ANSWER_COLUMNS, rows)
        blocks: list[Block] = [answers, TemplateBlock("survey/response.html.j2", values)]
        return Fold(f"{show(item.score, 'score')}: {segment.label}, {question.title}", blocks)
