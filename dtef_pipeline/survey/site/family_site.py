"""Surveys on the site: boards, and pages of segments and questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import duckdb

from dtef_pipeline.site.content import DataFile, Page, Section
from dtef_pipeline.site.family_view import FamilySite, FamilyView
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.site.conditions import build_conditions_section
from dtef_pipeline.survey.site.contents import FAMILY, SurveyContents
from dtef_pipeline.survey.site.data_sections import data_sections
from dtef_pipeline.survey.site.detail_pages import DetailPages
from dtef_pipeline.survey.site.item_scores import item_scores
from dtef_pipeline.survey.site.leaderboards import build_ranked_boards, verdict
from dtef_pipeline.survey.site.lists import lists
from dtef_pipeline.survey.site.means import Means
from dtef_pipeline.survey.site.method import method
from dtef_pipeline.survey.site.model_sections import SurveyModelSections
from dtef_pipeline.survey.site.pair_pages import PairPages
from dtef_pipeline.survey.site.pair_store import store_pairs
from dtef_pipeline.survey.site.sections import sections
from dtef_pipeline.survey.site.survey_labels import describe_asking, describe_watched_way, part_words, ranked_metric_words
from dtef_pipeline.survey.site.texts import load_texts, sample_pairs
from dtef_pipeline.survey.survey_pairs import SURVEY_PAIRED
from dtef_pipeline.survey.table_folders import SURVEY_TABLES


def read(connection: duckdb.DuckDBPyConnection) -> FamilyView:
    """Return the pages of surveys. Without the table of observed answers there are only boards."""
    contents = SurveyContents(connection)
    boards = list(build_ranked_boards(contents))
    shared = FamilyView(
        verdict(contents, boards[0]) if boards else "Nothing is scored yet.",
        boards,
        sections=[*sections(contents), build_conditions_section(contents)] if boards else [],
        data=list(data_sections(contents)),
        method=method(contents.metric),
        variants={name: variant for variant, name in contents.names.items()},
        way=contents.format_way_title,
    )
    return _add_pair_pages(contents, shared) if contents.questions and boards else shared


def _add_pair_pages(contents: SurveyContents, view: FamilyView) -> FamilyView:
    """Add pages of segments and questions, and all data on single pairs."""
    series = store_pairs(contents)
    means = Means(contents, series)
    models = SurveyModelSections(contents, means, series)
    texts = load_texts(contents, models.places)
    items = item_scores(contents, means)

    def pages() -> Iterator[Page | DataFile]:
        sample = sample_pairs(contents)
        pairs = PairPages(contents, series, sample, load_texts(contents, [*sample.places, *models.places]))
        yield from DetailPages(contents, means, pairs).pages()
        yield from pairs.files()

    def build_sections(name: str) -> Sequence[Section]:
        return list(models.build_model_sections(name, texts))

    return replace(
        view,
        sections=[*lists(contents, means), *view.sections],
        build_model_sections=build_sections,
        item_scores=items.rows,
        item_note=items.note,
        pages=pages,
    )


SURVEY_SITE = FamilySite(
    FAMILY,
    "Surveys",
    "segment",
    tuple(SURVEY_TABLES),
    "scores",
    read,
    SUBJECT,
    SURVEY_PAIRED.metrics,
    part_words=part_words,
    metric_words=ranked_metric_words,
    describe_asking=describe_asking,
    describe_watched_way=describe_watched_way,
    responses="predictions",
)
