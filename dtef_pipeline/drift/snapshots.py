"""The snapshots of one series: what each asked and what came of it, and which of them can be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.drift.rule import MIN_ANSWERED

Floats = npt.NDArray[np.float64]
Items = npt.NDArray[np.uint64]
SHARED = 0.5
"""Share of a panel's items that a snapshot must have asked to be compared with it."""


@dataclass(frozen=True, slots=True, eq=False)
class Night:
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
class Epoch:
    """Snapshots of one panel in the order of time: each asked mostly what the first `baseline` of them did.

    `items` is what they are compared on: asked in at least half of the baseline's snapshots. A snapshot that answered too little is none
    of the baseline's.
    """

    baseline: int
    nights: list[Night] = field(default_factory=list)
    items: Items = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    _founders: list[Night] = field(default_factory=list)

    def shared(self, night: Night) -> int:
        """How many of the items a night asked."""
        return len(np.intersect1d(self.items, night.items, assume_unique=True))

    def takes(self, night: Night) -> bool:
        """Whether enough is shared: half of the items; while the baseline is not complete, half of the larger of the two panels.

        Later a panel may grow: what is new has no baseline and is not compared.
        """
        is_forming = len(self._founders) < self.baseline
        return self.shared(night) >= SHARED * (max(len(self.items), len(night.items)) if is_forming else len(self.items))

    def add(self, night: Night) -> None:
        self.nights.append(night)
        if night.is_answered and len(self._founders) < self.baseline:
            self._founders.append(night)
            items, counts = np.unique(np.concatenate([one.items for one in self._founders]), return_counts=True)
            self.items = items[counts >= SHARED * len(self._founders)]
        elif not self._founders:
            self.items = self.nights[0].items

    def grid(self, values: Callable[[Night], Floats]) -> pd.DataFrame:
        """(items, snapshots) of one of the arrays; NaN where an item was not asked."""
        found = np.full((len(self.items), len(self.nights)), np.nan)
        for at, night in enumerate(self.nights):
            place = np.searchsorted(self.items, night.items).clip(max=max(len(self.items) - 1, 0))
            own = self.items[place] == night.items
            found[place[own], at] = values(night)[own]
        return pd.DataFrame(found, columns=[night.label for night in self.nights])


def latest_epoch(nights: Sequence[Night], baseline: int) -> Epoch:
    """The epoch of the last snapshot. A snapshot that asked something else for once does not end the epoch of those around it."""
    epochs: list[Epoch] = []
    for night in nights:
        # The newest panel first: where two would do, the one asked of late is meant.
        epoch = next((known for known in reversed(epochs) if known.takes(night)), None) or Epoch(baseline)
        epochs = [*(known for known in epochs if known is not epoch), epoch]
        epoch.add(night)
    return epochs[-1]
