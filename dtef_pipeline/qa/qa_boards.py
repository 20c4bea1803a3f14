"""The boards of `dtef qa board --by`, each with its table and columns. Importing this module loads nothing heavy."""

from __future__ import annotations

from dtef_pipeline.boards.named_boards import Board, comparisons_board

_NEEDS_QA_SCORES = "a score: run `dtef qa run --model MODEL`"
_BOARD_CONDITION = ("condition", "metric", "measured_by")
_RANKED = ("rank", "model", "score", "interval", "rank_low", "rank_high")
_COUNTED = ("n_items", "n_scored", "n_failed", "n_uncited", "coverage", "n_sampled_out", "parse_rate", "score_given_parsed")
RETRIEVAL_STAGE_TABLE = "qa_retrieval"
"""Computed when it is shown, not by a roll-up."""


def _make_ranked_board(name: str, shows: str, level: str = "", *beside: str, needs: str = _NEEDS_QA_SCORES) -> Board:
    """Make the board of one cut. `level`: the column of the cut within a suite; `beside`: columns that only this cut has."""
    return Board(
        ("suite", *([level] if level else []), *_BOARD_CONDITION, *_RANKED, *beside, *_COUNTED),
        (level or "suite", "rank", "model", "score"),
        ("n_sampled_out", "n_failed", "n_scored", "score_given_parsed", "coverage", "measured_by", "rank_low", "rank_high"),
        name=name,
        table="qa_board",
        shows=shows,
        needs=needs,
        ends=("score_low", "score_high"),
        name_columns=(level or "suite", "model"),
    )


QA_BOARDS = (
    _make_ranked_board(
        *("overall", "each model's mean score in a suite: over items, and over subjects or transcripts (macro)", ""),
        *("macro_score", "n_parts"),
    ),
    _make_ranked_board("part", "each model's mean score in each part of a suite, such as a subject", "part"),
    _make_ranked_board(
        "cluster",
        "each model's mean score for each transcript or subject",
        "cluster",
        needs="items in clusters, such as questions on one transcript",
    ),
    Board(
        ("suite", "part", "condition", "measured_by", "model", "k", "pass_at_k", "interval", "n_items", "n_too_few"),
        ("model", "k", "pass_at_k"),
        ("measured_by", "n_too_few", "condition"),
        name="pass-at-k",
        table="qa_pass_at_k",
        shows="the chance that at least one of k programs for an item passes its tests",
        estimate="pass_at_k",
        ends=("pass_low", "pass_high"),
        name_columns=("part", "model"),
        needs="executed programs: run `dtef qa run --part 'humaneval/*' --model MODEL --draws 10`",
    ),
    comparisons_board(
        "every pair of models on the items scored for both: paired differences, adjusted over all pairs of a suite",
        "two models with a score for the same item: run `dtef qa run --model A --model B`",
        *("suite", *_BOARD_CONDITION),
    ),
    Board(
        ("check", "suite", "condition", "model", "metric", "value", "interval", "n", "is_suspect"),
        ("check", "model", "value", "is_suspect"),
        ("n", "metric", "condition"),
        name="validity",
        table="qa_validity",
        shows="whether scores depend on something other than the answer: order of options, judges' agreement, makers, failures, length",
        estimate="value",
        name_columns=("check", "model"),
        needs="a judgement, or responses to rotated options: run `dtef qa run --order rotated-1`",
    ),
    Board(
        ("suite", "condition", "model", "metric", "value", "interval", "n", "is_suspect"),
        ("model", "value", "is_suspect"),
        ("n", "metric"),
        name="position",
        table="qa_validity",
        shows="how much each model's mean changes with the order of the options",
        estimate="value",
        name_columns=("suite", "model"),
        check="position_bias",
        needs="responses in several orders: run `dtef qa run --order rotated-1`, and once in the file's order",
    ),
    Board(
        ("suite", "part", "condition", "recall", "precision", "hit", "mrr", "ndcg", "n_items"),
        ("part", "condition", "recall"),
        ("ndcg", "hit", "precision"),
        name="retrieval",
        table=RETRIEVAL_STAGE_TABLE,
        shows="how well the chunks of documents with the evidence were found: recall, precision, hit, MRR and nDCG",
        name_columns=("suite", "part"),
        needs="items about documents that have quotes: run `dtef qa run`, with or without a model",
        meanings={"n_items": "Items with quotes, which the means are over"},
    ),
)
