"""Surveys on the site: boards, and pages of segments and questions."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import duckdb
import pandas as pd

from dtef_pipeline.site.content import DataFile, Page
from dtef_pipeline.site.family_content import ITEM_COLUMNS, FamilyContent, FamilySite
from dtef_pipeline.statistics.cluster_robust import CONFIDENCE, MIN_CLUSTERS
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.survey.boards.survey_subject import SCORED
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.scoring import metrics
from dtef_pipeline.survey.site.contents import FAMILY, SurveyContents
from dtef_pipeline.survey.site.data_sections import data_sections, describe_policy
from dtef_pipeline.survey.site.detail_pages import DetailPages
from dtef_pipeline.survey.site.leaderboards import build_ranked_boards, verdict
from dtef_pipeline.survey.site.means import Means, lists
from dtef_pipeline.survey.site.model_sections import SurveyModelSections
from dtef_pipeline.survey.site.pair_pages import PairPages
from dtef_pipeline.survey.site.pair_store import store_pairs
from dtef_pipeline.survey.site.sections import build_conditions_section, sections
from dtef_pipeline.survey.site.survey_labels import (
    METRIC_NAMES,
    describe_asking,
    describe_watched_setting,
    partition_words,
    ranked_metric_words,
)
from dtef_pipeline.survey.site.texts import load_texts, sample_pairs
from dtef_pipeline.survey.table_folders import SURVEY_TABLES
from dtef_pipeline.survey.tables import METRICS
from dtef_pipeline.text.number_words import format_count


def read(connection: duckdb.DuckDBPyConnection) -> FamilyContent:
    """Return the pages of surveys. Without the table of observed answers there are only boards."""
    contents = SurveyContents(connection)
    boards = list(build_ranked_boards(contents))
    shared = FamilyContent(
        verdict(contents, boards[0]) if boards else "Nothing is scored yet.",
        boards,
        sections=[*sections(contents), build_conditions_section(contents)] if boards else [],
        data=list(data_sections(contents)),
        method=method(contents.metric),
        variants={name: variant for variant, name in contents.names.items()},
        setting_text=contents.format_setting_title,
    )
    return _add_pair_pages(contents, shared) if contents.questions and boards else shared


def _add_pair_pages(contents: SurveyContents, view: FamilyContent) -> FamilyContent:
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

    return replace(
        view,
        sections=[*lists(contents, means), *view.sections],
        build_model_sections=lambda name: list(models.build_model_sections(name, texts)),
        item_scores=items.rows,
        item_note=items.note,
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
    paragraphs = {name: " ".join(text.split("\n\n")[0].replace("`", "").split()) for name, text in docstrings.items()}
    return [
        "A pair is one question and one segment of a round. A cell is a pair at one context level and condition, averaged over draws. A "
        "cluster is a battery: the questions of one block, in all segments, linked over rounds. Intervals treat a battery as one "
        "observation: neither fifty segments of one question nor six questions of one battery are independent.",
        "A snapshot is one pass over the prompts. Only the latest response of each cell counts; the drift page compares snapshots. "
        "Questions that define a segment are left out for that segment.",
        f"Interval = estimate ± t × cluster-robust standard error ({CONFIDENCE:.0%}, seed {SEED}, at least {MIN_CLUSTERS} batteries): from how "
        "batteries differ, each with its scores in all segments and rounds, and from the chance in who was asked, since the same people answer "
        "all questions.",
        f"A model needs scores in {SCORED.ranked_from} segments to be ranked, or in all if there are fewer. Its best possible rank is 1 "
        "plus the number of significantly better models; its worst is the number of models minus those that are significantly worse.",
        "Ceiling (a perfect model) = expected score of the true distribution against a sample of as many respondents, simulated by pair.",
        "Leave-one-out marginal = answer of the other segments of the same attribute, weighted by size. Population marginal = answer of all "
        "segments of the round, weighted by size; it contains the target segment.",
        "Skill = (score - leave-one-out marginal) / (ceiling - leave-one-out marginal), of means: 0: knows nothing of the group; 1: "
        "perfect; below 0: worse than the leave-one-out marginal.",
        "Worth = Σ Gini / Σ corrected squared error: the size of a sample whose distribution is as far from the truth as the prediction. "
        "It leaves out unreadable responses, so a model can have a low score and a high worth.",
        "Deviation of a segment = its score minus the expected score of a segment of that size that is predicted as well as the others "
        "of its attribute.",
        describe_policy(),
        f"Leaderboards rank by {METRIC_NAMES[metric]}. These are the metrics, and what commands call them:",
        *(f"{METRIC_NAMES[name]} (`{name}`): {paragraphs[name]}" for name in METRICS),
        "Formulas, assumptions, references and the simulations that check them are in docs/explanation/statistics.md.",
    ]


MAX_PAIRS = 12_000


class ItemComparison(NamedTuple):
    """`rows` of ITEM_COLUMNS, and a sentence that describes them."""

    rows: pd.DataFrame
    note: str


def item_scores(contents: SurveyContents, means: Means, limit: int = MAX_PAIRS) -> ItemComparison:
    """Return the scores of the models of the first leaderboard, with the same pairs for all."""
    rows = contents.connection.execute(f"""
        WITH own AS ({means.scored_pairs_sql}), pairs AS (SELECT DISTINCT s, q FROM own), chosen AS (
            SELECT *, count(*) OVER () AS of_pairs FROM pairs QUALIFY row_number() OVER (ORDER BY md5('{SEED}/' || s || '/' || q)) <= {limit}
        ) SELECT s, q, series, score, of_pairs FROM own JOIN chosen USING (s, q) ORDER BY series, s, q
        """).df()
    if not len(rows):
        return ItemComparison(pd.DataFrame(columns=list(ITEM_COLUMNS)), "")
    named = rows[["s", "q"]].drop_duplicates()
    segments, questions = list(contents.segments.values()), list(contents.questions.values())
    places = list(zip(named["s"], named["q"], strict=True))
    words = named.assign(
        item=[f"{questions[q].round}/{segments[s].id}/{questions[q].id}" for s, q in places],
        label=[f"{questions[q].title} ({segments[s].label})" for s, q in places],
        page=[segments[s].pair_page(questions[q]) for s, q in places],
    )
    n_pairs, n_shown = int(rows["of_pairs"].iloc[0]), len(named)
    names = {place: means.series[place].name for place in means.main_series}
    items = rows.merge(words, on=["s", "q"]).assign(model=rows["series"].map(names))
    title = contents.title(contents.main).lower()
    sample = (
        f"a random sample of {n_shown:,} of {format_count(n_pairs, 'pair')} (seed {SEED})"
        if n_shown < n_pairs
        else format_count(n_pairs, "pair")
    )
    return ItemComparison(items[list(ITEM_COLUMNS)], f"Pairs of question and segment, {title}: {sample}.")
