"""The published tables of statistics: comparisons, context responsiveness, gaps between groups, reliability.

All are made of **cells** (see `boards`), never mix context levels or conditions (but to compare them), and stand twice, for `targets` clean
and all. `low` and `high` are the ends of a 95 % interval, null where there is none; `note` then says why. `p` is of a two-sided test unless said
otherwise, `p_holm` is adjusted over all rows of the same context level, condition and targets.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

_TEXT, _NUMBER, _COUNT = pa.string(), pa.float64(), pa.int64()


def _schema(texts: Sequence[str], counts: Sequence[str], numbers: Sequence[str], last: Sequence[str]) -> pa.Schema:
    fields = [*((name, _TEXT) for name in texts), *((name, _COUNT) for name in counts), *((name, _NUMBER) for name in numbers)]
    return pa.schema([*fields, *((name, _TEXT) for name in last), ("seed", _COUNT)])


_ASKED = ("model", "model_variant", "context_level", "condition", "targets", "metric")

COMPARISONS = _schema(
    (*_ASKED, "other_model", "other_variant"),
    ("n_pairs", "n_questions", "permutations"),  # shared cells, and the clusters they fall in
    # difference: score - other_score over the shared cells; effect_size: it over the standard deviation of the clusters' differences
    ("score", "other_score", "difference", "low", "high", "effect_size", "p", "p_holm"),
    ("verdict", "note"),  # better | not told apart | not tested: of `model` against `other_model`, by p_holm
)
"""Every two models on the cells that both have a score for, the better one first."""

RESPONSIVENESS = _schema(
    ("model", "model_variant", "condition", "targets", "metric", "levels"),  # levels: those compared, as `0, 5, all`
    ("n_pairs", "n_questions", "permutations"),  # (segment, question) pairs with a score at two levels or more
    (
        *("slope", "slope_low", "slope_high"),  # change of score per context question shown, within pairs
        *("least_context", "most_context"),  # mean number of context questions shown at the lowest and the highest level
        *("least_score", "most_score", "difference", "low", "high", "p", "p_holm"),  # highest level against lowest
    ),
    ("verdict", "note"),  # evidence-adapting | stereotype-holding | hurt by context | undecided
)
"""Whether a model's score rises with the context it is shown."""

_GAP = ("gap", "expected_gap", "expected_low", "expected_high", "excess", "p", "p_holm")
GAPS = _schema(
    (*_ASKED, "attribute", "best_segment", "worst_segment"),
    ("n_segments", "n_pairs"),
    ("best_score", "worst_score", *_GAP),  # p one-sided: as large a gap between groups that differ in size alone
    ("note",),
)
"""How much better a model does on the best segment of an attribute than on the worst, beside what sample sizes alone make of equal groups."""

QUESTION_GAPS = _schema(
    (*_ASKED, "attribute", "round", "question_id", "best_segment", "worst_segment"),
    ("n_segments",),
    ("best_score", "worst_score", "gap", "expected_gap", "excess"),
    ("note",),
)
"""`gaps` of single questions."""

RELIABILITY = _schema(
    _ASKED,
    ("n_cells", "n_draws"),  # cells with two draws or more, and all their draws
    (
        *("icc", "low", "high"),  # intraclass correlation of single draws: share of the variance that is between cells
        *("within_sd", "between_sd"),  # standard deviation of a score between draws of a cell, and of the cells' true scores
        "rerun_detectable",  # difference of two reruns' means that is found in 80 % of cases
        "model_detectable",  # difference of two models' means on as many questions that is found in 80 % of cases
    ),
    ("note",),
)
"""How far the scores of repeated draws of the same prompt agree."""
