"""The published tables of boards and statistics: context responsiveness, gaps between segments, reliability.

All are made of **cells** (see `boards`), never mix context levels or conditions (but to compare them), and occur twice, for `targets`
clean and all. `low` and `high` are the ends of a 95 % interval, null where there is none; `note` then says why. `p` is of a two-sided test
unless stated otherwise. What begins with `parsed` says of readable responses alone what the column without it says under the published policy.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dtef_pipeline.survey.boards.survey_views import PUBLISHED
from dtef_pipeline.survey.tables import (
    ATTRIBUTE_FIELD,
    CONDITION_FIELD,
    DISTANCES,
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
_N_QUESTIONS = field("n_questions", _COUNT, "Different questions behind the row")
_N_BATTERIES = field("n_batteries", _COUNT, "Batteries of questions behind the row, which intervals and tests go by")
_LOW = field("low", _NUMBER, "Lower end of the 95 % interval of the difference")
_HIGH = field("high", _NUMBER, "Upper end of the 95 % interval of the difference")
_P = field("p", _NUMBER, "Probability of a difference at least as large if there were none, 0-1 (two-sided t test)")
_PARSED = (
    field(
        "parsed_difference",
        _NUMBER,
        "Difference over the pairs that were answered readably on both sides",
    ),
    field("parsed_low", _NUMBER, "Lower end of the 95 % interval of parsed_difference"),
    field("parsed_high", _NUMBER, "Upper end of the 95 % interval of parsed_difference"),
    field("parsed_p", _NUMBER, "Probability of such a parsed_difference if there were none, 0-1 (two-sided t test)"),
)
_PARSED_NOTE = field(
    "parsed_note",
    _TEXT,
    "Finding over only the readable responses where it differs from that of the published policy, or why there is none",
)
_NOTE = field("note", _TEXT, "Caution for readers of the row, or the reason why a number is missing")
_SEED_FIELD = field("seed", _COUNT, "Seed of all that was drawn")

RESPONSIVENESS = pa.schema(
    [
        *MODEL_FIELDS,
        CONDITION_FIELD,
        TARGETS_FIELD,
        METRIC_FIELD,
        field("levels", _TEXT, "Context levels compared, such as 0, 5, all"),
        field("n_pairs", _COUNT, "Pairs of segment and question with a score at two context levels or more"),
        _N_QUESTIONS,
        _N_BATTERIES,
        field("slope", _NUMBER, "Change of the score per context question shown, within pairs: above 0 is better with context"),
        field("slope_low", _NUMBER, "Lower end of the 95 % interval of slope"),
        field("slope_high", _NUMBER, "Upper end of the 95 % interval of slope"),
        field("least_context", _NUMBER, "Mean context questions shown at the lowest level"),
        field("most_context", _NUMBER, "Mean context questions shown at the highest level"),
        field("least_score", _NUMBER, "Mean score at the lowest context level, 0-1: higher is better"),
        field("most_score", _NUMBER, "Mean score at the highest context level, 0-1: higher is better"),
        field("difference", _NUMBER, "Difference of the mean scores: highest context level less lowest, -1 to 1"),
        _LOW,
        _HIGH,
        _P,
        field(
            "p_adjusted",
            _NUMBER,
            "Adjusted p (Holm over the language models of one condition), 0-1; null: a baseline",
        ),
        field(
            "verdict",
            _TEXT,
            "Verdict by p_adjusted: evidence-adapting, stereotype-holding, hurt by context or undecided; null: a baseline",
        ),
        field("n_parsed_pairs", _COUNT, "Pairs of segment and question answered readably at the highest and the lowest level"),
        *_PARSED,
        field("parsed_p_adjusted", _NUMBER, "Adjusted parsed_p, as p is for p_adjusted"),
        field("parsed_verdict", _TEXT, "Verdict by only the readable responses, in the same words"),
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
        field(
            "n_pairs", _COUNT, "Pairs of segment and question with a score, on questions that another segment has a score on"
        ),
        field("score", _NUMBER, "Mean score over these pairs, 0-1: higher is better"),
        field(
            "expected",
            _NUMBER,
            "Score if the segment were predicted as well as the attribute's others, with the people it has, 0-1",
        ),
        field(
            "deviation",
            _NUMBER,
            "Score less the expected score, -1 to 1: below 0 the segment is predicted worse than the others",
        ),
        field("low", _NUMBER, "Lower end of the 95 % interval of the deviation"),
        field("high", _NUMBER, "Upper end of the 95 % interval of the deviation"),
        field("p", _NUMBER, "Probability of a deviation at least as large if there were none, 0-1 (two-sided t test)"),
        field("p_adjusted", _NUMBER, "Adjusted p, 0-1 (Holm over the segments of the model's attribute)"),
        field("verdict", _TEXT, "Verdict by p_adjusted: worse, better, no clear difference or not tested"),
        field("parsed_deviation", _NUMBER, "Deviation over only the readable responses, -1 to 1"),
        field("parsed_verdict", _TEXT, "Verdict by only the readable responses, in the same words"),
        _NOTE,
        _SEED_FIELD,
    ]
)
"""How far a model's score of each segment lies from that of the other segments of its attribute, sample size accounted for."""

