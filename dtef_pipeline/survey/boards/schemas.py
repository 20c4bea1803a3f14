"""The schemas of the published tables of boards, and the columns that each board shows: their names, meanings and interval ends.

All tables are computed from **cells** (see `boards`), mix context levels or conditions only to compare them, and have rows for both
`targets`, clean and all. `low` and `high` are the ends of a 95 % interval, null if there is none; `note` then says why. `p` is from a
two-sided test unless stated otherwise. Columns that begin with `parsed` use readable responses only; the others use the published policy.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dtef_pipeline.boards.mean_columns import RANK_HIGH, RANK_LOW
from dtef_pipeline.survey.boards.survey_boards import BY_NAME, GROUPED, PUBLISHED
from dtef_pipeline.survey.tables import (
    ATTRIBUTE_FIELD,
    CONDITION_FIELD,
    DISTANCES,
    DRIFT_CHECKS,
    LEVEL_FIELD,
    METRICS,
    QUESTION_FIELD,
    ROUND_FIELD,
    SEGMENT_FIELD,
    TARGETS_FIELD,
    VALUE_FIELD,
)
from dtef_pipeline.tables import COMPARISONS, METRIC_FIELD, MODEL_FIELDS, PARSE_RATE_FIELD, description, field

_TEXT, _NUMBER, _COUNT = pa.string(), pa.float64(), pa.int64()
_OF_SERIES = (*MODEL_FIELDS, LEVEL_FIELD, CONDITION_FIELD, TARGETS_FIELD, METRIC_FIELD)
_N_QUESTIONS = field("n_questions", _COUNT, "Number of different questions")
_N_BATTERIES = field("n_batteries", _COUNT, "Batteries of questions (the clusters of intervals and tests)")
_LOW = field("low", _NUMBER, "Lower end of the 95 % interval of the difference")
_HIGH = field("high", _NUMBER, "Upper end of the 95 % interval of the difference")
_P = field("p", _NUMBER, "p value of the difference, 0-1 (two-sided t test)")
_PARSED = (field("parsed_difference", _NUMBER, "Difference over the pairs with readable responses on both sides"),)
_PARSED_NOTE = field(
    "parsed_note", _TEXT, "Finding from readable responses only, if it differs from the published one, or why there is none"
)
_NOTE = field("note", _TEXT, "Caution about the row, or why a number is missing")
_SEED_FIELD = field("seed", _COUNT, "Seed of all random draws")

RESPONSIVENESS = pa.schema(
    [
        *MODEL_FIELDS,
        CONDITION_FIELD,
        TARGETS_FIELD,
        METRIC_FIELD,
        field("levels", _TEXT, "Context levels compared, such as 0, 5, all"),
        field("n_pairs", _COUNT, "Pairs of segment and question that have a score at two or more context levels"),
        _N_QUESTIONS,
        _N_BATTERIES,
        field("slope", _NUMBER, "Change of the score per context question shown, within pairs: above 0 is better with context"),
        field("slope_low", _NUMBER, "Lower end of the 95 % interval of slope"),
        field("slope_high", _NUMBER, "Upper end of the 95 % interval of slope"),
        field("score_at_lowest_context", _NUMBER, "Mean score at the lowest context level, 0-1: higher is better"),
        field("score_at_highest_context", _NUMBER, "Mean score at the highest context level, 0-1: higher is better"),
        field("difference", _NUMBER, "Mean score at the highest context level minus the lowest, -1 to 1"),
        _LOW,
        _HIGH,
        _P,
        field("p_adjusted", _NUMBER, "Adjusted p (Holm over the language models of one condition), 0-1; null: a baseline"),
        field(
            "verdict",
            _TEXT,
            "Verdict by p_adjusted: evidence-adapting, stereotype-holding, hurt by context or undecided; null: a baseline",
        ),
        field("n_parsed_pairs", _COUNT, "Pairs of segment and question that are readable at the highest and the lowest level"),
        *_PARSED,
        field("parsed_verdict", _TEXT, "Verdict from readable responses only, in the same words"),
        _PARSED_NOTE,
        _NOTE,
    ]
)
"""Whether a model's score rises with the context it is shown."""

SEGMENT_GAPS = pa.schema(
    [
        *_OF_SERIES,
        ATTRIBUTE_FIELD,
        SEGMENT_FIELD,
        field("n", _NUMBER, "Respondents of the segment, median over its pairs; null: not known"),
        field("n_pairs", _COUNT, "Pairs of segment and question with a score, if another segment has one for the question"),
        field("score", _NUMBER, "Mean score over these pairs, 0-1: higher is better"),
        field(
            "expected",
            _NUMBER,
            "Expected score of a segment of this size that is predicted as well as the attribute's others, 0-1",
        ),
        field(
            "deviation", _NUMBER, "Score minus expected score, -1 to 1: below 0, the segment is predicted worse than the others"
        ),
        field("low", _NUMBER, "Lower end of the 95 % interval of the deviation"),
        field("high", _NUMBER, "Upper end of the 95 % interval of the deviation"),
        field("p", _NUMBER, "p value of the deviation, 0-1 (two-sided t test)"),
        field("p_adjusted", _NUMBER, "Adjusted p, 0-1 (Holm over the segments of the model's attribute)"),
        field("verdict", _TEXT, "Verdict by p_adjusted: worse, better, no clear difference or not tested"),
        field("parsed_verdict", _TEXT, "Verdict from readable responses only, in the same words"),
        _NOTE,
    ]
)
"""Deviation of a model's score in a segment from the other segments of its attribute, given the sample size."""

