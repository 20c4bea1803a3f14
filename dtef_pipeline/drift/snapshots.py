"""The snapshots of one series: what each asked and what came of it, and which of them can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.drift.rule import MIN_ANSWERED, MIN_HOURS, hours_between

Floats = npt.NDArray[np.float64]
Items = npt.NDArray[np.uint64]
SHARED = 0.5
"""Share of the items that a snapshot must have asked to be compared on them."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """One snapshot of one series; arrays are (items,), in the order of `items`, which rises.

    `items`: codes of what was asked, answered or not. `score`: under the published policy, draws averaged, NaN where there is none.
    `parsed`: the mean over the draws that could be parsed. `ok`, `answered`: how many draws could be parsed, and were answered at all.
    `served`, `fingerprints`: what the provider said it was.
    """

    label: str
    items: Items
    score: Floats
    parsed: Floats
    ok: Floats
    answered: Floats
    served: frozenset[str] = frozenset()
    fingerprints: frozenset[str] = frozenset()

    @property
    def is_answered(self) -> bool:
        return bool(len(self.items) and np.isfinite(self.score).mean() >= MIN_ANSWERED)


def parse_rate(ok: Floats, answered: Floats) -> float | None:
    """Parsed of answered draws; None where nothing was answered."""
    total = np.nansum(answered)
    return float(np.nansum(ok) / total) if total else None


@dataclass(slots=True)
class Comparable:
    """Snapshots that can be compared, in the order of time: each asked mostly what the first `baseline` of them did.

    `items` is what they are compared on: asked in at least half of the baseline's snapshots. A snapshot that answered too little is none
    of the baseline's.
    """

    baseline: int
    snapshots: list[Snapshot] = field(default_factory=list)
    items: Items = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    _founders: list[Snapshot] = field(default_factory=list)

    def shared(self, snapshot: Snapshot) -> int:
        """How many of the items a snapshot asked."""
        return len(np.intersect1d(self.items, snapshot.items, assume_unique=True))

    def takes(self, snapshot: Snapshot) -> bool:
        """Whether enough is shared: half of the items; while the baseline is not complete, half of whichever are more, these or the snapshot's.

        Later snapshots may ask more: what is new has no baseline and is not compared.
        """
        is_forming = len(self._founders) < self.baseline
        return self.shared(snapshot) >= SHARED * (max(len(self.items), len(snapshot.items)) if is_forming else len(self.items))

    def add(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)
        if snapshot.is_answered and len(self._founders) < self.baseline:
            self._founders.append(snapshot)
            items, counts = np.unique(np.concatenate([one.items for one in self._founders]), return_counts=True)
            self.items = items[counts >= SHARED * len(self._founders)]
        elif not self._founders:
            self.items = self.snapshots[0].items

    def grid(self, values: Callable[[Snapshot], Floats]) -> pd.DataFrame:
        """(items, snapshots) of one of the arrays; NaN where an item was not asked."""
        found = np.full((len(self.items), len(self.snapshots)), np.nan)
        for at, snapshot in enumerate(self.snapshots):
            place = np.searchsorted(self.items, snapshot.items).clip(max=max(len(self.items) - 1, 0))
            own = self.items[place] == snapshot.items
            found[place[own], at] = values(snapshot)[own]
        return pd.DataFrame(found, columns=[snapshot.label for snapshot in self.snapshots])


def latest_comparable(snapshots: Sequence[Snapshot], baseline: int, times: Mapping[str, datetime | None]) -> Comparable:
    """The snapshots that can be compared: those of what is asked of late. `times`: when each was taken, by its label.

    A series goes over to something else once that can be compared (two snapshots, 23 hours apart) and either two snapshots in a row asked it
    or nothing could be compared before. So one that asked something else for once parts and hides nothing. Snapshots that answered too
    little have no say. Which are compared depends on what was asked when and whether it was answered, never on a score.
    """

    def can(group: Comparable) -> bool:
        hours = hours_between([times[one.label] for one in group.snapshots if one.is_answered])
        return hours is not None and hours >= MIN_HOURS

    groups: list[Comparable] = []
    chosen = previous = None
    for snapshot in snapshots:
        # The newest group first: where two would do, the one asked of late is meant.
        group = next((known for known in reversed(groups) if known.takes(snapshot)), None) or Comparable(baseline)
        groups = [*(known for known in groups if known is not group), group]
        group.add(snapshot)
        if not snapshot.is_answered:
            continue
        if chosen is None or (group is not chosen and can(group) and (group is previous or not can(chosen))):
            chosen = group
        previous = group
    return chosen or groups[-1]
