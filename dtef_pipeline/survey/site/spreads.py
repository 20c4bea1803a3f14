"""The models' mean scores by segment and by question, and the lists of segments and questions with their pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dtef_pipeline.site.content import Column, Section, Table, convert_to_rows
from dtef_pipeline.site.sentences import write_sentence
from dtef_pipeline.survey.site.contents import GUIDES, SENTENCES, QuestionPage, SegmentPage, SurveyContents
from dtef_pipeline.survey.site.pair_store import SCORED
from dtef_pipeline.survey.site.survey_labels import A_PERFECT_MODEL, MARGINAL

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