RELIABILITY = pa.schema(
    [
        *_OF_SERIES,
        field("n_cells", _COUNT, "Pairs of segment and question with at least two draws"),
        field("n_draws", _COUNT, "Draws of these pairs"),
        field("icc", _NUMBER, "Share of the variance of single draws that is between pairs, 0-1; 1: draws always agree"),
        field("low", _NUMBER, "Lower end of the 95 % interval of icc"),
        field("high", _NUMBER, "Upper end of the 95 % interval of icc"),
        field("within_sd", _NUMBER, "Standard deviation of the score between draws of one pair, 0 or more"),
        field("rerun_detectable", _NUMBER, "Smallest difference of two reruns' mean scores that has 80 % power"),
        field("model_detectable", _NUMBER, "Smallest difference of two models' mean scores that has 80 % power"),
        _NOTE,
    ]
)
"""Agreement of the scores of repeated draws of one prompt."""


def _describe_ends(measure: str, name: str) -> dict[str, str]:
    return {
        f"{measure}_{end}": f"{side} end of the 95 % interval of {name}; null: none"
        for end, side in (("low", "Lower"), ("high", "Upper"))
    }


def _describe_columns(*columns: pa.Field) -> dict[str, str]:
    return {column.name: description(column) for column in columns}


_COMMON = {
    **_describe_columns(*_OF_SERIES, PARSE_RATE_FIELD),
    "score": "Mean score, 0-1: higher is better; unreadable responses count 0",
    "n_pairs": "Pairs of segment and question with a score",
}
BOARD_COLUMNS: Mapping[str, str] = {
    **_describe_columns(ROUND_FIELD, SEGMENT_FIELD, ATTRIBUTE_FIELD, VALUE_FIELD, QUESTION_FIELD),
    **_COMMON,
    **_describe_columns(_NOTE),
    **_describe_ends("score", "score"),
    "rank": "Place by adjusted score, from 1 (best); null: not ranked (see note)",
    "rank_low": RANK_LOW,
    "rank_high": RANK_HIGH,
    "adjusted_score": "Score if every model had the same pairs, 0-1: higher is better; models are ranked by it",
    "parsed_score": "Mean score of readable responses only, 0-1: higher is better",
    **_describe_columns(_N_QUESTIONS, _N_BATTERIES),
    "ceiling": "Mean ceiling of the scored pairs, 0-1: the best possible mean score",
    "skill": "Score between the leave-one-out marginal (0) and the ceiling (1): higher is better",
    **_describe_ends("skill", "skill"),
    "worth": "Number of real respondents who would predict as well as the readable responses: higher is better; null: cannot be estimated",
}
"""By name, the columns that `leaderboard` and its breakdowns can have; without intervals there are fewer."""

CONSISTENCY: Mapping[str, str] = {
    **_COMMON,
    **_describe_columns(_SEED_FIELD),
    "score": "Mean of the segments' mean scores, 0-1: higher is better; a segment counts once per round",
    "rank": "Place by segment_sd_true, from 1 (most even); null: not known",
    "segment_sd": "Standard deviation of the segments' mean scores, 0 or more: lower is more even",
    "segment_sd_expected": "Standard deviation of segment means that sampling error would give, 0 or more",
    "segment_sd_true": "Standard deviation of segment means without sampling error, 0 or more: lower is more even",
    **_describe_ends("segment_sd", "segment_sd_true"),
    "segment_p": "p value of the spread between segments, 0-1 (F test)",
    "lowest": "Lowest mean score of a segment, 0-1",
    "lowest_segment": "Segment with the lowest mean score",
    "highest": "Highest mean score of a segment, 0-1",
    "highest_segment": "Segment with the highest mean score",
    "n_segments": "Segments with a score, counted in each round",
    "consistency_note": "Caution about ceilings or missing segments, or why there is no variance between segments",
}
"""By name, the columns of `consistency`."""

METRIC_RANKS: Mapping[str, str] = {
    **_COMMON,
    **{
        metric: f"Mean score under {metric}{' (1 - distance)' if metric in DISTANCES else ''}, 0-1: higher is better"
        for metric in METRICS
    },
    **{f"{metric}_rank": f"Place by the adjusted score under {metric}, from 1 (best); null: not ranked" for metric in METRICS},
    "l2_corrected": "Mean squared error of readable responses minus sampling error: lower is better, below 0 by chance",
    "rps_corrected": "Mean ranked probability score of readable responses minus sampling error: lower is better, below 0 by chance",
}
"""By name, the columns of `metric_ranks`."""

