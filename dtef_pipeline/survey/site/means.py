"""Mean scores by segment and by question, in the setting of the first leaderboard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import pandas as pd

from dtef_pipeline.site.content import Column, Section, Table
from dtef_pipeline.site.number_text import show
from dtef_pipeline.survey.site.contents import SurveyContents
from dtef_pipeline.survey.site.pair_store import ANSWERS, PAIRS, Series
from dtef_pipeline.survey.site.survey_labels import MARGINAL
from dtef_pipeline.text.number_words import format_count, format_plural

Axis = Literal["s", "q"]


class Spread(NamedTuple):
    """The models' scores of a segment or a question, over the pairs for which all of these models have a score."""

    mean: float
    best: str
    best_score: float
    worst: str
    worst_score: float
    leave_one_out: float
    """Score of the leave-one-out marginal; NaN: unknown."""
    ceiling: float
    n_pairs: int
    n_models: int

    @property
    def room(self) -> float:
        """The distance from the leave-one-out marginal to the ceiling."""
        return self.ceiling - self.leave_one_out


@dataclass(frozen=True)
class Means:
    """Means over pairs that define no segment, for language models or, if there are none, for baselines."""

    contents: SurveyContents
    series: Sequence[Series]

    @cached_property
    def main_series(self) -> list[int]:
        """The places of the averaged series."""
        places = [place for place, series in enumerate(self.series) if series.setting == self.contents.main]
        return [place for place in places if not self.series[place].is_reference] or places

    @property
    def noun(self) -> str:
        return "baseline" if self.series[self.main_series[0]].is_reference else "model"

    @cached_property
    def scored_pairs_sql(self) -> str:
        """SQL of the scored pairs of these series: s, q, series, score, others, ceiling."""
        return f"""SELECT s, q, series, score, others, ceiling FROM {ANSWERS} JOIN {PAIRS} USING (s, q)
            WHERE score IS NOT NULL AND NOT circular AND list_contains({self.main_series}, series)"""

    def spreads(self, key: Axis) -> dict[int, Spread]:
        """Return spreads by the place of a segment or a question. A model with less than half of the pairs of another model is left out."""
        rows = self._query_frame(f"""
            WITH own AS ({self.scored_pairs_sql}),
            kept AS (
                SELECT {key}, series FROM own GROUP BY {key}, series QUALIFY 2 * count(*) >= max(count(*)) OVER (PARTITION BY {key})
            ), kept_models AS (SELECT {key}, count(*) AS models FROM kept GROUP BY ALL),
            compared AS (FROM own SEMI JOIN kept USING ({key}, series)),
            shared AS (
                SELECT s, q FROM compared JOIN kept_models USING ({key}) GROUP BY s, q, models HAVING count(*) = models
            )
            SELECT {key} AS place, series, avg(score) AS score, avg(others) AS others, avg(ceiling) AS ceiling, count(*) AS pairs
            FROM compared SEMI JOIN shared USING (s, q) GROUP BY ALL ORDER BY place, score DESC, series
            """)
        return {int(group["place"].iloc[0]): self._compute_spread(group) for _, group in rows.groupby("place", sort=False)}

    def _compute_spread(self, rows: pd.DataFrame) -> Spread:
        first, last = rows.iloc[0], rows.iloc[-1]
        best, worst = (self.series[int(row["series"])].name for row in (first, last))
        scores = (float(rows["score"].mean()), best, float(first["score"]), worst, float(last["score"]))
        return Spread(*scores, float(first["others"]), float(first["ceiling"]), int(first["pairs"]), len(rows))

    def leads(self, key: Axis) -> pd.DataFrame:
        """Return `place`, `series`, `lead` over the leave-one-out marginal, `score`, `pairs`; no rows if the marginal is unknown."""
        return self._query_frame(f"""
            SELECT {key} AS place, series, avg(score - others) AS lead, avg(score) AS score, count(*) AS pairs
            FROM ({self.scored_pairs_sql}) WHERE others IS NOT NULL GROUP BY ALL ORDER BY place, series
            """)

    @cached_property
    def pair_means(self) -> pd.DataFrame:
        """`s`, `q`, the mean `score` of the models, and `others`."""
        return self._query_frame(
            f"SELECT s, q, avg(score) AS score, any_value(others) AS others FROM ({self.scored_pairs_sql}) GROUP BY ALL ORDER BY ALL"
        )

    def _query_frame(self, sql: str) -> pd.DataFrame:
        frame: Any = self.contents.connection.execute(sql).df()
        return pd.DataFrame(frame)


