"""Scores for comparing two models item by item: of all pairs if there are few, else of a seeded sample."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from dtef_pipeline.site.family_view import ITEM_COLUMNS
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.survey.site.contents import SurveyContents
from dtef_pipeline.survey.site.means import Means
from dtef_pipeline.text.quantity_words import format_count

MAX_PAIRS = 12_000


class ItemComparison(NamedTuple):
    """`rows` of ITEM_COLUMNS, and a sentence that describes them."""

    rows: pd.DataFrame
    note: str


def item_scores(contents: SurveyContents, means: Means, most: int = MAX_PAIRS) -> ItemComparison:
    """Return the scores of the models of the first leaderboard, with the same pairs for all."""
    rows = contents.connection.execute(f"""
        WITH own AS ({means.scored_pairs_sql}), pairs AS (SELECT DISTINCT s, q FROM own), chosen AS (
            SELECT *, count(*) OVER () AS of_pairs FROM pairs QUALIFY row_number() OVER (ORDER BY md5('{SEED}/' || s || '/' || q)) <= {most}
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
    of_pairs, n_shown = int(rows["of_pairs"].iloc[0]), len(named)
    names = {at: means.series[at].name for at in means.main_series}
    items = rows.merge(words, on=["s", "q"]).assign(model=rows["series"].map(names))
    way = contents.title(contents.main).lower()
    sample = (
        f"a random sample of {n_shown:,} of {format_count(of_pairs, 'pair')} (seed {SEED})"
        if n_shown < of_pairs
        else format_count(of_pairs, "pair")
    )
    return ItemComparison(items[list(ITEM_COLUMNS)], f"Pairs of question and segment, {way}: {sample}.")