TESTS: Mapping[str, pa.Schema] = {
    "comparisons": COMPARISONS,
    "responsiveness": RESPONSIVENESS,
    "segment_gaps": SEGMENT_GAPS,
    "reliability": RELIABILITY,
}
"""The schemas of the tables that test what boards show."""

MEANINGS: Mapping[str, Mapping[str, str]] = {
    board.table: {"consistency": CONSISTENCY, "metric": METRIC_RANKS}.get(board.name, BOARD_COLUMNS)
    for board in PUBLISHED
    if not board.needs
}
"""What the columns of the tables mean whose schemas are taken from the rows computed."""


ENDS: Mapping[str, tuple[str, str]] = {
    **{name: (f"{name}_low", f"{name}_high") for name in ("score", "skill", "slope")},
    "difference": ("low", "high"),
    "icc": ("low", "high"),
    "segment_sd_true": ("segment_sd_low", "segment_sd_high"),
    "deviation": ("low", "high"),
}
"""By column of estimates, the columns with the ends of its interval, which decide how many digits are shown."""
SHOWN_INTERVALS = (("low", "high"), ("segment_sd_low", "segment_sd_high"), ("score_low", "score_high"))
"""The ends of the interval that a board shows: the first of these pairs that it has."""
OWN_INTERVALS: Mapping[str, str] = {"skill_interval": "skill"}
"""Interval columns of another estimate than the board's main one, and the column of that estimate."""
FIRST_OUT = (
    *(*OWN_INTERVALS, "question_id", "parsed_score", "effect_size", "slope", "segment_sd_expected", "segment_sd", "n_draws"),
    *("worth", "parse_rate", "n_questions", "n_batteries", "n_segments", "note", "consistency_note", "n_pairs", "n_cells"),
    *("within_sd", "score_at_lowest_context", "score_at_highest_context", "expected", "skill", "adjusted_score"),
    *("lowest_segment", "highest_segment", "lowest", "highest", "questions", "parsed_verdict", "interval"),
)
"""Columns that are hidden first if a table is too wide, in this order."""
_COMMON_COLUMNS = (
    *("rank", "model", "context_level", "adjusted_score", "score", "interval", "parsed_score"),
    *("skill", "skill_interval", "worth", "n_pairs", "questions", "parse_rate"),
)
_DRIFT_SHOWN = {"all models": "shared_verdict", "95 % interval": "shift_low", "snapshots": "n_snapshots"}
DRIFT_HEADINGS: Mapping[str, str] = {
    **{head: description(DRIFT_CHECKS.field(name)).removeprefix("Lower end of the ") for head, name in _DRIFT_SHOWN.items()},
    "odds for drift": "Highest odds so far that the model has changed (likelihood ratio); null: too few snapshots",
    "odds needed": "Odds at which the verdict is drift; grows with the number of series that share the error rate",
}
"""By heading, the columns that `dtef drift` shows under another name than its table."""


def list_board_columns(by: str) -> tuple[str, ...]:
    """Return the columns that a board shows, if it has them, in order."""
    more = _COMMON_COLUMNS if by in GROUPED else METRICS if _is_by_metric(by) else ()
    return (*BY_NAME[by].columns, *more)


def list_subject_columns(view: str) -> tuple[str, ...]:
    """Return the columns of `list_board_columns` that even a narrow terminal shows."""
    return (*BY_NAME[view].always_shown, *(METRICS if _is_by_metric(view) else ()))


def _is_by_metric(view: str) -> bool:
    return MEANINGS.get(BY_NAME[view].table) is METRIC_RANKS


def list_meanings(view: str) -> Mapping[str, str]:
    """Return the meanings of the shown columns of a board, one line each."""
    table = BY_NAME[view].table
    texts = dict(MEANINGS[table]) if table in MEANINGS else {field.name: description(field) for field in TESTS[table]}
    lower = next((texts[low] for low, _ in SHOWN_INTERVALS if low in texts), BOARD_COLUMNS["score_low"])
    texts["interval"] = _describe_interval(lower)
    texts |= {name: _describe_interval(BOARD_COLUMNS[ENDS[value][0]]) for name, value in OWN_INTERVALS.items()}
    if _is_by_metric(view):
        texts |= {name: f"{texts[name]}; in brackets the {_lower_first_letter(texts[f'{name}_rank'])}" for name in METRICS}
    texts["questions"] = f"{BOARD_COLUMNS['n_questions']}; in brackets the {_lower_first_letter(BOARD_COLUMNS['n_batteries'])}"
    return {name: texts[name] for name in (*list_board_columns(view), "condition") if name in texts}


def _describe_interval(lower: str) -> str:
    """Return the meaning of an interval, from that of its lower end."""
    return lower.removeprefix("Lower end of the ").partition(";")[0]


def _lower_first_letter(text: str) -> str:
    return text[0].lower() + text[1:]
