"""Pages of segments over all rounds and of the questions of a round, and the lists that lead to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import pandas as pd

from dtef_pipeline.site.content import Column, Link, Page, Prose, Section, Table, convert_to_rows
from dtef_pipeline.site.leads import first_and_last
from dtef_pipeline.site.sentences import write_sentence
from dtef_pipeline.survey.blueprint.wording import format_attribute
from dtef_pipeline.survey.boards.schemas import BOARD_COLUMNS
from dtef_pipeline.survey.site.boards import build_model_tables
from dtef_pipeline.survey.site.contents import CRUMBS, GUIDES, SENTENCES, QuestionPage, SegmentPage, SurveyContents
from dtef_pipeline.survey.site.pairs import PAIRS, SCORED, SCRIPT, PairPages, shares
from dtef_pipeline.survey.site.survey_labels import A_PERFECT_MODEL, MARGINAL
from dtef_pipeline.text.number_words import format_count

Axis = Literal["s", "q"]
Spreads = dict[int, dict[str, Any]]
_HEADS: Mapping[Axis, Sequence[Column]] = {
    "s": (
        Column("link", "Segment"),
        Column("n_people", "Respondents", "count"),
        Column("n_rounds", "Rounds", "count", more=True),
    ),
    "q": (Column("link", "Question", "long"), Column("round", "Round")),
}
_COLUMNS = (
    Column("mean", "Mean score", "score"),
    Column("best", "Best", "model"),
    Column("best_score", "Its score", "score"),
    Column("others", MARGINAL.capitalize(), "score", "Its score on the same pairs"),
    Column("ceiling", A_PERFECT_MODEL.capitalize(), "score", "Expected score on the same pairs", more=True),
    Column("n_pairs", "Pairs", "count", "Pairs that all models of the row have a score for", more=True),
)


def read_spreads(contents: SurveyContents, key: Axis) -> Spreads:
    """Return the models' scores by the place of a segment or a question, over the pairs for which all of these models have a score.

    `mean` of the models, `best` with `best_score`, `others` (score of the leave-one-out marginal; NaN: unknown), whether the best `beats` it,
    `ceiling`, `n_pairs`, `n_models`. A model with less than half of the pairs of another model is left out.
    """
    frame = contents.query_frame(f"""
        WITH kept AS (
            SELECT {key}, series FROM {SCORED} GROUP BY {key}, series QUALIFY 2 * count(*) >= max(count(*)) OVER (PARTITION BY {key})
        ), models AS (SELECT {key}, count(*) AS n_models FROM kept GROUP BY ALL),
        compared AS (FROM {SCORED} SEMI JOIN kept USING ({key}, series)),
        shared AS (SELECT s, q FROM compared JOIN models USING ({key}) GROUP BY s, q, n_models HAVING count(*) = n_models),
        means AS (
            SELECT {key} AS place, series, avg(score) AS score, avg(others) AS others, avg(ceiling) AS ceiling, count(*) AS n_pairs
            FROM compared SEMI JOIN shared USING (s, q) GROUP BY ALL
        )
        SELECT place, avg(score) AS mean, first(name ORDER BY score DESC, series) AS best, max(score) AS best_score,
            any_value(others) AS others, any_value(ceiling) AS ceiling, any_value(n_pairs) AS n_pairs, count(*) AS n_models,
            coalesce(max(score) > any_value(others), FALSE) AS beats
        FROM means JOIN site_series USING (series) GROUP BY place
        """)
    return {row["place"]: row for row in convert_to_rows(frame)}


def list_pages(contents: SurveyContents, key: Axis, spreads: Spreads) -> Section:
    """Build the list of segments or of questions, the hardest first."""
    pages: Sequence[SegmentPage | QuestionPage] = contents.segments if key == "s" else contents.questions
    noun = "segment" if key == "s" else "question"
    rows = [{**page._asdict(), "link": page.link, **spreads.get(page[0], {})} for page in pages]
    rows.sort(key=lambda row: row.get("mean", 2))
    caption = f"{noun.capitalize()}s, the hardest first; each leads to its page"
    table = Table(caption, [*_HEADS[key], *_COLUMNS], rows, search=True, first=15)
    titles = [page.link.text for page in pages]
    answer = write_sentence(SENTENCES, "pages", noun=noun, spreads=list(spreads.values()), titles=titles, who=contents.noun)
    return Section(f"{noun}s", f"{noun.capitalize()}s", [table], answer, write_sentence(GUIDES, "places"))


MAX_SEGMENTS = 60
"""Largest number of segments on the page of a question: those that differ most from the population marginal."""
_MODEL_COLUMNS = (
    Column("name", "Model", "model"),
    Column("score", "Score", "score", ends=("score_low", "score_high")),
    Column("skill", "Skill", "number", BOARD_COLUMNS["skill"]),
    Column(
        "verdict",
        "Compared with other segments",
        meaning="Whether the model predicts the attribute's other segments better, given the sample sizes",
    ),
    Column("n_pairs", "Pairs", "count"),
    Column("parse_rate", "Read", "percent", more=True),
    Column("why", "Note", "note"),
)
_QUESTION_COLUMNS = (
    Column("question", "Question", "long"),
    Column("round", "Round"),
    Column("score", "Mean score", "score"),
    Column("others", MARGINAL.capitalize(), "score"),
    Column("lead", "Lead", "signed"),
)
_DIFFERENCE_COLUMNS = (
    Column("segment", "Segment"),
    Column("n", "Respondents", "count"),
    Column("apart", "Differs by", "percent", "Share of answers that would have to change to equal the population marginal"),
)


@dataclass(frozen=True)
class DetailPages:
    """The pages of segments and questions."""

    contents: SurveyContents
    pairs: PairPages
    spreads: Mapping[Axis, Spreads]

    def pages(self) -> Iterator[Page]:
        yield from map(self._build_segment_page, self.contents.segments)
        yield from map(self._build_question_page, self.contents.questions)

    def _build_segment_page(self, segment: SegmentPage) -> Page:
        size = "" if pd.isna(segment.n_people) else f", {format_count(round(segment.n_people), 'respondent')}"
        introduction = f"{format_attribute(segment.attribute)}; {format_count(segment.n_rounds, 'round')}{size}."
        sections = [
            self._build_models_section(self._segment_rows.get(segment.segment)),
            self.pairs.section("segment", segment.s),
            self._build_questions_section(segment),
        ]
        answer = self._describe("s", segment.s, segment.label)
        return Page(segment.page, segment.label, answer, sections, CRUMBS, introduction, scripts=(SCRIPT,))

    @cached_property
    def _segment_rows(self) -> Mapping[Any, pd.DataFrame]:
        rows, gaps = self.contents.board("segment"), self.contents.board("gaps")
        if len(gaps):
            key = ["segment", "model_variant", "context_level", "condition"]
            rows = rows.merge(gaps.assign(why=gaps["note"])[[*key, "verdict", "why"]], on=key, how="left")
        return dict(iter(rows.groupby("segment", observed=True))) if len(rows) else {}

    def _build_models_section(self, rows: pd.DataFrame | None) -> Section:
        blocks = [] if rows is None else build_model_tables(self.contents, rows, "Mean score", _MODEL_COLUMNS)
        return Section("models", "Models", blocks)

    def _describe(self, key: Axis, place: int, label: str) -> str:
        return write_sentence(
            SENTENCES,
            "place",
            label=label,
            spread=self.spreads[key].get(place),
            who=self.contents.noun,
            setting=self.contents.title(self.contents.settings[0]).lower(),
        )

    def _build_questions_section(self, segment: SegmentPage) -> Section:
        frame = self.contents.query_frame(
            f"SELECT q, avg(score) AS score, any_value(others) AS others, avg(score) - any_value(others) AS lead "
            f"FROM {SCORED} WHERE s = ? GROUP BY q ORDER BY lead, score, q",
            segment.s,
        )
        rows = [
            {**row, "question": self.contents.questions[row["q"]].link, "round": self.contents.questions[row["q"]].round}
            for row in first_and_last(convert_to_rows(frame))
        ]
        caption = f"Questions that {self.contents.noun}s predict worst and best here, compared with the {MARGINAL}"
        counts = {"n_above": int((frame["lead"] > 0).sum()), "n_questions": int(frame["lead"].notna().sum())}
        answer = write_sentence(SENTENCES, "questions", **counts, who=self.contents.noun)
        return Section("questions", "Questions", [Table(caption, _QUESTION_COLUMNS, rows)], answer)

    def _build_question_page(self, question: QuestionPage) -> Page:
        words = [question.text if question.text != question.title else "", f"{'; '.join(question.options)}."]
        sections = [
            Section("question", "Options" if question.text == question.title else "Question and options", [Prose(words)]),
            self._build_models_section(self._question_rows.get((question.round, question.question_id))),
            self.pairs.section("question", question.q),
            self._build_differences_section(question),
        ]
        crumbs = [*CRUMBS, Link(question.round, f"{CRUMBS[0].href}#questions")]
        answer = self._describe("q", question.q, "this question")
        return Page(question.page, question.title, answer, sections, crumbs, scripts=(SCRIPT,))

    @cached_property
    def _question_rows(self) -> Mapping[Any, pd.DataFrame]:
        rows = self.contents.board("question")
        return dict(iter(rows.groupby(["round", "question_id"], observed=True))) if len(rows) else {}

    def _build_differences_section(self, question: QuestionPage) -> Section:
        """Return the segments whose answer is farthest from the population marginal, except those that the question defines."""
        rows = self.contents.query(
            f"SELECT s, n, apart, observed FROM {PAIRS} WHERE q = ? AND circular IS NOT TRUE ORDER BY apart DESC NULLS LAST, s",
            question.q,
        )
        columns = [*_DIFFERENCE_COLUMNS]
        columns += [Column(f"o{i}", option, "percent", heat=True, more=i > 2) for i, option in enumerate(question.options)]
        segments: Sequence[SegmentPage] = self.contents.segments
        cells = [
            {
                "segment": Link(segments[s].label, segments[s].pair_page(question)),
                "n": n,
                "apart": apart,
                **{f"o{place}": share for place, share in enumerate(shares(observed))},
            }
            for s, n, apart, observed in rows[:MAX_SEGMENTS]
        ]
        n_cut = len(rows) - len(cells)
        which = (
            f"The {MAX_SEGMENTS} of {len(rows)} segments that differ most" if n_cut else "Segments, by decreasing difference"
        )
        answer = ""
        if rows:
            s, n, apart, _ = rows[0]
            answer = write_sentence(SENTENCES, "differences", label=segments[s].label, n=n, apart=apart)
        return Section("groups", "Where groups differ", [Table(f"{which}: observed answers", columns, cells, first=15)], answer)
