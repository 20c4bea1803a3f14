"""The shift of a model less what its judge's own drift would have made of it, with the uncertainty of both."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from dtef_pipeline.drift.evidence import estimate_shift
from dtef_pipeline.drift.judge_verdicts import JudgeDrift
from dtef_pipeline.text.quantity_words import format_count

NOT_SETTLED = "it is not settled since when the model has moved"
"""Why a shift is not netted yet: it is that since the first nights, and what the judge made of it depends on the nights."""


class Shift(NamedTuple):
    """A shift in units of the score, 0-1, and the ends of its 95 % interval; None: no interval is known."""

    value: float
    low: float | None = None
    high: float | None = None


def subtract_shift(total: Shift, part: Shift) -> Shift:
    """`total` less `part`, which is known independently of it; without an interval where one of both has none.

    With a and b of intervals (la, ua) and (lb, ub) the ends are a - b -+ sqrt((a - la)^2 + (ub - b)^2), sqrt((ua - a)^2 + (b - lb)^2).

    Source: Zou & Donner (2008), Construction of confidence limits about effect measures: a general approach.
    """
    net = total.value - part.value
    if total.low is None or total.high is None or part.low is None or part.high is None:
        return Shift(net)
    below = math.hypot(total.value - total.low, part.high - part.value)
    above = math.hypot(total.high - total.value, part.value - part.low)
    return Shift(net, net - below, net + above)


def estimate_anchor_shift(judge: JudgeDrift, first: str, without: Collection[str] = ()) -> Shift | None:
    """How far a judge moved on stored answers from the snapshot `first` on, less before it; `without`: snapshots that do not count.

    None where it has no night on one of the sides (`JudgeDrift.sides`).
    """
    pairs, sides = judge.pairs, judge.sides(first, without)
    if pairs is None or sides is None:
        return None
    at, places = sides.after[0], {*sides.before, *sides.after}
    off = frozenset(range(len(pairs.snapshots))) - places
    return Shift(*estimate_shift(pairs.means, pairs.spread, pairs.sampling, at, off))


def describe_other_nights(judge: JudgeDrift, row: Mapping[str, Any]) -> str:
    """In which nights a judge was shown stored answers, where they are not those of the model; nothing where they are.

    `row`: of MODEL_DRIFT, with a first snapshot of the shift. `in 2026-11-04 to 2026-11-06 and from 2026-11-07 on`.
    """
    sides = judge.sides(row["first_snapshot"])
    if judge.pairs is None or sides is None:
        return ""
    labels, latest = judge.pairs.snapshots, row.get("latest_snapshot")
    first, begin = labels[sides.after[0]], (row.get("baseline") or [None])[0]
    n_nights = row.get("n_snapshots")
    if (
        first == row["first_snapshot"]
        and begin in (None, labels[0])
        and latest in (None, labels[-1])
        and n_nights in (None, len(labels))
    ):
        return ""
    after = f"from {first} on" if latest in (None, labels[-1]) else f"in {_format_span(labels[sides.after[0] :])}"
    gaps = "" if n_nights in (None, len(labels)) else f" ({format_count(len(labels), 'night')}, the model {n_nights})"
    return f"in {_format_span(labels[: sides.after[0]])} and {after}{gaps}"


def _format_span(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[0]} to {labels[-1]}"


def format_judge_shift(judge: JudgeDrift) -> str | None:
    """How far a judge has moved on stored answers by its own verdict: `-0.2003 since 2026-11-06`; None: not known."""
    verdict = judge.verdict
    if verdict is None or verdict.shift is None:
        return None
    return f"{verdict.shift:+.4f} since {verdict.first_snapshot or 'its first nights'}"
