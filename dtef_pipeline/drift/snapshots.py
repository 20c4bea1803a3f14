"""The snapshots of one series: what each asked and what came of it, which of them can be compared, and which verdicts on them count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.drift.rule import MIN_ANSWERED, MIN_HOURS, compute_hours

Floats = npt.NDArray[np.float64]
Items = npt.NDArray[np.uint64]
SHARED = 0.5
"""Share of the items that a snapshot must have asked to be compared on them."""
NEARLY_ALL = 0.95
"""Share of the pairs of a panel that another one must ask to take its place."""


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


def parse_rate(ok: Floats, n_answered: Floats) -> float | None:
    """Parsed of answered draws; None where nothing was answered."""
    total = np.nansum(n_answered)
    return float(np.nansum(ok) / total) if total else None


@dataclass(slots=True, eq=False)
class Comparable:
    """Snapshots that can be compared, in the order of time: each asked mostly what the first `baseline` of them did.

    `items` is what they are compared on: asked in two of the baseline's snapshots or more, in one while there are no more than two. So what
    was once compared stays so, whatever later snapshots of the baseline leave out. A snapshot that answered too little is none of the
    baseline's.
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
            items, counts = np.unique(np.concatenate([founder.items for founder in self._founders]), return_counts=True)
            self.items = items[counts >= min(2, SHARED * len(self._founders))]
        elif not self._founders:
            self.items = self.snapshots[0].items

    def is_long(self, times: Mapping[str, datetime | None]) -> bool:
        """Whether its answered snapshots span the hours that the rule asks for. `times`: when each was taken, by its label."""
        hours = compute_hours([times[snapshot.label] for snapshot in self.snapshots if snapshot.is_answered])
        return hours is not None and hours >= MIN_HOURS

    @property
    def is_repeated(self) -> bool:
        """Whether two of its snapshots are answered: nothing but time between them may be missing."""
        return sum(snapshot.is_answered for snapshot in self.snapshots) > 1

    def grid(self, values: Callable[[Snapshot], Floats]) -> pd.DataFrame:
        """(items, snapshots) of one of the arrays; NaN where an item was not asked."""
        return grid(self.items, self.snapshots, values)


def grid(items: Items, snapshots: Sequence[Snapshot], values: Callable[[Snapshot], Floats]) -> pd.DataFrame:
    """(items, snapshots) of one of the arrays of snapshots; NaN where an item was not asked. `items` rise."""
    table = np.full((len(items), len(snapshots)), np.nan)
    for at, snapshot in enumerate(snapshots):
        place = np.searchsorted(items, snapshot.items).clip(max=max(len(items) - 1, 0))
        mask = items[place] == snapshot.items if len(items) else np.zeros(len(snapshot.items), dtype=bool)
        table[place[mask], at] = values(snapshot)[mask]
    return pd.DataFrame(table, columns=[snapshot.label for snapshot in snapshots])


class Panels(NamedTuple):
    """What a series was asked over time, each with the snapshots that can be compared on it.

    `kept`: those whose verdicts count, the one asked of late last. `aside`: the others that can be compared and that none of these covers,
    since they were asked in between. `close`: those that were asked again within fewer hours than the rule asks for.
    """

    kept: list[Comparable]
    aside: list[Comparable]
    close: list[Comparable]


def build_panels(
    snapshots: Sequence[Snapshot], baseline: int, times: Mapping[str, datetime | None], pairs: Callable[[Items], Items]
) -> Panels:
    """The panels of a series. `times`: when each snapshot was taken, by its label. `pairs`: what items ask of whom, however it is worded.

    A series goes over to another panel once that can be compared (two snapshots, 23 hours apart) and either two snapshots in a row asked it
    or nothing could be compared before. Snapshots that answered too little have no say. An earlier panel goes on counting until a later one
    that the series went over to asks the same pairs, so that no verdict is hidden by asking fewer. Of a series that went back to a panel,
    what was asked in between counts no more where it asked fewer pairs. Where nothing can be compared, it is the panel asked again of late
    that is kept: it lacks the hours alone. Which panels count depends on what was asked when and whether it was
    answered, never on a score.
    """

    groups: list[Comparable] = []
    gone_over: list[Comparable] = []
    previous = None
    for snapshot in snapshots:
        group = _find_group(groups, snapshot) or Comparable(baseline)
        groups = [*(member for member in groups if member is not group), group]
        group.add(snapshot)
        if not snapshot.is_answered:
            continue
        current = gone_over[-1] if gone_over else None
        if current is None or (
            group is not current and group.is_long(times) and (group is previous or not current.is_long(times))
        ):
            gone_over = _trim_groups(gone_over, group, pairs)
        previous = group
    parts = _select_uncovered(gone_over or groups[-1:], times, pairs)
    if not any(part.is_repeated for part in parts):
        parts = [part for part in groups if part.is_repeated][-1:] or parts
    spare = [part for part in groups if part not in parts and part.is_repeated]
    aside = [part for part in spare if part.is_long(times) and not any(_is_covering(member, part, pairs) for member in parts)]
    return Panels(parts, aside, [part for part in spare if not part.is_long(times)])


def _select_uncovered(
    gone_over: Sequence[Comparable], times: Mapping[str, datetime | None], pairs: Callable[[Items], Items]
) -> list[Comparable]:
    """The last, and before it those that can be compared and that no later one covers."""
    return [
        old
        for at, old in enumerate(gone_over, start=1)
        if at == len(gone_over) or (old.is_long(times) and not any(_is_covering(later, old, pairs) for later in gone_over[at:]))
    ]


def _find_group(groups: Sequence[Comparable], snapshot: Snapshot) -> Comparable | None:
    """The group that shares most with a snapshot; of several the newest, which is what was asked of late."""
    taking = [candidate for candidate in reversed(groups) if candidate.takes(snapshot)]
    return max(taking, key=lambda candidate: candidate.shared(snapshot), default=None)


def _trim_groups(gone_over: Sequence[Comparable], group: Comparable, pairs: Callable[[Items], Items]) -> list[Comparable]:
    if group not in gone_over:
        return [*gone_over, group]
    at, n_pairs = gone_over.index(group), len(np.unique(pairs(group.items)))
    between = [panel for panel in gone_over[at + 1 :] if len(np.unique(pairs(panel.items))) > n_pairs]
    return [*gone_over[:at], *between, group]


def _is_covering(later: Comparable, earlier: Comparable, pairs: Callable[[Items], Items]) -> bool:
    """Whether nearly all pairs of the earlier one are asked in the later one."""
    earlier_pairs = np.unique(pairs(earlier.items))
    return bool(np.isin(earlier_pairs, pairs(later.items)).mean() >= NEARLY_ALL) if len(earlier_pairs) else True
