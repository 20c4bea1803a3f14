"""The boards of `dtef rubric board --by`: the table, shown columns and requirements of each. Imports nothing heavy."""

from __future__ import annotations

from dtef_pipeline.boards.named_boards import Board, comparisons_board

COMPARE_BOARD, CHAMPIONS_BOARD, LABELS_BOARD = "comparisons", "champions", "labels"
_NEEDS_RUBRIC_SCORES = "a score: `dtef rubric run` makes responses, judgements and scores"
_COLUMNS_RANKED = (
    *("rank", "model", "score", "interval", "coverage", "similarity"),
    *("n_scored", "n_planned", "n_responses_scored"),
)
_NEEDS_A_JUDGE = "a judgement: `dtef rubric run --judge APPROACH=MODEL` makes some; criteria that are functions have none"


def _make_ranked_board(name: str, shows: str, *groups: str, needs: str = _NEEDS_RUBRIC_SCORES) -> Board:
    return Board(
        (*groups, *_COLUMNS_RANKED),
        ("rank", "model", "score"),
        ("n_responses_scored", "n_planned", "similarity"),
        name=name,
        table="rubric_board",
        shows=shows,
        needs=needs,
        filters_partitions="blueprint" in groups,
    )


RUBRIC_BOARDS = (
    _make_ranked_board("overall", "each model's mean score over blueprints; a rank needs 10 blueprints"),
    _make_ranked_board(
        "tag",
        "the same for the blueprints of each tag",
        "tag",
        needs="a blueprint with a tag: add `tags:` to the header of a file, then run `dtef rubric add` and `dtef rubric board --refresh`",
    ),
    _make_ranked_board("blueprint", "each model's score in each blueprint", "blueprint"),
    _make_ranked_board("prompt", "each model's score on each prompt", "blueprint", "prompt"),
    _make_ranked_board(
        "criterion",
        "each model's mean point on each criterion",
        *("blueprint", "prompt", "block", "path", "position"),
        needs="a scored criterion: `dtef rubric run` scores those of the blueprints",
    ),
    Board(
        (
            *("blueprint", "model", "judge_score", "corrected", "interval", "interval_same_prompts"),
            *("labels_needed", "prompts_needed"),
            *("n_prompts_labelled", "n_prompts", "power", "reason"),
        ),
        ("model", "judge_score", "corrected", "interval"),
        ("reason", "power", "n_prompts", "interval_same_prompts", "prompts_needed"),
        name="corrected",
        table="rubric_corrected",
        shows="scores corrected by people's labels",
        needs="people's labels: `dtef import labels SHEET` adds some, then `dtef rubric board --refresh`",
        estimate="corrected",
        ends=("corrected_low", "corrected_high"),
        further_intervals={"interval_same_prompts": ("same_prompts_low", "same_prompts_high")},
        filters_partitions=True,
        meanings={
            "interval": "95 % interval of corrected, for other prompts of the kind",
            "interval_same_prompts": "95 % interval of the score that people would give on these prompts",
        },
    ),
    Board(
        name=LABELS_BOARD,
        table="rubric_known_classes",
        shows="people's labels, and how often judges agree with them",
        needs=_NEEDS_RUBRIC_SCORES,
    ),
    comparisons_board(
        "any two models, on the prompts that both have a score for: paired differences, adjusted for all pairs",
        "two models with a score for the same prompt: `dtef rubric run --model A --model B`",
        of_partitions=True,
    ),
    Board(
        ("dimension", "rank", "model", "mean", "n_blueprints", "n_steady", "n_latest"),
        ("dimension", "rank", "model", "mean"),
        ("n_latest", "n_steady"),
        name=CHAMPIONS_BOARD,
        table="rubric_champions",
        shows="the models with the best mean grade of each dimension; rank 1 is its champion",
        notes="reason",
        name_columns=("model", "dimension"),
        needs="a grade: add a collection `analyst` to the models file; `dtef rubric run` then summarises blueprints and grades models",
    ),
    Board(
        ("cut", "value", "alpha", "interval", "reading", "n_units", "n_values", "n_clusters"),
        ("cut", "value", "alpha", "reading"),
        ("n_values", "n_units"),
        name="agreement",
        table="rubric_agreement",
        shows="agreement of judges (Krippendorff's alpha): overall, by blueprint, pair of judges, kind of criterion and language",
        estimate="alpha",
        notes="reason",
        name_columns=("value",),
        filters_partitions=True,
        needs=_NEEDS_A_JUDGE,
    ),
    Board(
        ("judge", "n", "n_scored", "n_unreadable", "n_failed", "unreadable", "partial", "mean", "calls", "cost_usd", "flagged"),
        ("judge", "n", "unreadable"),
        ("n_failed", "calls", "n_scored", "partial"),
        name="judges",
        table="rubric_judges",
        shows="each judge's calls: replies without a class, failed calls, mean class, cost",
        name_columns=("judge",),
        needs=_NEEDS_A_JUDGE,
    ),
    Board(
        ("judge", "model", "maker", "gamma", "interval", "p_adjusted", "n", "n_prompts", "flagged"),
        ("judge", "model", "gamma"),
        ("n", "n_prompts", "maker"),
        name="self-preference",
        table="rubric_self_preference",
        shows="whether judges favour models of their own maker",
        estimate="gamma",
        notes="reason",
        name_columns=("judge", "model"),
        needs=_NEEDS_A_JUDGE,
    ),
)
