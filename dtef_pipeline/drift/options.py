"""How drift is judged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date

from dtef_pipeline.drift.evidence import ALPHA, BASELINE
from dtef_pipeline.errors import ConfigError


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Raises ConfigError naming the option, what arrived and what is allowed.

    `baseline`: how many of the first snapshots are the frozen baseline. `alpha`: chance of a false `drift` anywhere among the series that are
    watched together, however often one looks, as long as they and their baselines stay the same. `since`: a date; snapshots with earlier
    labels are left out, and a drift that is known and accepted ends so.
    """

    baseline: int = BASELINE
    alpha: float = ALPHA
    since: str | None = None

    def __post_init__(self) -> None:
        if self.baseline < 2:
            raise ConfigError(f"baseline {self.baseline!r}: allowed: 2 snapshots or more")
        if not 0 < self.alpha < 1:
            raise ConfigError(f"alpha {self.alpha!r}: allowed: between 0 and 1")
        if self.since is not None and not _is_date(self.since):
            raise ConfigError(f"since {self.since!r}: allowed: a date such as 2026-03-01")

    def threshold(self, watched: int) -> float:
        """log10 of the e-value that each of `watched` series must reach: alpha is split evenly."""
        return math.log10(max(1, watched) / self.alpha)

    def takes(self, snapshot: str) -> bool:
        """Whether a snapshot counts; `base` is before all dates."""
        return self.since is None or (snapshot != "base" and snapshot >= self.since)


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
