"""What a run says at its end of responses that are missing: why, with the error of the last call."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from dtef_pipeline.asking.request import LAST_ERROR
from dtef_pipeline.text.counted import counted

_FAILED_CALL, _ENDED_BY_BUDGET = "error", "budget"
ERROR_CHARACTERS_SHOWN = 300


def unanswered_lines(calls: Iterable[tuple[str, str, str | None]]) -> Iterator[str]:
    """A line per model with responses that failed, and per model with such that a budget ended, in the order of names.

    `calls`: of each response its model, status and error.
    """
    asked, errors = Counter[str](), defaultdict[tuple[str, str], Counter[str]](Counter)
    for model, status, error in calls:
        asked[model] += 1
        # Of what a budget ended, the error of the last attempt, where there was one.
        last = (error or "").partition(LAST_ERROR)[2] if status == _ENDED_BY_BUDGET else error or ""
        errors[model, status][last] += 1
    for (model, status), told in sorted(errors.items()):
        number = counted(told.total(), "response")
        why = next((f" ({error[:ERROR_CHARACTERS_SHOWN]})" for error, _ in told.most_common() if error), "")
        if status == _FAILED_CALL:
            yield f"warning: {model}: {number} of {asked[model]:,} failed{why}; the same command asks again"
        elif status == _ENDED_BY_BUDGET:
            yield f"warning: {model}: {number} of {asked[model]:,} missing, because a budget was reached{why}; the same command continues"