RELIABILITY = pa.schema(
    [
        *_OF_SERIES,
        field("n_cells", _COUNT, "Pairs of segment and question with two draws or more"),
        field("n_draws", _COUNT, "Draws of the pairs that have two or more"),
        field("icc", _NUMBER, "Share of a single draw's variance that lies between pairs, 0-1: 1 means draws always agree"),
        field("low", _NUMBER, "Lower end of the 95 % interval of icc"),
        field("high", _NUMBER, "Upper end of the 95 % interval of icc"),
        field("within_sd", _NUMBER, "Standard deviation of the score between draws of one pair, 0 or more"),
        field("between_sd", _NUMBER, "Standard deviation of the pairs' true scores, 0 or more"),
        field("rerun_detectable", _NUMBER, "Smallest difference of two reruns' mean scores that is found in 80 % of cases"),
        field("model_detectable", _NUMBER, "Smallest difference of two models' mean scores that is found in 80 % of cases"),
        _NOTE,
    ]
)
"""How far the scores of repeated draws of the same prompt agree."""


def _describe_ends(of: str, name: str) -> dict[str, str]:
    """Descriptions of the two columns that end the interval of `of`."""
    return {
        f"{of}_{end}": f"{which} end of the 95 % interval of {name}; null: none"
        for end, which in (("low", "Lower"), ("high", "Upper"))
    }


def _describe_columns(*columns: pa.Field) -> dict[str, str]:
    return {column.name: description(column) for column in columns}


_COMMON = {
    **_describe_columns(*_OF_SERIES, PARSE_RATE_FIELD),
    "score": "Mean score under the published policy, 0-1: higher is better",
    "n_pairs": "Pairs of segment and question with a score",
}
BOARD_COLUMNS: Mapping[str, str] = {
    **_describe_columns(ROUND_FIELD, SEGMENT_FIELD, ATTRIBUTE_FIELD, VALUE_FIELD, QUESTION_FIELD),
    **_COMMON,
    **_describe_columns(_NOTE),
    **_describe_ends("score", "score"),
    "tier": "Number of the tier, from 1: its models cannot be distinguished from its first; null: not ranked or not testable",
    "rank": "Place by adjusted score, from 1 (best); null: the note says why",
    "rank_low": "Best place that the comparisons leave: 1 + the models that are better by their verdict",
    "rank_high": "Worst place that the comparisons leave: all models less those that it is better than",
    "adjusted_score": "Score had every model been asked the same pairs, 0-1: higher is better; models are ranked by it",
    "parsed_score": "Mean score over only the readable responses, 0-1: higher is better",
    **_describe_columns(_N_QUESTIONS, _N_BATTERIES),
    "ceiling": "Mean ceiling of the scored pairs, 0-1: the best mean score there could be",
    "skill": "Score on a scale from the leave-one-out marginal (0) to the ceiling (1): higher is better",
    **_describe_ends("skill", "skill"),
    "worth": "Number of real respondents who would predict as well as the readable responses: higher is better; null: cannot be estimated",
}
"""By name, the columns that `leaderboard` and its breakdowns can have; without intervals there are fewer."""

CONSISTENCY: Mapping[str, str] = {
    **_COMMON,
    **_describe_columns(_SEED_FIELD),
    "score": "Mean of the segments' mean scores, 0-1: higher is better; a segment counts once in each round, however many pairs it has",
    "rank": "Place by segment_sd_true, from 1 (most even); null: not known",
    "segment_sd": "Standard deviation of the segments' mean scores, 0 or more: lower is more even",
    "segment_sd_expected": "Standard deviation of segment means to expect only from sampling, 0 or more",
    "segment_sd_true": "Standard deviation between segments when sampling is accounted for, 0 or more: lower is more even",
    **_describe_ends("segment_sd", "segment_sd_true"),
    "segment_p": "Probability of the spread between segments if they did not differ, 0-1 (F test)",
    "lowest": "Mean score of the segment with the lowest, 0-1",
    "lowest_segment": "Segment with the lowest mean score",
    "highest": "Mean score of the segment with the highest, 0-1",
    "highest_segment": "Segment with the highest mean score",
    "n_segments": "Segments with a score, counted in each round",
    "consistency_note": "Caution about ceilings or about fewer segments than others have, or why there is no variance between segments",
}
"""By name, the columns of `consistency`."""

METRIC_RANKS: Mapping[str, str] = {
    **_COMMON,
    **{
        metric: f"Mean score under {metric}{' (1 - distance)' if metric in DISTANCES else ''}, 0-1: higher is better"
        for metric in METRICS
    },
    **{f"{metric}_rank": f"Place by the adjusted score under {metric}, from 1 (best); null: not ranked" for metric in METRICS},
    "l2_corrected": "Mean squared error of readable responses less what samples of n add on average: lower is better, below 0 by chance",
    "rps_corrected": "Mean ranked probability score of readable responses less what samples of n add: lower is better, below 0 by chance",
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
    view.table: {"consistency": CONSISTENCY, "metric": METRIC_RANKS}.get(view.name, BOARD_COLUMNS)
    for view in PUBLISHED
    if not view.needs
}
"""What the columns of the tables mean whose schemas are taken from the rows computed."""