_SCORE_SPREAD = (
    Column("mean", "Mean score", "score"),
    Column(
        "room",
        "Room",
        "score",
        f"Score of a perfect model minus that of the {MARGINAL}: if it is small, models cannot differ much",
    ),
    Column("best", "Best", "model"),
    Column("best_score", "Its score", "score", more=True),
    Column("worst", "Worst", "model", more=True),
    Column("worst_score", "Its score", "score", more=True),
    Column("leave_one_out", MARGINAL.capitalize(), "score", "Its score on the same pairs", more=True),
    Column("ceiling", "Perfect", "score", "Expected score of a perfect model on the same pairs", more=True),
    Column("n_pairs", "Pairs", "count", "Pairs that all models of the row have a score for", more=True),
)
_LISTS_GUIDE = (
    "Conditions are those of the first leaderboard. All numbers of a row are for the pairs that all its models have a score for. A model "
    "with less than half of the others' pairs is left out."
)


def lists(contents: SurveyContents, means: Means) -> Iterator[Section]:
    """Yield a section on segments and one on questions."""
    yield _build_segments_section(contents, means)
    yield _build_questions_section(contents, means)


def _build_segments_section(contents: SurveyContents, means: Means) -> Section:
    spreads = means.spreads("s")
    rows = [
        {"segment": s.link, "n": s.n, "n_rounds": s.n_rounds, **build_spread_cells(spreads.get(s.place))}
        for s in contents.segments.values()
    ]
    rows.sort(key=lambda row: "mean" not in row)
    columns = [
        Column("segment", "Segment"),
        Column("n", "Respondents", "count"),
        *_SCORE_SPREAD,
        Column("n_rounds", "Rounds", "count", more=True),
    ]
    named = {s.place: s.label for s in contents.segments.values()}
    table = Table("Segments; each leads to its page", columns, rows, search=True, first=15)
    return Section("segments", "Segments", [table], _summarize_spreads(spreads, named, means, "segment"), _LISTS_GUIDE)


def _build_questions_section(contents: SurveyContents, means: Means) -> Section:
    spreads = means.spreads("q")
    rows = [
        {"question": q.link, "round": q.round, **build_spread_cells(spreads.get(q.place))} for q in contents.questions.values()
    ]
    rows.sort(key=lambda row: row["mean"] if row.get("mean") is not None else 2)
    columns = [Column("question", "Question", "long"), Column("round", "Round"), *_SCORE_SPREAD]
    named = {q.place: f"“{q.title}”" for q in contents.questions.values()}
    table = Table("Questions, the hardest first; each leads to its page", columns, rows, search=True, first=15)
    return Section("questions", "Questions", [table], _summarize_spreads(spreads, named, means, "question"), _LISTS_GUIDE)


def build_spread_cells(spread: Spread | None) -> dict[str, Any]:
    if spread is None:
        return {}
    cells = {**spread._asdict(), "room": spread.room}
    return cells if spread.n_models > 1 else {**cells, "best": None, "best_score": None, "worst": None, "worst_score": None}


def _summarize_spreads(spreads: dict[int, Spread], named: dict[int, str], means: Means, noun: str) -> str:
    if len(spreads) < 2:
        return ""
    places = sorted(spreads, key=lambda place: (-spreads[place].mean, place))
    best, lowest = places[0], places[-1]
    beaten = sum(1 for spread in spreads.values() if spread.best_score > spread.leave_one_out)
    where = f"all {len(spreads):,}" if beaten == len(spreads) else f"{beaten:,}" if beaten else "none"
    return (
        f"{format_plural(means.noun).capitalize()} predict {named[best]} best of {format_count(len(spreads), noun)} "
        f"({show(spreads[best].mean, 'score')}) "
        f"and {named[lowest]} worst ({show(spreads[lowest].mean, 'score')}). The best {means.noun} beats the {MARGINAL} in "
        f"{where} of them."
    )
