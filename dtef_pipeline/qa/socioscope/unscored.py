"""Scores of replies that name nothing, and of items that expect nothing."""

from __future__ import annotations

from typing import Any

from dtef_pipeline.qa.model import UNPARSEABLE_STATUS, ItemScore, ScoreWritten

EMPTY_ANSWER, UNPARSED, SEVERAL_VALUES = "empty", "unparsed", "multi"
AMBIGUOUS, SHARED_SYNONYM = "ambiguous", "ambiguous_synonym"
"""Flags: there are no words; none of them is an answer; several values are named; yes and no; a synonym of two values."""


def unreadable(flag: str, **own: Any) -> ItemScore:
    """The score of a reply that cannot be read, with its flag."""
    return ItemScore(UNPARSEABLE_STATUS, flags=(flag,), own=own)


def nothing_expected(reason: str = "the metric is empty") -> ScoreWritten:
    """Scores every reply to an item that cannot be scored."""
    score = ItemScore("unscorable", reason=reason)
    return lambda written: score


def within_0_and_1(value: float) -> float:
    """The value, 0 where it is less and 1 where it is more."""
    return min(max(value, 0.0), 1.0) + 0.0  # no negative zero
