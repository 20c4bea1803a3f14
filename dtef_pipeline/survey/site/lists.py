"""The lists of segments and questions on the leaderboard page, with links to their pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dtef_pipeline.site.content import Column, Section, Table
from dtef_pipeline.site.number_text import show
from dtef_pipeline.survey.site.contents import SurveyContents
from dtef_pipeline.survey.site.means import Means, Spread
from dtef_pipeline.survey.site.survey_labels import MARGINAL
from dtef_pipeline.text.quantity_words import format_count, format_plural

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
_HOW_TO_READ_LISTS = (
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
    return Section("segments", "Segments", [table], _summarize_spreads(spreads, named, means, "segment"), _HOW_TO_READ_LISTS)


def _build_questions_section(contents: SurveyContents, means: Means) -> Section:
    spreads = means.spreads("q")
    rows = [
        {"question": q.link, "round": q.round, **build_spread_cells(spreads.get(q.place))} for q in contents.questions.values()
    ]
    rows.sort(key=lambda row: row["mean"] if row.get("mean") is not None else 2)
    columns = [Column("question", "Question", "long"), Column("round", "Round"), *_SCORE_SPREAD]
    named = {q.place: f"“{q.title}”" for q in contents.questions.values()}
    table = Table("Questions, the hardest first; each leads to its page", columns, rows, search=True, first=15)
    return Section("questions", "Questions", [table], _summarize_spreads(spreads, named, means, "question"), _HOW_TO_READ_LISTS)


def build_spread_cells(spread: Spread | None) -> dict[str, Any]:
    if spread is None:
        return {}
    cells = {**spread._asdict(), "room": spread.room}
    return cells if spread.n_models > 1 else {**cells, "best": None, "best_score": None, "worst": None, "worst_score": None}


def _summarize_spreads(spreads: dict[int, Spread], named: dict[int, str], means: Means, noun: str) -> str:
    if len(spreads) < 2:
        return ""
    places = sorted(spreads, key=lambda place: (-spreads[place].mean, place))
    best, worst = places[0], places[-1]
    beaten = sum(1 for spread in spreads.values() if spread.best_score > spread.leave_one_out)
    where = f"all {len(spreads):,}" if beaten == len(spreads) else f"{beaten:,}" if beaten else "none"
    return (
        f"{format_plural(means.noun).capitalize()} predict {named[best]} best of {format_count(len(spreads), noun)} "
        f"({show(spreads[best].mean, 'score')}) "
        f"and {named[worst]} worst ({show(spreads[worst].mean, 'score')}). The best {means.noun} beats the {MARGINAL} in "
        f"{where} of them."
    )
