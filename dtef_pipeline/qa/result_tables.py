"""Tables that are made of the scores of the qa family: results, boards, comparisons, pass@k and validity.

As in `dtef_pipeline.qa.tables`, what could not be made is null, and a note says why.
"""

from __future__ import annotations

import pyarrow as pa

from dtef_pipeline.boards.mean_columns import BOARD_NOTE_FIELD, MEAN_FIELDS, PASS_COLUMNS, RANK_COLUMNS, SNAPSHOTS_FIELD
from dtef_pipeline.qa.tables import OF_ONE_PART, OF_ONE_RESPONSE, QA_CLUSTER, QA_CONDITION, QA_JUDGEMENTS, QA_SCORES
from dtef_pipeline.tables import (
    CUT_FIELD,
    METRIC_FIELD,
    MODEL_FIELDS,
    field,
)

MEASURED_BY_FIELD = QA_SCORES.field("measured_by")
OF_ONE_BOARD = ("suite", "condition", "metric", "measured_by")
"""What tells boards apart: rows that differ in any of these are never averaged together."""
_SUITE_FIELD, _PART_FIELD = OF_ONE_PART
_BOARD_FIELDS = (_SUITE_FIELD, QA_CONDITION, METRIC_FIELD, MEASURED_BY_FIELD)
_OF_CLUSTERS = tuple(MEAN_FIELDS[name] for name in ("macro_score", "macro_low", "macro_high"))
_COUNTED_RESPONSES = (
    *(MEAN_FIELDS[name] for name in ("n_items", "n_clusters", "n_total", "n_scored", "n_skipped", "n_failed")),
    field(
        "n_uncited", pa.int64(), "Responses that cite nothing, and so have no score; null: the metric is not about quotations"
    ),
)
_COVERED = (
    field(
        "coverage",
        pa.float64(),
        "Share of the items that were to be scored that the model has a score for, 0-1: those of the board but for n_sampled_out; "
        "null: all are left out",
    ),
    field(
        "n_sampled_out",
        pa.int64(),
        "Items that the random sample of judged responses (sample_rate) leaves out: neither scored nor missing",
    ),
    *(MEAN_FIELDS[name] for name in ("parse_rate", "score_given_parsed")),
)

QA_BOARD = pa.schema(
    [
        CUT_FIELD,
        _SUITE_FIELD,
        _PART_FIELD,
        QA_CLUSTER,
        *_BOARD_FIELDS[1:],
        *RANK_COLUMNS,
        *_OF_CLUSTERS,
        field("n_parts", pa.int64(), "Parts of the suite with a scored response"),
        *_COUNTED_RESPONSES,
        *_COVERED,
        field("exposure", pa.string(), "Sentence on whether the answers may be in the training data; empty: nothing is known"),
        SNAPSHOTS_FIELD,
        BOARD_NOTE_FIELD,
    ]
)
"""One row per cut, board (condition, metric and what it was measured by, in a suite, a part, or a transcript or subject) and model variant."""
QA_CUTS = {
    "overall": (*(column.name for column in _OF_CLUSTERS), "n_parts", "exposure"),
    "part": ("part",),
    "cluster": ("cluster",),
}
"""By the name of each cut of QA_BOARD, the columns that only this cut has."""

QA_PASS_AT_K = pa.schema(
    [*OF_ONE_PART, QA_CONDITION, METRIC_FIELD, MEASURED_BY_FIELD, *MODEL_FIELDS, *PASS_COLUMNS],
)
"""One row per part whose items are programs, condition, metric, what it was measured by, model variant and k."""

QA_VALIDITY = pa.schema(
    [
        _SUITE_FIELD,
        QA_CONDITION,
        *MODEL_FIELDS,
        field(
            "check",
            pa.string(),
            "Name of the check: position_bias, judge_against_numeric, self_judged, judge_failures or length_and_semantic",
        ),
        METRIC_FIELD,
        MEASURED_BY_FIELD,
        field(
            "value",
            pa.float64(),
            "Range of the mean scores over orders of options, a share of responses, or a rank correlation; null: see the note",
        ),
        field("low", pa.float64(), "Lower end of the 95 % interval of the value; null: see the note"),
        field("high", pa.float64(), "Upper end of the 95 % interval of the value; null: see the note"),
        field("n", pa.int64(), "Items (position_bias), judgements (self_judged, judge_failures) or responses behind the value"),
        field("warn", pa.bool_(), "Flag: true where the value is a reason to look into the scores"),
        BOARD_NOTE_FIELD,
    ]
)  # fmt: skip
"""One row per suite, condition, model variant, check and what was measured."""

QA_BOARDS = {
    "qa_board": QA_BOARD,
    "qa_pass_at_k": QA_PASS_AT_K,
}
"""The tables that the roll-up `qa_board` writes, by name."""
QA_ROLLED_UP = {
    **QA_BOARDS,
    "qa_validity": QA_VALIDITY,
}
"""The tables over all parts, by name."""


_ANCHOR = field("anchor", pa.string(), "Hash of the question, what is expected and the response, as the judge is shown them")
_OF_JUDGE = tuple(QA_JUDGEMENTS.field(name) for name in ("judge_model", "judge_variant", "evaluator"))
_KEPT_OF_JUDGEMENT = ("score", "reason", "raw", "request_keys", "prompt_tokens", "completion_tokens", "cost_usd")
_NIGHT_OF_ANCHOR = field("snapshot", pa.string(), "Night in which the judge was shown it again")

QA_ANCHOR_ITEMS = pa.schema(
    [
        _ANCHOR,
        *OF_ONE_RESPONSE,
        field("text", pa.string(), "Question as the judge is shown it"),
        field("reference", pa.string(), "Expected answer as the judge is shown it"),
        field("response", pa.string(), "Response as the judge is shown it"),
        field("evaluators", pa.list_(pa.string()), "Sides that the judge looks at; none: those of its settings"),
        field("score", pa.float64(), "Mean score of the judge when it was chosen, 0-1: higher is better"),
        field("seed", pa.int64(), "Seed of the choice"),
    ]
)
"""One row per anchor: a judged response that stays as it is, whatever becomes of its item."""

QA_ANCHORS = pa.schema(
    [
        _NIGHT_OF_ANCHOR,
        _ANCHOR,
        *(one for one in OF_ONE_RESPONSE if one.name not in ("temperature", "snapshot")),
        *_OF_JUDGE,
        *(QA_JUDGEMENTS.field(name) for name in _KEPT_OF_JUDGEMENT),
    ]
)
"""One row per night, anchor and evaluator."""
