"""The rule and the evidence on one series put together: its verdict and what goes with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from dtef_pipeline.drift.evidence import Evidence, evidence
from dtef_pipeline.drift.paired import Moved, Paired, paired
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.tables import EVIDENCE


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one series.

    First what is published: a field for each column of EVIDENCE, under the column's name and described there. Then what it was made of:

    `moved`: the clusters that moved most; None without evidence. `notes`: what to add to the rule's reason. `since`: the place of the first
    snapshot of what changed. Of a drift this is its first snapshot; of a series to watch the place where one change explains the means best,
    since only evidence dates a change; else the first snapshot after the baseline.
    """

    verdict: Literal["none", "watch", "drift"]
    log10_e: float | None
    threshold: float
    direction: Literal["up", "down"] | None
    shift: float | None
    shift_low: float | None
    shift_high: float | None
    first_snapshot: str | None
    baseline: tuple[str, ...]

    moved: list[Moved] | None
    notes: tuple[str, ...]
    pairs: Paired
    seen: Evidence
    since: int

    def row(self, subject: Subject) -> dict[str, Any]:
        """The columns of EVIDENCE, and `moved` with each cluster under the family's word for an item."""
        moved = None if self.moved is None else [{subject.keys.noun: one.cluster, "shift": one.shift} for one in self.moved]
        return {**{column.name: getattr(self, column.name) for column in EVIDENCE}, "moved": moved}


def verdict_on(values: pd.DataFrame, clusters: Sequence[str], *, baseline: int, threshold: float) -> Verdict:
    """The verdict on a series: `drift` if its range reaches the rule's thresholds and the highest e-value so far the one needed.

    The range is that of the paired means (`Paired.is_large`): the rule itself looks at prompts scored in every snapshot alone, and of those
    there are fewer with every failed call. `values`, `clusters`, `baseline`: as for `paired`. `threshold`: log10 of the e-value needed.
    """
    pairs = paired(values, clusters, baseline=baseline)
    # Without a large range there is no drift to date: the shift is then that since the baseline.
    seen = evidence(pairs.means, pairs.spread, baseline=baseline, threshold=threshold if pairs.is_large else None)
    drifted = pairs.is_large and seen.highest is not None and seen.highest >= threshold
    since = seen.first if drifted and seen.first is not None else pairs.split if pairs.is_large else pairs.begin
    moved = pairs.moved(since, seen.until) if seen.first is not None else None
    return Verdict(
        verdict="drift" if drifted else "watch" if pairs.is_large else "none",
        log10_e=seen.highest,
        threshold=threshold,
        direction=("up" if seen.shift > 0 else "down") if seen.shift else None,
        shift=seen.shift,
        shift_low=seen.low,
        shift_high=seen.high,
        first_snapshot=pairs.snapshots[seen.first] if drifted and seen.first is not None else None,
        baseline=pairs.snapshots[: pairs.baseline],
        moved=moved,
        notes=_notes(pairs, seen, drifted=drifted, baseline=baseline),
        pairs=pairs,
        seen=seen,
        since=since,
    )


def _notes(pairs: Paired, seen: Evidence, *, drifted: bool, baseline: int) -> tuple[str, ...]:
    """That there is no evidence yet; else where the latest snapshot is, if the range is large and the shift does not last to the end."""
    if seen.first is None:
        return (f"too few snapshots for evidence ({len(pairs.snapshots)} of {baseline + 1})",)
    lasts = drifted and seen.until == len(pairs.snapshots)
    if lasts or not pairs.is_large:
        return ()
    return (f"the latest, {pairs.snapshots[-1]}, is {pairs.means[-1]:+.4f} from the baseline",)
