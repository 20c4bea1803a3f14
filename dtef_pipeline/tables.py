"""The tables between the stages: column names, types and meanings, in one place.

Distributions are fractions that sum to 1, in the survey's option order. Percentages exist only at the edges
(files, prompts, reports).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

STATUSES = ("ok", "unparseable", "wrong_length", "error", "refused", "missing", "budget")
ANSWERED = ("ok", "unparseable", "wrong_length", "refused")
"""Statuses of a prediction whose model said something: what a parse rate is a rate of."""

COUNTS = pa.schema(
    [
        ("n_total", pa.int64()),  # predictions
        ("n_scored", pa.int64()),  # those with a score under the published policy
        ("n_ok", pa.int64()),
        ("n_unparseable", pa.int64()),
        ("n_wrong_length", pa.int64()),
        ("n_refused", pa.int64()),
        ("n_error", pa.int64()),
        ("n_missing", pa.int64()),
        ("n_budget", pa.int64()),  # not asked: a budget was reached
        ("parse_rate", pa.float64()),  # ok / answered (ok, unparseable, wrong length, refused)
    ]
)

RULE = (
    ("hours", pa.float64()),  # from the oldest to the newest snapshot; null when a time is unknown
    ("lowest", pa.float64()),
    ("lowest_snapshot", pa.string()),
    ("highest", pa.float64()),
    ("highest_snapshot", pa.string()),
    ("gap", pa.float64()),  # highest - lowest
    ("relative_gap", pa.float64()),  # gap / lowest; infinite when lowest is 0
    ("flagged", pa.bool_()),  # the documented rule
    ("reason", pa.string()),  # the comparison in words, or why none was made
)
EVIDENCE = (
    (
        "verdict",
        pa.string(),
    ),  # none | watch (flagged alone) | drift (flagged, and the evidence reaches the threshold); null: not compared
    (
        "log10_e",
        pa.float64(),
    ),  # highest e-value against "no drift" so far, as log10: 2 is 100 to 1; null: fewer snapshots than needed
    ("threshold", pa.float64()),  # log10 of the e-value needed: what is watched together shares one error rate
    ("direction", pa.string()),  # up | down
    ("shift", pa.float64()),  # mean paired difference since the change less that before it; without a drift: since the baseline
    ("shift_low", pa.float64()),  # 95 %, valid however often one looks
    ("shift_high", pa.float64()),
    ("first_snapshot", pa.string()),  # likeliest first snapshot of the shift; null unless the verdict is drift
    ("baseline", pa.list_(pa.string())),  # the first snapshots, frozen: what later ones are compared with
    (
        "moved",
        pa.list_(pa.struct([("question", pa.string()), ("shift", pa.float64()), ("text", pa.string())])),
    ),  # questions that moved most, most first
)


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table's columns and the folder levels above its files; a null schema is taken from the rows written."""

    schema: pa.Schema | None
    levels: tuple[str, ...]
