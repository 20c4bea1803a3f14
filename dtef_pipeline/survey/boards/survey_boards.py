"""The boards of the scores, with name, table and shown columns. Imports nothing heavy."""

from __future__ import annotations

from dtef_pipeline.boards.named_boards import Board
from dtef_pipeline.survey.keys import KEYS

_MODEL_AT_LEVEL = ("model", "context_level")
_MODEL_AND_SCORE = ("model", "score", "interval")
_SPREAD = (
    *("segment_sd_true", "interval", "segment_p", "segment_sd", "segment_sd_expected"),
    *("lowest", "lowest_segment", "highest", "highest_segment"),
)
_DIFFERENCE = ("difference", "interval")
_DIFFERENCE_COLUMNS = (*_DIFFERENCE, "p_adjusted", "verdict")
_DEVIATION = ("deviation", "interval", "p_adjusted", "verdict")
_REPEATED = ("icc", "interval", "within_sd", "rerun_detectable", "model_detectable")
_COMPARED_IN = ("n_pairs", "n_items", "n_clusters", "note")
_PAID = ("parse_rate", "prompt_tokens", "completion_tokens", "cost_usd")
_BASIS_COLUMNS = ("n_pairs", "n_questions", "n_batteries", "note")
BREAKDOWNS = "breakdowns"
"""The table of all breakdowns; its column `cut` has the names of their boards."""
PUBLISHED = (
    Board(
        (),
        ("rank", *_MODEL_AND_SCORE, "questions"),
        name="overall",
        table="leaderboard",
        shows="each model's mean score over all rounds, segments and questions",
    ),
    Board(("round",), ("round", "rank", *_MODEL_AND_SCORE), name="round", table=BREAKDOWNS, shows="the same within each round"),
    Board(
        ("segment",),
        ("segment", *_MODEL_AND_SCORE, "questions"),
        name="segment",
        table=BREAKDOWNS,
        shows="the same within each segment, such as country:kenya",
    ),
    Board(
        ("attribute",),
        ("attribute", "rank", *_MODEL_AND_SCORE),
        name="attribute",
        table=BREAKDOWNS,
        shows="the same within each attribute of segments, such as country",
    ),
    Board(
        ("round", "question_id", "question"),
        ("round", "question", "model", "score"),
        name="question",
        table=BREAKDOWNS,
        shows="the same within each question",
    ),
    Board(
        ("rank", *_MODEL_AT_LEVEL, "score", *_SPREAD, "n_segments", "n_pairs", "consistency_note"),
        ("rank", "model", "segment_sd_true", "interval", "segment_p"),
        name="consistency",
        table="consistency",
        shows="how much a model's score differs between segments",
    ),
    Board(
        (*_MODEL_AT_LEVEL, "n_pairs"),
        ("model",),
        name="metric",
        table="metric_ranks",
        shows="each model's rank under every metric",
    ),
    Board(
        (
            *("model", "other_model", "context_level", "adjusted_over"),
            *(*_DIFFERENCE_COLUMNS, "parsed_verdict", "effect_size", *_COMPARED_IN),
        ),
        ("model", "other_model", *_DIFFERENCE_COLUMNS),
        name="comparisons",
        table="comparisons",
        shows="any two models: the difference of their scores, and whether it is significant",
        needs="two models with a score for the same cells",
    ),
    Board(
        (
            *("model", "levels", "score_at_lowest_context", "score_at_highest_context"),
            *(*_DIFFERENCE_COLUMNS, "parsed_verdict", "slope", *_BASIS_COLUMNS),
        ),
        ("model", "levels", "difference", "verdict"),
        name="context",
        table="responsiveness",
        shows="whether a model's score rises when it is shown more of the segment's other answers",
        needs="a model asked at two context levels, such as `dtef run --context 0 --context 5`",
    ),
    Board(
        ("attribute", "segment", *_MODEL_AT_LEVEL, *_DEVIATION, "parsed_verdict", "score", "expected", "n", "n_pairs", "note"),
        ("segment", "model", *_DEVIATION),
        name="gaps",
        table="segment_gaps",
        shows="segments of an attribute that a model predicts worse or better than the others, given their sizes",
        needs="an attribute with two segments",
    ),
    Board(
        (*_MODEL_AT_LEVEL, "n_cells", "n_draws", *_REPEATED, "note"),
        ("model", "icc", "interval", "model_detectable"),
        name="reliability",
        table="reliability",
        shows="agreement of repeated draws of one prompt, and the smallest difference that can be detected",
        needs="a model with a score",
    ),
)
"""Every stored board, rankings first. A ranking by `groups` lists only the columns that identify its rows; the columns of all rankings follow.
The board of all metrics also keeps the score under each metric."""
_COMPARED_WITH_FIRST = {
    "model": "Name of the model",
    "condition": "Condition under which the models were asked",
    "context_level": "Number of context questions in the prompt",
    "n_pairs": "Pairs of segment and question that the model has in this condition and in the reference condition",
    "score": "Mean score over these pairs, 0-1: higher is better",
    "first_score": "Mean score over the same pairs in the reference condition, 0-1: higher is better",
    "difference": "Mean score minus that of the reference condition, over the same pairs: above 0 is better",
    "interval": "95 % interval of the difference, clustered by battery of questions",
    "p_adjusted": "p value of the difference, 0-1, adjusted over all rows of the board (Holm)",
    "verdict": "Better or worse: significant; equivalent: the 90 % interval lies within the margin of 0.01; undecided: neither",
    "parsed_verdict": "The same verdict from pairs with readable responses in both conditions",
    "parse_rate": "Share of responses that could be read, 0-1",
    "prompt_tokens": "Tokens of prompts; each request counts once",
    "completion_tokens": "Tokens of responses; each request counts once",
    "cost_usd": "Cost of the requests with a known price, in US dollars",
    "note": "Reason why there is no interval, or what to know about the verdict",
}
BOARDS = (
    *PUBLISHED,
    Board(
        (*_MODEL_AT_LEVEL, *_DIFFERENCE_COLUMNS, "parsed_verdict", "score", "first_score", "n_pairs", *_PAID, "note"),
        ("model", "condition", *_DIFFERENCE, "verdict"),
        name="conditions",
        table="",
        shows="each condition against the reference: that of --condition, else distribution/attribute-label",
        needs="a model asked in two conditions, such as `dtef run --condition distribution --condition distribution+cot`",
        meanings=_COMPARED_WITH_FIRST,
    ),
)
"""Every board; the last has no table."""
BY_NAME = {board.name: board for board in BOARDS}
GROUPED = tuple(KEYS.groups)
"""Names of the boards whose rows are models in groups of the keys, in one form."""
