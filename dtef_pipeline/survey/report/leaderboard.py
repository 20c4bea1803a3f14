"""How a leaderboard of surveys is read: its columns, and the scores beside which a score means something."""

from __future__ import annotations

from dtef_pipeline.report.leaderboard import MODEL_COLUMN, RANK, TIER, Beneath, Board, BoardColumn
from dtef_pipeline.report.markup import percent, whole
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
    "Not every model has a score on every pair, and some pairs are easier than others. So models are ranked by the adjusted score: the score "
    "that each would have, had all been asked the same pairs (least squares of model and pair, over the pairs that two models or more have)."
)


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
        meaning="Adjusted score: the score had every model been asked the same pairs",
    ),
    BoardColumn(
        "parsed_score",
        "Parsed only",
        meaning="Mean over the responses that could be read; beneath it their share of all responses",
        beneath=Beneath("parse_rate", percent, "{} read"),
    ),
    BoardColumn(
        "skill",
        "Skill",
        meaning="Position between the leave-one-out marginal (0) and the ceiling (1)",
        ends=ENDS["skill"],
    ),
    BoardColumn(
        "worth",
        "Worth",
        meaning="Size of a real sample of the group that would predict as well as the responses that could be read, in respondents",
    ),
    BoardColumn("n_pairs", "Pairs", whole, "Segment and question pairs behind the score"),
    BoardColumn(
        "n_questions",
        "Questions",
        whole,
        "Different questions behind the score; beneath it their batteries, by which intervals go",
        beneath=Beneath("n_batteries", whole, "{} batteries"),
    ),
]
SURVEY_BOARD = Board(_HOW_TO_READ_BOARD, _SHOWN_COLUMNS, references, _RANKED_BY)
