"""Outages: snapshots that were off and came back, such as partial failures of a provider. They are no drift, regardless of their distance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from dtef_pipeline.drift.rule import MIN_GAP

Floats = npt.NDArray[np.float64]

LONGEST_OUTAGE = 5
"""Longest outage in consecutive snapshots; longer ones are shifts."""
_SPREADS, _SPREADS_OF_ONE = 3.0, 4.0
"""Usual spreads from the level from which a run is off, and one of a single snapshot: of many snapshots that did not change, some are 3 spreads
away. Never less than the smallest gap that the documented rule looks at."""
_LEVEL_OF = 10
"""Number of snapshots before a run whose median is its reference level."""
_FIRST = 5
"""Number of first snapshots whose median is the initial level."""
_AFTER = 3
"""Number of snapshots after a run that must be back."""
_FEW, _RARE = 2, 0.1
"""Most runs, and largest share of snapshots, that count as outages; with more, such deviations are usual."""
_CONSISTENT = 1.4826
"""Factor from the median absolute deviation to the standard deviation of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Outages:
    """Places of snapshots. `ended`: off, and the next were back. `pending`: off up to the latest, for at most LONGEST_OUTAGE."""

    ended: tuple[int, ...] = ()
    pending: tuple[int, ...] = ()

    @property
    def places(self) -> frozenset[int]:
        return frozenset((*self.ended, *self.pending))


NO_OUTAGES = Outages()


def find_outages(means: Floats, floor: float) -> Outages:
    """Return the snapshots of a series that were off for a while. `means`: (snapshots,); `floor`: the smallest assumed spread.

    A run consists of snapshots further from the level before them than 3 usual spreads (a single one: 4) and 0.05. It is over when the mean
    of the next three is back: nearer to that level than half of the run's own distance. A run of more than LONGEST_OUTAGE snapshots, or
    after which the level did not come back, is a shift and is not returned. If many runs are off, none is an outage: such snapshots are the
    usual spread. Nor is a run at the level at which the series began or is now, nor one that begins with the series. A run is pending for
    LONGEST_OUTAGE snapshots, however it continues, unless it is at the level at which the series began.
    """
    if np.ptp(means) <= MIN_GAP:
        return Outages()
    # From distances to the median, or between neighbours if smaller, since a run inflates the former.
    spread = _CONSISTENT * _compute_median(np.abs(means - _compute_median(means)))
    steps = _CONSISTENT * _compute_median(np.abs(np.diff(means))) * math.sqrt(2)
    spread = max(floor, min(spread, steps))
    limit, limit_of_one = (max(spreads * spread, MIN_GAP) for spreads in (_SPREADS, _SPREADS_OF_ONE))
    values, over = means.tolist(), list[tuple[range, float]]()
    at = _find_first_off(values, limit)
    usual = list(range(at))
    while at < len(values):
        level = _compute_level(values, usual)
        end = at
        while end < len(values) and abs(values[end] - level) > limit:
            end += 1
        run = range(at, end)
        if not run or (len(run) == 1 and abs(values[at] - level) <= limit_of_one):
            usual.append(at)
            end = at + 1
        elif len(run) <= LONGEST_OUTAGE and end < len(values) and _is_back(values, run, level):
            over.append((run, level))
        elif len(values) - at <= LONGEST_OUTAGE and _is_elsewhere(values, run, level, level):
            return _classify_runs(values, over, usual, range(at, len(values)))
        else:
            usual.extend(run)
        at = end
    return _classify_runs(values, over, usual, range(0))


def _classify_runs(
    values: Sequence[float], past: Sequence[tuple[range, float]], usual: Sequence[int], pending: range
) -> Outages:
    """Return the outages among the runs that are over, each given with the level before it."""
    outages = [run for run, level in past if _is_elsewhere(values, run, level, _compute_level(values, usual))]
    places = [place for run in outages for place in run]
    is_usual = len(outages) + bool(pending) > _FEW and len(places) + len(pending) > _RARE * len(values)
    return Outages(() if is_usual else tuple(places), tuple(pending))


def _is_elsewhere(values: Sequence[float], run: range, level: float, now: float) -> bool:
    """Return whether a run is further than the level before it from the first snapshot, the first few beside the run, and the level now."""
    begin = median(value for place, value in enumerate(values[:_FIRST]) if place not in run)
    return all(abs(_compute_mean(values, run) - end) > abs(level - end) for end in (values[0], begin, now))


def _find_first_off(values: Sequence[float], limit: float) -> int:
    """Return the first place further than `limit` from the level before it, or the number of snapshots if there is none."""
    levels = [values[0], *(_compute_level(values, range(place)) for place in range(1, min(_LEVEL_OF, len(values))))]
    if len(values) > _LEVEL_OF:
        before = np.sort(sliding_window_view(values, _LEVEL_OF)[:-1], axis=1)
        levels += before[:, (_LEVEL_OF - 1) // 2 : _LEVEL_OF // 2 + 1].mean(axis=1).tolist()
    return next((place for place, level in enumerate(levels) if abs(values[place] - level) > limit), len(values))


def _compute_median(values: Floats) -> float:
    """Return the median. numpy's takes eight times as long for a hundred values."""
    sorted_values = np.sort(values)
    return float(sorted_values[(len(values) - 1) // 2] + sorted_values[len(values) // 2]) / 2


def _compute_level(values: Sequence[float], usual: Sequence[int]) -> float:
    """Return the level of the last snapshots that were not off. At least one is needed, so no run begins with the series."""
    return median(values[place] for place in usual[-_LEVEL_OF:])


def _is_back(values: Sequence[float], run: range, level: float) -> bool:
    after = range(run.stop, min(run.stop + _AFTER, len(values)))
    return abs(_compute_mean(values, after) - level) < abs(_compute_mean(values, run) - level) / 2


def _compute_mean(values: Sequence[float], places: range) -> float:
    return sum(values[place] for place in places) / len(places)
