"""How a leaderboard of surveys is read: its columns, and the scores beside which a score means something."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dtef_pipeline.report.leaderboard import MODEL_COLUMN, RANK, TIER, Beneath, Board, BoardColumn
from dtef_pipeline.report.markup import estimate, percent, whole
from dtef_pipeline.survey.boards.meanings import ENDS
from dtef_pipeline.survey.boards.scored import SCORED
from dtef_pipeline.survey.report.charts import references

_HOW_TO_READ_BOARD = (
    "Higher is better: a dot is a model's mean score, its whisker the 95 % interval. A model left of the marginal lines does worse than "
    "answering for everybody alike; the ceiling is what a perfect predictor would reach on samples of these sizes. The population marginal "
    "contains the answers of the very group it predicts, so it can come near the ceiling or pass it; the leave-one-out marginal does not. "
    f"A model without a score in {SCORED.ranked_from} segments (or in all, if there are fewer) is shown without a rank."
)
_RANKED_BY = (
    "Not every model has a score on every pair, and some pairs are easier than others. So models are ranked by the adjusted score: what the "
    "population marginal scores on the pairs that have one, plus the model's mean advantage over it on the pairs that both have."
)


def _boundless(rows: pd.DataFrame, cells: Sequence[str]) -> list[str]:
    """Cells of the column `worth`: an error not above 0 is that of a sample of any size."""
    boundless = rows["worth"].isna() & (rows["l2_corrected"] <= 0)
    beyond = '<span class="note">more than can be told</span>'
    return [beyond if is_boundless else cell for cell, is_boundless in zip(cells, boundless, strict=True)]


_SHOWN_COLUMNS = [
    RANK,
    TIER,
    MODEL_COLUMN,
    BoardColumn(
        "score",
        "Score",
        meaning="Mean under the published policy: unparseable and refused responses count 0, wrong lengths 0.1",
        ends=ENDS["score"],
    ),
    BoardColumn(
        "adjusted_score",
        "Ranked by",
        meaning="Adjusted score: the population marginal's score on the pairs that have one plus the model's advantage over it on shared pairs",
        ends=ENDS["adjusted_score"],
    ),
    BoardColumn(
        "parsed_score",
        "Parsed only",
        meaning="Mean over the responses that could be read; beneath it their share of all responses",
        ends=ENDS["parsed_score"],
        beneath=Beneath("parse_rate", percent, "{} read"),
    ),
    BoardColumn(
        "skill",
        "Skill",
        meaning="Position between the leave-one-out marginal (0) and the ceiling (1); beneath it between the uniform distribution (0) and the "
        "ceiling",
        ends=ENDS["skill"],
        beneath=Beneath("skill_from_uniform", estimate, "from uniform {}"),
    ),
    BoardColumn(
        "worth",
        "Worth",
        meaning="Size of a real sample of the group that would predict as well as the responses that could be read, in respondents",
        ends=ENDS["worth"],
        instead=_boundless,
    ),
    BoardColumn(
        "vs_marginal",
        "vs marginal",
        meaning="Mean advantage over the population marginal on the pairs both have",
        ends=ENDS["vs_marginal"],
        sign="+",
    ),
    BoardColumn(
        "n_pairs",
        "Pairs",
        whole,
        "Segment and question pairs behind the score; beneath it their share of the board's pairs",
        beneath=Beneath("coverage", percent, "{} of all"),
    ),
    BoardColumn(
        "n_questions",
        "Questions",
        whole,
        "Different questions behind the score; beneath it how many independent ones they are worth, as those of a battery hang together",
        beneath=Beneath("effective_questions", whole, "as sure as {}"),
    ),
]
SURVEY_BOARD = Board(_HOW_TO_READ_BOARD, _SHOWN_COLUMNS, references, _RANKED_BY)
