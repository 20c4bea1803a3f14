"""What `dtef qa board --by` shows: each view with its table and its columns for people. Loads nothing heavy."""

from __future__ import annotations

from dtef_pipeline.boards.family_views import BoardView

_NEEDS_QA_SCORES = "a score: `dtef qa run --model MODEL` asks and scores"
_BOARD_WAYS = ("condition", "metric", "measured_by")
_RANKED_COLUMNS = ("rank", "model", "score", "interval", "rank_low", "rank_high")
_COUNT_COLUMNS = (
    "n_items",
    "n_scored",
    "n_failed",
    "n_uncited",
    "coverage",
    "n_sampled_out",
    "parse_rate",
    "score_given_parsed",
)
_SCORE_ENDS = ("score_low", "score_high")
_FIRST_OUT_OF_SCORES = (
    "n_sampled_out",
    "n_failed",
    "n_scored",
    "score_given_parsed",
    "coverage",
    "measured_by",
    "rank_low",
    "rank_high",
)
_CHECK_COLUMNS = ("check", "suite", "condition", "model", "metric", "value", "interval", "n", "warn")
RETRIEVAL_STAGE_TABLE = "qa_retrieval"
"""Not made by a roll-up: its means are taken when they are shown."""
QA_VIEWS = (
    BoardView(
        "overall",
        "qa_board",
        "each model's mean score in a suite: over items, and over subjects or transcripts (macro)",
        ("suite", *_BOARD_WAYS, *_RANKED_COLUMNS, "macro_score", "n_parts", *_COUNT_COLUMNS),
        ("suite", "rank", "model", "score"),
        first_out=_FIRST_OUT_OF_SCORES,
        ends=_SCORE_ENDS,
        who=("suite", "model"),
        needs=_NEEDS_QA_SCORES,
    ),
    BoardView(
        "part",
        "qa_board",
        "the same in each part of a suite, such as a subject",
        ("suite", "part", *_BOARD_WAYS, *_RANKED_COLUMNS, *_COUNT_COLUMNS),
        ("part", "rank", "model", "score"),
        first_out=_FIRST_OUT_OF_SCORES,
        ends=_SCORE_ENDS,
        who=("part", "model"),
        needs=_NEEDS_QA_SCORES,
    ),
    BoardView(
        "cluster",
        "qa_board",
        "the same for each transcript or subject",
        ("suite", "cluster", *_BOARD_WAYS, *_RANKED_COLUMNS, *_COUNT_COLUMNS),
        ("cluster", "rank", "model", "score"),
        first_out=_FIRST_OUT_OF_SCORES,
        ends=_SCORE_ENDS,
        who=("cluster", "model"),
        needs="items that hang together, such as questions on one transcript",
    ),
    BoardView(
        "pass-at-k",
        "qa_pass_at_k",
        "the chance that of k programs for an item one or more pass its tests",
        ("suite", "part", "condition", "measured_by", "model", "k", "pass_at_k", "interval", "n_items", "n_too_few"),
        ("model", "k", "pass_at_k"),
        first_out=("measured_by", "n_too_few", "condition"),
        estimate="pass_at_k",
        ends=("pass_low", "pass_high"),
        who=("part", "model"),
        needs="a program that was run: `dtef qa run --part 'humaneval/*' --model MODEL --draws 10`",
    ),
    BoardView(
        "comparisons",
        "comparisons",
        "every two models on the items that both have a score for: paired differences, adjusted over all pairs of a suite",
        (
            *("suite", *_BOARD_WAYS, "model", "other_model", "verdict", "difference", "interval", "score", "other_score"),
            *("n_items", "n_clusters", "p_adjusted"),
        ),
        ("model", "other_model", "verdict", "difference"),
        first_out=("n_clusters", "measured_by", "other_score", "score"),
        estimate="difference",
        who=("suite", "model", "other_model"),
        needs="two models with a score for the same item: `dtef qa run --model A --model B` asks both",
    ),
    BoardView(
        "validity",
        "qa_validity",
        "whether scores rest on something besides the answer: order of options, judges' agreement, makers, failures, length",
        _CHECK_COLUMNS,
        ("check", "model", "value", "warn"),
        first_out=("n", "metric", "condition"),
        estimate="value",
        who=("check", "model"),
        needs="a judgement, or items asked with rotated options: `dtef qa run --order rotated-1`",
    ),
    BoardView(
        "position",
        "qa_validity",
        "how far each model's mean moves with the order of the options",
        _CHECK_COLUMNS[1:],
        ("model", "value", "warn"),
        first_out=("n", "metric"),
        estimate="value",
        who=("suite", "model"),
        check="position_bias",
        needs="items asked in several orders: `dtef qa run --order rotated-1`, beside a run in the file's order",
    ),
    BoardView(
        "retrieval",
        RETRIEVAL_STAGE_TABLE,
        "how well the chunks of documents with the evidence were found: recall, precision, hit, MRR and nDCG",
        ("suite", "part", "condition", "recall", "precision", "hit", "mrr", "ndcg", "n_items"),
        ("part", "condition", "recall"),
        first_out=("ndcg", "hit", "precision"),
        who=("suite", "part"),
        needs="items about documents that name quotes: `dtef qa run` looks for these, also without a model",
    ),
)
QA_VIEW_BY_NAME = {view.name: view for view in QA_VIEWS}
