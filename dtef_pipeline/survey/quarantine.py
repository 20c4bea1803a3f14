"""The reasons for which a (segment, question) pair or a whole segment goes into quarantine while the rest of the survey is used."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dtef_pipeline.survey.model import Unreadable
from dtef_pipeline.survey.shares import SUM_TOLERANCE, is_fractions
from dtef_pipeline.text.quantity_words import format_count

_WITH_A_COMMA = re.compile(r"[+-]?\d+,\d+\s?%?")

REASONS = {
    "segment-too-small": "The whole segment has fewer respondents than the minimum.",
    "no-data": "No percentage was published for the question, or for the whole segment.",
    "n-unknown": "Neither the question nor the segment states a number of respondents.",
    "n-below-minimum": "Fewer respondents than the minimum answered this question.",
    "wrong-length": "There are more or fewer percentages than options.",
    "decimal-comma": "A number has a decimal comma, such as 40,0.",
    "not-a-number": "A cell is not a percentage.",
    "blank-cells": "Some options have a percentage, others have none.",
    "nan": "A percentage is NaN or infinite.",
    "negative": "A percentage is below zero.",
    "all-zero": "All percentages are zero.",
    "sum-not-100": "The sum of the percentages differs from 100 by more than 1 and by more than rounding explains.",
}


@dataclass(frozen=True)
class Fault:
    """A reason of `REASONS`, with the actual and allowed values."""

    reason: str
    detail: str


def check_whole_segment(n: int | None, has_data: bool, min_n: int) -> Fault | None:
    """Return the fault of a whole segment of known or unknown size, or None."""
    if n is not None and n < min_n:
        return Fault("segment-too-small", f"{format_count(n, 'respondent')}; at least {min_n} are needed")
    if not has_data:
        return Fault("no-data", "no percentage for any question; at least one question is needed")
    return None


def make_no_respondents_fault(min_n: int) -> Fault:
    """Return the fault of a pair without n in a survey that must state n."""
    return Fault("n-unknown", f"the number of respondents is unknown, also for the segment; at least {min_n} are needed")


def pair_fault(
    percentages: Sequence[float | Unreadable | None],
    options: int,
    n: int | None,
    min_n: int,
    tolerance: float = SUM_TOLERANCE,
) -> Fault | None:
    """Return the first fault of a distribution, checking the number of respondents before the percentages, or None.

    An unknown n (None) is not a fault. `tolerance`: how far from 100 the percentages may sum, from `sum_tolerance`.
    """
    if n is not None and n < min_n:
        return Fault("n-below-minimum", f"{format_count(n, 'respondent')}; at least {min_n} are needed")
    if len(percentages) != options:
        return Fault(
            "wrong-length",
            f"{format_count(len(percentages), 'percentage')}; one for each of {format_count(options, 'option')} is needed",
        )
    if unreadable := [p for p in percentages if isinstance(p, Unreadable)]:
        cells = ", ".join(repr(str(p)) for p in unreadable)
        if all(_WITH_A_COMMA.fullmatch(p) for p in unreadable):
            return Fault("decimal-comma", f"cells {cells}; write a decimal point, as in 34.2")
        return Fault("not-a-number", f"cells {cells}; write numbers such as 34.2% or 34.2")
    return _check_numbers([p for p in percentages if not isinstance(p, Unreadable)], tolerance)


def _check_numbers(percentages: Sequence[float | None], tolerance: float) -> Fault | None:
    numbers = [p for p in percentages if p is not None]
    if not numbers:
        return Fault("no-data", "all cells are blank; a percentage for each option is needed")
    if len(numbers) < len(percentages):
        return Fault(
            "blank-cells",
            f"{len(percentages) - len(numbers)} of {format_count(len(percentages), 'cell')} are blank; every option needs "
            "a percentage",
        )
    if not all(map(math.isfinite, numbers)):
        return Fault("nan", f"percentages {numbers}; finite numbers are needed")
    if min(numbers) < 0:
        return Fault("negative", f"a percentage of {min(numbers):g}; 0 to 100 are allowed")
    total = sum(numbers)
    if total == 0:
        return Fault("all-zero", f"all percentages are 0; they must sum to 100 ± {tolerance:g}")
    if abs(total - 100) > tolerance + 1e-9:
        fractions = "; they are fractions: multiply them by 100" if is_fractions(percentages) else ""
        return Fault("sum-not-100", f"the percentages sum to {total:.6g}; 100 ± {tolerance:g} is allowed{fractions}")
    return None
