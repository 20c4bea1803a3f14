"""What is published of the scores: each view by the name people choose it by, its table, and what is shown of it. Loads nothing heavy."""

from __future__ import annotations

from typing import NamedTuple

from dtef_pipeline.survey.keys import KEYS


class View(NamedTuple):
    """Rows made of the scores. Boards rank models; the others test what boards show."""

    name: str
    """What `dtef board --by` calls it."""
    table: str
    """The table it is stored as."""
    shows: str
    """What its rows say, in the words of `dtef board --help`."""
    columns: tuple[str, ...]
    """Columns shown to people; of a board of `groups` those that its rows are told apart by, before the columns of all such boards."""
    subject: tuple[str, ...] = ()
    """Those of the columns that are shown however narrow the terminal is: what the rows are about, and their main numbers. Beside these the
    scores under every metric, in the view that has them."""
    is_board: bool = True
    needs: str = ""
    """Of a test: what must have been asked for it to have rows."""


_MODEL_AT_LEVEL = ("model", "context_level")
_MODEL_AND_SCORE = ("model", "score", "interval")
_SPREAD = (
    "segment_sd_true",
    "interval",
    "segment_p",
    "segment_sd",
    "segment_sd_expected",
    "lowest",
    "lowest_segment",
    "highest",
    "highest_segment",
)
_DIFFERENCE = ("difference", "interval")
_APART = (*_DIFFERENCE, "p_adjusted", "verdict")
_REACTION = (*_DIFFERENCE, "p_adjusted", "verdict")
_DEVIATION = ("deviation", "interval", "p_adjusted", "verdict")
_REPEATED = ("icc", "interval", "within_sd", "rerun_detectable", "model_detectable")
_COMPARED_IN = ("n_pairs", "n_items", "n_clusters", "note")
_FOUND_IN = ("n_pairs", "n_questions", "n_batteries", "note")
BREAKDOWNS = "breakdowns"
"""The table of all boards that are cut in one way; its column `cut` has the names of their views."""
PUBLISHED = (
    View(
        "overall",
        "leaderboard",
        "each model's mean score over all rounds, segments and questions",
        (),
        ("rank", "tier", *_MODEL_AND_SCORE, "questions"),
    ),
    View(
        "round",
        BREAKDOWNS,
        "the same within each round",
        ("round",),
        ("round", "rank", *_MODEL_AND_SCORE),
    ),
    View(
        "segment",
        BREAKDOWNS,
        "the same within each segment, such as country:kenya",
        ("segment",),
        ("segment", *_MODEL_AND_SCORE, "questions"),
    ),
    View(
        "attribute",
        BREAKDOWNS,
        "the same within each attribute of segments, such as country",
        ("attribute",),
        ("attribute", "rank", *_MODEL_AND_SCORE),
    ),
    View(
        "question",
        BREAKDOWNS,
        "the same within each question",
        ("round", "question_id", "question"),
        ("round", "question", "model", "score"),
    ),
    View(
        "consistency",
        "consistency",
        "how much a model's score differs between segments",
        ("rank", *_MODEL_AT_LEVEL, "score", *_SPREAD, "n_segments", "n_pairs", "consistency_note"),
        subject=("rank", "model", "segment_sd_true", "interval", "segment_p"),
    ),
    View("metric", "metric_ranks", "each model's rank under every metric", (*_MODEL_AT_LEVEL, "n_pairs"), ("model",)),
    View(
        "comparisons",
        "comparisons",
        "every two models: the difference of their scores, and whether chance could have made it",
        ("model", "other_model", "context_level", "among", *_APART, "parsed_verdict", "effect_size", *_COMPARED_IN),
        subject=("model", "other_model", *_APART),
        is_board=False,
        needs="two models with a score for the same cells",
    ),
    View(
        "context",
        "responsiveness",
        "whether a model's score rises when it is shown more of the segment's other answers",
        ("model", "levels", "least_score", "most_score", *_REACTION, "parsed_verdict", "slope", *_FOUND_IN),
        subject=("model", "levels", "difference", "verdict"),
        is_board=False,
        needs="a model asked at two context levels, such as `dtef run --context 0 --context 5`",
    ),
    View(
        "gaps",
        "segment_gaps",
        "which segments of an attribute a model predicts worse or better than the others, sample size accounted for",
        ("attribute", "segment", *_MODEL_AT_LEVEL, *_DEVIATION, "parsed_verdict", "score", "expected", "n", "n_pairs", "note"),
        subject=("segment", "model", *_DEVIATION),
        is_board=False,
        needs="an attribute with two segments",
    ),
    View(
        "reliability",
        "reliability",
        "how far repeated draws of one prompt agree, and how small a difference could be found",
        (*_MODEL_AT_LEVEL, "n_cells", "n_draws", *_REPEATED, "note"),
        subject=("model", "icc", "interval", "model_detectable"),
        is_board=False,
        needs="a model with a score",
    ),
)
"""Every view, boards first."""
BY_NAME = {view.name: view for view in PUBLISHED}
GROUPED = tuple(KEYS.groups)
"""Names of the boards whose rows are models in groups of the keys, in one form."""
