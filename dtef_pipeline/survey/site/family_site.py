"""Surveys on the site: boards, and pages of segments and questions."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace

import duckdb
import pandas as pd

from dtef_pipeline.site.content import DataFile, Page
from dtef_pipeline.site.family_content import ITEM_COLUMNS, FamilyContent, FamilySite
from dtef_pipeline.site.sentences import write_paragraphs, write_sentence
from dtef_pipeline.statistics.cluster_robust import CONFIDENCE, MIN_CLUSTERS
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.survey.boards.survey_subject import SCORED
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.scoring import metrics
from dtef_pipeline.survey.site.boards import board_sections, build_ranked_boards, verdict
from dtef_pipeline.survey.site.contents import FAMILY, SENTENCES, SurveyContents
from dtef_pipeline.survey.site.data_sections import data_sections, describe_policy
from dtef_pipeline.survey.site.detail_pages import Axis, DetailPages, Spreads, list_pages, read_spreads
from dtef_pipeline.survey.site.model_sections import SurveyModelSections
from dtef_pipeline.survey.site.pairs import SCORED as SCORED_PAIRS
from dtef_pipeline.survey.site.pairs import PairPages, load_texts, sample_pairs, store_pairs
from dtef_pipeline.survey.site.survey_labels import (
    METRIC_NAMES,
    describe_asking,
    describe_watched_setting,
    partition_words,
    ranked_metric_words,
)
from dtef_pipeline.survey.stages import SURVEY_TABLES
from dtef_pipeline.survey.tables import METRICS


def read(connection: duckdb.DuckDBPyConnection) -> FamilyContent:
    """Return the pages of surveys. Without the table of observed answers there are only boards."""
    contents = SurveyContents(connection)
    boards = list(build_ranked_boards(contents))
    content = FamilyContent(
        verdict(contents, boards[0]) if boards else "No leaderboard is stored yet: `dtef survey board --refresh` makes it.",
        boards,
        sections=list(board_sections(contents)) if boards else [],
        data=list(data_sections(contents)),
        method=method(contents.metric),
        variants={name: variant for variant, name in contents.names.items()},
        setting_text=contents.format_setting_title,
    )
    return _add_pairs(contents, content) if contents.questions and boards else content


def _add_pairs(contents: SurveyContents, content: FamilyContent) -> FamilyContent:
    """Add pages of segments and questions, and all data on single pairs."""
    store_pairs(contents)
    spreads: dict[Axis, Spreads] = {"s": read_spreads(contents, "s"), "q": read_spreads(contents, "q")}
    models = SurveyModelSections(contents)
    texts = load_texts(contents, models.places)
    items = read_item_scores(contents)

    def pages() -> Iterator[Page | DataFile]:
        sample = sample_pairs(contents)
        pairs = PairPages(contents, load_texts(contents, [*sample.places, *models.places]), sample.note)
        yield from DetailPages(contents, pairs, spreads).pages()
        yield from pairs.files()

    return replace(
        content,
        sections=[*(list_pages(contents, key, spreads[key]) for key in spreads), *content.sections],
        build_model_sections=lambda name: models.build_sections(name, texts),
        item_scores=items[list(ITEM_COLUMNS)],
        item_note=describe_items(contents, items),
        pages=pages,
    )


SURVEY_SITE = FamilySite(
    FAMILY,
    "Surveys",
    tuple(SURVEY_TABLES),
    "scores",
    read,
    SUBJECT,
    partition_words=partition_words,
    metric_words=ranked_metric_words,
    describe_asking=describe_asking,
    describe_watched_setting=describe_watched_setting,
    responses="predictions",
)


def method(metric: str) -> list[str]:
    """Return paragraphs for the page on method. `metric` is the ranking metric of the boards."""
    docstrings = {name: inspect.getdoc(getattr(metrics, name)) or "" for name in METRICS}
    return write_paragraphs(
        "survey/method.txt.j2",
        confidence=f"{CONFIDENCE:.0%}",
        seed=SEED,
        min_clusters=MIN_CLUSTERS,
        ranked_from=SCORED.ranked_from,
        policy=describe_policy(),
        ranked_by=METRIC_NAMES[metric],
        metrics=[(METRIC_NAMES[name], name, text.split("\n\n")[0].replace("`", "")) for name, text in docstrings.items()],
    )


MAX_PAIRS = 12_000


def read_item_scores(contents: SurveyContents, limit: int = MAX_PAIRS) -> pd.DataFrame:
    """Return ITEM_COLUMNS of the models of the first leaderboard, with the same pairs for all, and `n_pairs`, those of all models."""
    return contents.query_frame(f"""
        WITH pairs AS (SELECT DISTINCT s, q FROM {SCORED_PAIRS}), chosen AS (
            SELECT *, count(*) OVER () AS n_pairs FROM pairs QUALIFY row_number() OVER (ORDER BY md5('{SEED}/' || s || '/' || q)) <= {limit}
        )
        SELECT site_series.name AS model, concat_ws('/', round, segment, question_id) AS item, title || ' (' || label || ')' AS label,
            page || '#question=' || site_questions.name AS page, score, n_pairs
        FROM {SCORED_PAIRS} JOIN chosen USING (s, q) JOIN site_segments USING (s) JOIN site_questions USING (q) JOIN site_series USING (series)
        ORDER BY series, s, q
        """)


def describe_items(contents: SurveyContents, items: pd.DataFrame) -> str:
    """Return a sentence on the rows of `read_item_scores`; empty if there are none."""
    if not len(items):
        return ""
    n_pairs, n_shown = int(items["n_pairs"].iloc[0]), items["item"].nunique()
    setting = contents.title(contents.settings[0]).lower()
    return write_sentence(SENTENCES, "items", n_shown=n_shown, n_pairs=n_pairs, setting=setting, seed=SEED)
