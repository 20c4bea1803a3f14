"""The rule and the evidence on one series put together: its verdict and what goes with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pandas as pd

from dtef_pipeline.drift.evidence import Evidence, evidence
from dtef_pipeline.drift.paired import Paired, paired
from dtef_pipeline.drift.rule import DriftVerdict


@dataclass(frozen=True, slots=True)
class Judged:
    """`columns`: those of EVIDENCE. `few`: what to add to the rule's reason where there are too few snapshots for evidence."""

    columns: dict[str, Any]
    few: str | None
    pairs: Paired
    seen: Evidence


def judged(values: pd.DataFrame, questions: Sequence[str], rule: DriftVerdict, *, baseline: int, threshold: float) -> Judged:
    """The verdict on a series that the rule compared: `drift` if it is flagged and the highest e-value so far reaches the threshold.

    `values`, `questions`, `baseline`: as for `paired`. `threshold`: log10 of the e-value needed.
    """
    pairs = paired(values, questions, baseline=baseline)
    # Without the rule's flag there is no drift to date: the shift is then that since the baseline.
    seen = evidence(pairs.means, pairs.spread, baseline=baseline, threshold=threshold if rule.flagged else None)
    drifted = rule.flagged and seen.highest is not None and seen.highest >= threshold
    columns = {
        "verdict": "drift" if drifted else "watch" if rule.flagged else "none",
        "log10_e": seen.highest,
        "threshold": threshold,
        "direction": {True: "up", False: "down"}.get(seen.shift > 0) if seen.shift else None,
        "shift": seen.shift,
        "shift_low": seen.low,
        "shift_high": seen.high,
        "first_snapshot": pairs.snapshots[seen.first] if drifted and seen.first is not None else None,
        "baseline": list(pairs.snapshots[: pairs.baseline]),
        "moved": pairs.moved(seen.first) if seen.first is not None else None,
    }
    few = f"too few snapshots for evidence ({len(pairs.snapshots)} of {baseline + 1})" if seen.first is None else None
    return Judged(columns, few, pairs, seen)


def place_in_time(label: str, time: datetime | None) -> tuple[bool, datetime, bool, str]:
    """Sorts snapshots by time; those whose time is unknown come first, `base` before the others."""
    return time is not None, time or datetime.min, label != "base", label
