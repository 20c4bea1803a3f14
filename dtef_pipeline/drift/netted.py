"""The shift of a model less what its judge's own drift would have made of it, with the uncertainty of both."""

from __future__ import annotations

import math
from typing import NamedTuple

from dtef_pipeline.drift.anchored import JudgeDrift
from dtef_pipeline.drift.evidence import shift_between


class Shift(NamedTuple):
    """A shift in units of the score, 0-1, and the ends of its 95 % interval; None: no interval is known."""

    value: float
    low: float | None = None
    high: float | None = None


def net_of(own: Shift, part: Shift) -> Shift:
    """`own` less `part`, which is known independently of it; without an interval where one of both has none.

    With a and b of intervals (la, ua) and (lb, ub) the ends are a - b -+ sqrt((a - la)^2 + (ub - b)^2), sqrt((ua - a)^2 + (b - lb)^2).

    Source: Zou & Donner (2008), Construction of confidence limits about effect measures: a general approach.
    """
    net = own.value - part.value
    if own.low is None or own.high is None or part.low is None or part.high is None:
        return Shift(net)
    below = math.hypot(own.value - own.low, part.high - part.value)
    above = math.hypot(own.high - own.value, part.value - part.low)
    return Shift(net, net - below, net + above)


def shift_on_anchors(judge: JudgeDrift, first: str | None) -> Shift | None:
    """How far a judge moved on stored answers from the snapshot `first` on, less before it; `first` None: since its own change, else since its
    baseline. None where anchors are not there on both sides."""
    if first is None:
        found = judge.verdict
        return None if found is None or found.shift is None else Shift(found.shift, found.shift_low, found.shift_high)
    pairs = judge.pairs
    if pairs is None or first not in pairs.snapshots[1:]:
        return None
    at = pairs.snapshots.index(first)
    return Shift(*shift_between(pairs.means, pairs.spread, pairs.sampling, pairs.baseline, at, frozenset()))
