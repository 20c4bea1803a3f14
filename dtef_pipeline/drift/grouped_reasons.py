"""Reasons why series were not compared, without the values of each: series with one reason are counted together."""

from __future__ import annotations

import re

_VALUES_IN_REASONS = (
    (re.compile(r"the scores are equal, -?\d+\.\d+ in "), "the scores are equal in "),
    (re.compile(r" \(the scores are equal in [^()]*\)"), ""),
    (re.compile(r" \(-?\d+\.\d+ in [^ ()]+, -?\d+\.\d+ in [^ ()]+\)"), ""),
    (re.compile(r"-?\d+\.\d+ in [^ ;:]+, -?\d+\.\d+ in [^ ;:]+"), "the scores differ"),
    (re.compile(r"the snapshots span \d+\.\d h, "), "the snapshots span too little time, "),
    (re.compile(r"\d[\d,]* of \d[\d,]* prompts of "), "not all prompts of "),
)
"""What stands in reasons of the rule and of what was compared, and the words that hold for every series with the reason."""


def without_values(reason: str) -> str:
    """The reason without scores, times and counts of one series: `the scores are equal in both of the snapshots: below the thresholds ...`."""
    for values, words in _VALUES_IN_REASONS:
        reason = values.sub(words, reason)
    return reason
