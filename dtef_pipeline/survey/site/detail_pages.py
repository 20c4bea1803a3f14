"""Pages of segments over all rounds, and of the questions of a round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from dtef_pipeline.site.content import Block, Column, Fold, Link, Page, Prose, Section, Table, convert_to_rows
from dtef_pipeline.site.leads import first_and_last
from dtef_pipeline.site.number_text import show
from dtef_pipeline.survey.blueprint.wording import format_attribute
from dtef_pipeline.survey.site.contents import QuestionPage, SegmentPage, SurveyContents
from dtef_pipeline.survey.site.means import Means, Spread
from dtef_pipeline.survey.site.pair_pages import SCRIPT, PairPages
from dtef_pipeline.survey.site.pair_store import PAIRS, shares
from dtef_pipeline.survey.site.sections import build_model_rows
from dtef_pipeline.survey.site.survey_labels import A_PERFECT_MODEL, MARGINAL
from dtef_pipeline.text.number_words import format_count, format_plural

MAX_SEGMENTS = 60
"""Largest number of segments on the page of a question: those that differ most from the population marginal."""
_MODEL_COLUMNS = (
    Column("name", "Model", "model"),
    Column("score", "Score", "score", ends=("score_low", "score_high")),
    Column("skill", "Skill", "number", f"0: the {MARGINAL}, 1: a {A_PERFECT_MODEL}"),
    Column(
        "verdict",
        "Compared with other segments",
        meaning="Whether the model predicts the attribute's other segments better, given the sample sizes",
    ),
    Column("n_pairs", "Pairs", "count"),
    Column("parse_rate", "Read", "percent", more=True),
)
_QUESTION_COLUMNS = (
    Column("question", "Question", "long"),
    Column("round", "Round"),
    Column("score", "Mean score", "score"),
    Column("others", MARGINAL.capitalize(), "score"),
    Column("lead", "Lead", "signed"),
)


@dataclass(frozen=True)
class DetailPages:
    """The pages of segments and questions."""

    contents: SurveyContents
    means: Means
    pairs: PairPages

    def pages(self) -> Iterator[Page]:
        by_segment, by_question = self.means.spreads("s"), self.means.spreads("q")
        for segment in self.contents.segments.values():
            yield self._build_segment_page(segment, by_segment.get(segment.place))
        for question in self.contents.questions.values():
            yield self._build_question_page(question, by_question.get(question.place))

    # --- segments

    def _build_segment_page(self, segment: SegmentPage, spread: Spread | None) -> Page:
        size = "" if pd.isna(segment.n) else f", {format_count(round(segment.n), 'respondent')}"
        introduction = f"{format_attribute(segment.attribute)}; {format_count(segment.n_rounds, 'round')}{size}."
        models = Section("models", "Models", self._build_model_tables(self._segment_rows.get(segment.id, {})))
        sections = [models, self.pairs.section(segment), self._build_questions_section(segment)]
        answer = self._describe_spread(segment, spread, segment.label)
        return Page(segment.path, segment.label, answer, sections, self.contents.crumbs, introduction, scripts=(SCRIPT,))

    @cached_property
    def _segment_rows(self) -> Mapping[str, Any]:
        rows = self.contents.boards["segment"]
        gaps = self.contents.boards["gaps"]
        if len(gaps):
            key = ["segment", "model_variant", "context_level", "condition"]
            rows = rows.merge(gaps[[*key, "verdict"]], on=key, how="left")
        return _group_by_key_and_setting(rows, ["segment"])

    def _build_model_tables(self, setting_rows: Mapping[Any, pd.DataFrame]) -> list[Block]:
        """Return a table of models for each setting, unfolded for the first leaderboard."""
        blocks: list[Block] = []
        for setting in self.contents.settings:
            rows = setting_rows.get(setting)
            if rows is None:
                continue
            frame = rows.sort_values(["score", "name"], ascending=[False, True], kind="stable")
            table = Table(f"Mean score, {self.contents.title(setting).lower()}", _MODEL_COLUMNS, list(build_model_rows(frame)))
            blocks.append(table if not blocks else Fold(self.contents.title(setting), [table]))
        return blocks

    def _describe_spread(self, fixed: SegmentPage | QuestionPage, spread: Spread | None, label: str) -> str:
        if not self.pairs.is_asked(fixed) and self.means.noun == "model":
            return f"No model was asked about {label}."
        if spread is None:
            return (
                f"No model has a score on {label} {self.contents.title(self.contents.main).lower()}, but there are scores in other "
                "conditions."
            )
        best = f"Best of {format_count(spread.n_models, self.means.noun)}: " if spread.n_models > 1 else ""
        perfect = "" if pd.isna(spread.ceiling) else f"; a {A_PERFECT_MODEL} would score {show(spread.ceiling, 'score')}"
        return (
            f"{best}{spread.best} scores {show(spread.best_score, 'score')} on {label}{_compare_with_others(spread)}{perfect}."
        )

    def _build_questions_section(self, segment: SegmentPage) -> Section:
        pairs = self._pairs_of.get(segment.place)
        if pairs is None:
            return Section("questions", "Questions", [])
        questions = list(self.contents.questions.values())
        frame = pairs.assign(lead=pairs["score"] - pairs["others"]).sort_values(["lead", "score"], kind="stable")
        rows = [
            {**row, "question": questions[int(row["q"])].link, "round": questions[int(row["q"])].round}
            for row in first_and_last(convert_to_rows(frame))
        ]
        models = format_plural(self.means.noun)
        caption = f"Questions that {models} predict worst and best here, compared with the {MARGINAL}"
        above = int((frame["lead"] > 0).sum())
        n_questions = int(frame["lead"].notna().sum())
        answer = (
            f"On {above:,} of {format_count(n_questions, 'question')} {models} score above the {MARGINAL} on average."
            if n_questions
            else ""
        )
        return Section("questions", "Questions", [Table(caption, _QUESTION_COLUMNS, rows)], answer)

    @cached_property
    def _pairs_of(self) -> dict[Any, pd.DataFrame]:
        return dict(iter(self.means.pair_means.groupby("s", sort=False)))

    # --- questions

    def _build_question_page(self, question: QuestionPage, spread: Spread | None) -> Page:
        words = [question.text if question.text != question.title else "", f"{'; '.join(question.options)}."]
        rows = self._question_rows.get((question.round, question.id), {})
        sections = [
            Section("question", "Options" if question.text == question.title else "Question and options", [Prose(words)]),
            Section("models", "Models", self._build_model_tables(rows)),
            self.pairs.section(question),
            self._build_differences_section(question),
        ]
        crumbs = [*self.contents.crumbs, Link(question.round, f"{self.contents.crumbs[0].href}#questions")]
        return Page(
            question.path,
            question.title,
            self._describe_spread(question, spread, "this question"),
            sections,
            crumbs,
            scripts=(SCRIPT,),
        )

    @cached_property
    def _question_rows(self) -> Mapping[Any, Any]:
        return _group_by_key_and_setting(self.contents.boards["question"], ["round", "question_id"])

    def _build_differences_section(self, question: QuestionPage) -> Section:
        """Return the segments whose answer is farthest from the population marginal, except those that the question defines."""
        rows = self.contents.connection.execute(
            f"SELECT s, n, apart, observed FROM {PAIRS} WHERE q = ? AND circular IS NOT TRUE ORDER BY apart DESC NULLS LAST, s",
            [question.place],
        ).fetchall()
        scores = self._scores_of.get(question.place, {})
        segments = list(self.contents.segments.values())
        columns = [
            Column("segment", "Segment"),
            Column("n", "Respondents", "count"),
            Column(
                "apart", "Differs by", "percent", "Share of answers that would have to change to equal the population marginal"
            ),
        ]
        columns += [Column(f"o{i}", option, "percent", heat=True, more=i > 2) for i, option in enumerate(question.options)]
        columns += [Column("score", "Mean score", "score", more=True)]
        items = [
            {
                "segment": segments[s].link._replace(href=segments[s].pair_page(question)),
                "apart": distance,
                **{f"o{i}": share for i, share in enumerate(shares(observed))},
                "score": scores.get(s),
                "n": n,
            }
            for s, n, distance, observed in rows[:MAX_SEGMENTS]
        ]
        few = (
            f"The {MAX_SEGMENTS} of {len(rows)} segments that differ most"
            if len(rows) > MAX_SEGMENTS
            else "Segments, by decreasing difference"
        )
        answer = ""
        if rows and rows[0][2] is not None:
            size = "" if rows[0][1] is None else f" ({format_count(rows[0][1], 'respondent')})"
            share = show(rows[0][2], "percent")
            answer = f"{segments[rows[0][0]].label}{size} differs most from the population marginal: in {share} of its answers."
        return Section("groups", "Where groups differ", [Table(f"{few}: observed answers", columns, items, first=15)], answer)

    @cached_property
    def _scores_of(self) -> dict[int, dict[int, float]]:
        scores: dict[int, dict[int, float]] = {}
        for s, q, score in self.means.pair_means[["s", "q", "score"]].itertuples(index=False, name=None):
            scores.setdefault(q, {})[s] = score
        return scores


def _compare_with_others(spread: Spread) -> str:
    if pd.isna(spread.leave_one_out):
        return ""
    lead = round(spread.best_score, 3) - round(spread.leave_one_out, 3)
    side = "above" if lead > 0 else "below" if lead < 0 else "the same as"
    return f", {side} the {MARGINAL} ({show(spread.leave_one_out, 'score')})"


def _group_by_key_and_setting(rows: pd.DataFrame, key: list[str]) -> dict[Any, dict[Any, pd.DataFrame]]:
    """Return the rows of each value of the key, by setting."""
    groups: dict[Any, dict[Any, pd.DataFrame]] = {}
    if len(rows):
        for (*values, level, condition), group in rows.groupby([*key, "context_level", "condition"], observed=True, sort=False):
            groups.setdefault(values[0] if len(values) == 1 else tuple(values), {})[level, condition] = group
    return groups
