"""Reasons why series were not compared: series with one reason are counted together, whatever the values of each are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

_VALUES_IN_REASONS = (
    (re.compile(r"the scores are equal, -?\d+\.\d+ in "), "the scores are equal in "),
    (re.compile(r" \(the scores are equal in [^()]*\)"), ""),
    (re.compile(r" \(-?\d+\.\d+ in [^ ()]+, -?\d+\.\d+ in [^ ()]+\)"), ""),
    (re.compile(r"-?\d+\.\d+ in [^ ;:]+, -?\d+\.\d+ in [^ ;:]+"), "the scores differ"),
    (re.compile(r"the snapshots span \d+\.\d h, "), "the snapshots span too little time, "),
    (re.compile(r"\d[\d,]* of \d[\d,]* prompts of "), "not all prompts of "),
)
"""What stands in reasons of the rule and of what was compared, and the words that hold for every series with the reason."""


def grouped_reasons(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Reasons with the number of their series, the most frequent first. `counts`: series by reason.

    Reasons that differ in nothing but scores, times and counts are one, without these; one that stands alone keeps them.
    """
    found, alone = Counter[str](), dict[str, str]()
    for reason, series in counts.items():
        group = _without_values(reason)
        alone[group] = reason if group not in found else group
        found[group] += series
    return sorted(((alone[group], series) for group, series in found.items()), key=lambda one: (-one[1], one[0]))


def _without_values(reason: str) -> str:
    """`the scores are equal in both of the snapshots: below the thresholds 0.05 and 10 %`."""
    for values, words in _VALUES_IN_REASONS:
        reason = values.sub(words, reason)
    return reason
