"""The columns that each board shows: their names, meanings and interval ends.

The schemas of tables describe their columns; this module describes the columns of other boards.
"""

from __future__ import annotations

from collections.abc import Mapping

from dtef_pipeline.survey.boards.schemas import BOARD_COLUMNS, MEANINGS, METRIC_RANKS, TESTS
from dtef_pipeline.survey.boards.survey_boards import BY_NAME, GROUPED
from dtef_pipeline.survey.tables import DRIFT_CHECKS, METRICS
from dtef_pipeline.tables import description

ENDS: Mapping[str, tuple[str, str]] = {
    **{name: (f"{name}_low", f"{name}_high") for name in ("score", "skill", "slope")},
    "difference": ("low", "high"),
    "icc": ("low", "high"),
    "segment_sd_true": ("segment_sd_low", "segment_sd_high"),
    "deviation": ("low", "high"),
}
"""By column of estimates, the columns with the ends of its interval, which decide how many digits are shown."""
SHOWN_INTERVALS = (*(("low", "high"), ("segment_sd_low", "segment_sd_high"), ("score_low", "score_high")),)
"""The ends of the interval that a board shows: the first of these pairs that it has."""
OWN_INTERVALS: Mapping[str, str] = {"skill_interval": "skill"}
"""Interval columns of another estimate than the board's main one, and the column of that estimate."""
FIRST_OUT = (
    *(
        *OWN_INTERVALS,
        "question_id",
        "parsed_score",
        "effect_size",
        "slope",
        "segment_sd_expected",
        "segment_sd",
        "n_draws",
        "worth",
    ),
    *("parse_rate", "n_questions", "n_batteries", "n_segments", "note", "consistency_note"),
    *(
        "n_pairs",
        "n_cells",
        "within_sd",
        "score_at_lowest_context",
        "score_at_highest_context",
        "expected",
        "skill",
        "adjusted_score",
        "lowest_segment",
        "highest_segment",
        "lowest",
        "highest",
        "questions",
        "parsed_verdict",
        "interval",
    ),
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
