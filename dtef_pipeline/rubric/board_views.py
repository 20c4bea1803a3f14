"""What `dtef rubric board --by` shows: each view with its table, its columns for people, and what fills it. Loads nothing heavy."""

from __future__ import annotations

from dtef_pipeline.boards.family_views import BoardView

COMPARE_VIEW, CHAMPIONS_VIEW, CORRECTED_VIEW, LABELS_VIEW = "comparisons", "champions", "corrected", "labels"
"""The views that are made in a way of their own."""


_NEEDS_RUBRIC_SCORES = "a score: `dtef rubric run` asks, judges and scores"
_COLUMNS_RANKED = (
    *("rank", "model", "score", "interval", "coverage", "similarity", "n_parts", "n_planned", "n_responses_scored", "n_scored"),
)
_KEPT_OF_RANKED, _FIRST_OUT_OF_RANKED = ("rank", "model", "score"), ("n_responses_scored", "n_planned", "similarity")
_NEEDS_A_JUDGE = (
    "the verdict of a judge: `dtef rubric run --judge APPROACH=MODEL` asks judges; criteria that are functions need none"
)


def _ranked(name: str, shows: str, *groups: str, needs: str = _NEEDS_RUBRIC_SCORES) -> BoardView:
    """A cut of the board."""
    columns = (*groups, *_COLUMNS_RANKED)
    view = BoardView(name, "rubric_board", shows, columns, _KEPT_OF_RANKED, needs, _FIRST_OUT_OF_RANKED)
    return view._replace(of_partitions="blueprint" in groups)


BOARD_VIEWS = (
    _ranked("overall", "each model's mean score over blueprints; ranked from 10 blueprints on"),
    _ranked(
        "tag",
        "the same over the blueprints of each tag",
        "tag",
        needs="a blueprint with a tag: write `tags:` in the header of a file, then `dtef rubric add` and `dtef rubric board --refresh`",
    ),
    _ranked("blueprint", "each model's score in each blueprint", "blueprint"),
    _ranked("prompt", "each model's score on each prompt", "blueprint", "prompt"),
    _ranked(
        "criterion",
        "each model's mean point on each criterion",
        *("blueprint", "prompt", "block", "path", "position"),
        needs="a scored criterion: `dtef rubric run` scores those of the blueprints",
    ),
    BoardView(
        CORRECTED_VIEW,
        "rubric_corrected",
        "scores corrected by people's labels",
        (),
        (),
        _NEEDS_RUBRIC_SCORES,
        of_partitions=True,
    ),
    BoardView(
        LABELS_VIEW,
        "rubric_known_classes",
        "what people labelled, and how often judges say what they say",
        (),
        (),
        _NEEDS_RUBRIC_SCORES,
    ),
    BoardView(
        COMPARE_VIEW,
        "comparisons",
        "every two models on the prompts that both have a score for: paired differences, adjusted over all pairs",
        (
            *("model", "other_model", "verdict", "difference", "interval", "score", "other_score"),
            *("n_clusters", "n_items", "p_adjusted"),
        ),
        ("model", "other_model", "verdict", "difference"),
        first_out=("n_clusters", "n_items", "other_score", "score"),
        estimate="difference",
        who=("model", "other_model"),
        of_partitions=True,
        needs="two models with a score for the same prompt: `dtef rubric run --model A --model B` asks both",
    ),
    BoardView(
        CHAMPIONS_VIEW,
        "rubric_champions",
        "the models with the best mean grade of each dimension; rank 1 is its champion",
        ("dimension", "rank", "model", "mean", "n_blueprints", "n_steady", "n_latest"),
        ("dimension", "rank", "model", "mean"),
        first_out=("n_latest", "n_steady"),
        notes="reason",
        who=("model", "dimension"),
        needs="a grade: a collection `analyst` in the models file sums up blueprints and grades their models at `dtef rubric run`",
    ),
    BoardView(
        "agreement",
        "rubric_agreement",
        "how far judges agree (Krippendorff's alpha): overall, by blueprint, pair of judges, kind of criterion and language",
        ("cut", "value", "alpha", "interval", "reading", "n_units", "n_values", "n_clusters"),
        ("cut", "value", "alpha", "reading"),
        first_out=("n_values", "n_units"),
        estimate="alpha",
        notes="reason",
        who=("value",),
        of_partitions=True,
        needs=_NEEDS_A_JUDGE,
    ),
    BoardView(
        "judges",
        "rubric_judges",
        "what became of each judge's calls: replies that say no class, failed calls, mean class, cost",
        (
            *("judge", "n", "n_scored", "n_unreadable", "n_failed", "unreadable", "partial", "mean"),
            *("calls", "cost_usd", "flagged"),
        ),
        ("judge", "n", "unreadable"),
        first_out=("n_failed", "calls", "n_scored", "partial"),
        who=("judge",),
        needs=_NEEDS_A_JUDGE,
    ),
    BoardView(
        "self-preference",
        "rubric_self_preference",
        "whether judges favour models of their own maker",
        ("judge", "model", "maker", "gamma", "interval", "p_adjusted", "n", "n_prompts", "flagged"),
        ("judge", "model", "gamma"),
        first_out=("n", "n_prompts", "maker"),
        estimate="gamma",
        notes="reason",
        who=("judge", "model"),
        needs=_NEEDS_A_JUDGE,
    ),
)
BOARD_VIEW_BY_NAME = {view.name: view for view in BOARD_VIEWS}
