"""The columns that means, ranks and pass@k add to those of a group. A separate module because every command loads them."""

from __future__ import annotations

import pyarrow as pa

from dtef_pipeline.tables import MODEL_FIELDS, field

RIGHT_METRIC, PASSED_METRIC = "correct", "passed"
"""Metrics of what is right or wrong by its nature: whether the answer is right; whether the tests pass."""

MEAN_COLUMNS = (
    field("n_total", pa.int64(), "Responses in the table of scores; each draw counts"),
    field("n_scored", pa.int64(), "Responses with a score; one that cannot be read has the score 0"),
    field("n_skipped", pa.int64(), "Responses that were not judged: not in the sample, or over the budget"),
    field("n_failed", pa.int64(), "Responses without a score for another reason: a judge, a sandbox or a call failed, or nothing scores them"),
    field("n_items", pa.int64(), "Items with a scored response"),
    field("n_clusters", pa.int64(), "Clusters, such as subjects or transcripts, with a scored response"),
    field("parse_rate", pa.float64(), "Share of the scored responses that could be read, 0-1; null: none is scored"),
    field("score", pa.float64(), "Mean score over items (micro), 0-1: higher is better; draws are averaged inside an item first"),
    field("score_low", pa.float64(), "Lower end of the 95 % interval of the score; null: none (see note)"),
    field("score_high", pa.float64(), "Upper end of the 95 % interval of the score; null: none (see note)"),
    field("interval_kind", pa.string(), "Interval of the score: wilson (right and wrong items), t (items) or clustered (t); null: none"),
    field("score_given_parsed", pa.float64(), "Mean over items of only the responses that could be read, 0-1; null: none could"),
    field("macro_score", pa.float64(), "Mean of the means of subjects or transcripts (macro), 0-1: higher is better"),
    field("macro_low", pa.float64(), "Lower end of the 95 % interval of macro_score, by whole subjects or transcripts; null: none (see note)"),
    field("macro_high", pa.float64(), "Upper end of the 95 % interval of macro_score; null: none (see note)"),
    field("note", pa.string(), "Why a mean or an interval is missing, or that it covers only few subjects or transcripts; null: neither"),
)  # fmt: skip
"""What means add to the columns of a group."""
PASS_COLUMNS = (
    field("k", pa.int32(), "Draws of which one or more must pass"),
    field("n_items", pa.int64(), "Items with k scored draws or more"),
    field("n_too_few", pa.int64(), "Items that are left out, because they have scored draws but fewer than k"),
    field("pass_at_k", pa.float64(), "Mean over items of the chance that of k draws one or more pass, 0-1: higher is better; null: no item"),
    field("pass_low", pa.float64(), "Lower end of the 95 % interval of pass_at_k, over items; null: none (see note)"),
    field("pass_high", pa.float64(), "Upper end of the 95 % interval of pass_at_k, over items; null: none (see note)"),
    field("note", pa.string(), "Reason why the value or its interval is missing, or how many items are left out; null: nothing is missing"),
)  # fmt: skip
"""What pass@k adds to the columns of a group."""
MEAN_FIELDS = {column.name: column for column in MEAN_COLUMNS}
"""By name."""
SNAPSHOTS_FIELD = field("snapshots", pa.list_(pa.string()), "Snapshots that the responses are of, one for each part at most")
BOARD_NOTE_FIELD = field("note", pa.string(), "Note on what is missing, and why; empty: nothing is")
RANK_LOW = "Best rank that the tests leave: 1 plus the number of significantly better models; null: not ranked, or no test"
RANK_HIGH = (
    "Worst rank that the tests leave: number of ranked models minus those that are significantly worse; null: as rank_low"
)
RANK_COLUMNS = (
    field("rank", pa.int64(), "Rank by score, from 1; equal scores share the better rank; null: not ranked (see note)"),
    *MODEL_FIELDS,
    *(MEAN_FIELDS[name] for name in ("score", "score_low", "score_high", "interval_kind")),
    field("rank_low", pa.int64(), RANK_LOW),
    field("rank_high", pa.int64(), RANK_HIGH),
)
"""What models are ranked by, and the range of their ranks."""
ITEM_BOARD_COLUMNS = (
    *RANK_COLUMNS,
    field("n_parts", pa.int64(), "Partitions with a scored response; null: the board is of one"),
    *(
        MEAN_FIELDS[name]
        for name in ("n_items", "n_clusters", "n_total", "n_scored", "n_failed", "parse_rate", "score_given_parsed")
    ),
    field("coverage", pa.float64(), "Share of the items of the board that the model has a score for, 0-1; null: there is none"),
    SNAPSHOTS_FIELD,
    BOARD_NOTE_FIELD,
)
"""The columns of a board of items, except those that identify the board."""
