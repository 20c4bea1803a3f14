"""The panels of one series, each with its verdict, and the choice of the series' verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pandas as pd

from dtef_pipeline.drift.changes import describe_scope
from dtef_pipeline.drift.night import Scores
from dtef_pipeline.drift.paired import Paired, paired
from dtef_pipeline.drift.rule import TOO_CLOSE, DriftVerdict, apply_drift_rule
from dtef_pipeline.drift.snapshots import Comparable, Items, Snapshot, grid
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict import Verdict, compute_verdict
from dtef_pipeline.drift.verdict_text import NEWS, VERDICTS
from dtef_pipeline.text.quantity_words import list_first_names

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class PairCodes:
    """Codes of the (partition, item) pairs of items, regardless of wording."""

    codes: pd.Series

    @classmethod
    def of(cls, labels: pd.DataFrame, subject: Subject) -> PairCodes:
        """Build the codes. `labels`: the columns `Keys.tested` by item code."""
        return cls(labels.groupby(list(subject.keys.pair), sort=False).ngroup())

    def __call__(self, items: Items) -> Items:
        return np.asarray(self.codes.reindex(pd.Index(items)), dtype=np.uint64)


class JudgedPanel:
    """The comparable snapshots of a series on one panel, with their verdict.

    `asked`: the compared items, with the columns `Keys.tested`, `name` and `cluster`. `values`: (items, snapshots) scores. `verdict`: None
    if the rule compares nothing, or the series gets no verdict (`threshold` None).
    """

    def __init__(
        self,
        comparable: Comparable,
        labels: pd.DataFrame,
        subject: Subject,
        times: Mapping[str, datetime | None],
        temperature: float | None,
        threshold: float | None,
        peers: Mapping[str, Sequence[Snapshot]] | None = None,
    ) -> None:
        """`peers`: by name, all snapshots of the other models with the same way of asking."""
        self.comparable, self._subject, self._times = comparable, subject, times
        self.asked = labels.loc[comparable.items]
        self.values = comparable.grid(lambda snapshot: snapshot.score)
        items, clusters, baseline = self.asked["name"].tolist(), self.asked["cluster"].tolist(), comparable.baseline
        self.rule: DriftVerdict = apply_drift_rule(self.values, times, temperature=temperature)
        self.verdict: Verdict | None = (
            compute_verdict(
                self.values,
                clusters,
                items=items,
                baseline=baseline,
                threshold=threshold,
                parsed_values=comparable.grid(lambda snapshot: snapshot.parsed),
                peers={name: self._scores(snapshots) for name, snapshots in (peers or {}).items()},
            )
            if self.rule.is_comparable and threshold is not None
            else None
        )
        self.pairs: Paired = (
            self.verdict.pairs if self.verdict else paired(self.values, clusters, baseline=baseline, items=items)
        )

    def _scores(self, snapshots: Sequence[Snapshot]) -> Scores:
        matches = [snapshot for snapshot in snapshots if snapshot.label in self.values.columns]
        policy, parsed_scores = (grid(self.comparable.items, matches, of) for of in (lambda s: s.score, lambda s: s.parsed))
        return Scores(policy, parsed_scores)

    @property
    def word(self) -> str | None:
        return self.verdict.verdict if self.verdict else None

    @property
    def is_close(self) -> bool:
        """Whether only time between its snapshots is missing."""
        return self.rule.reason.startswith(TOO_CLOSE)

    @property
    def labels(self) -> list[str]:
        return [snapshot.label for snapshot in self.comparable.snapshots]

    def words(self) -> str:
        """Return `2026-12-02, 2026-12-03 asked something else (1 task in 1 blueprint of S1, 1 prompt), compared with each other: none`."""
        who, scope = list_first_names(self.labels, _MOST_NAMED), describe_scope(self.asked, self._subject)
        comparison = self.rule.reason if self.is_close else f"compared with each other: {self.word or 'not compared'}"
        return f"{who} {self._subject.unlike} ({scope}), {comparison}"

    def since(self) -> str:
        """Return the date from which only this panel counts, in the format of the option `since`."""
        time = self._times[self.labels[0]]
        return self.labels[0] if time is None else time.date().isoformat()


@dataclass(frozen=True, slots=True)
class Standing:
    """The panels of a series. `shown`: the one whose verdict the series gets: the worst that counts, or the latest of equal ones.

    `others`: those that also count. `aside`: panels in between that do not count. `close`: those repeated too soon.
    """

    shown: JudgedPanel
    others: list[JudgedPanel]
    aside: list[JudgedPanel]
    close: list[JudgedPanel]
    is_late: bool

    @classmethod
    def of(cls, panels: Sequence[JudgedPanel], aside: Sequence[JudgedPanel], close: Sequence[JudgedPanel]) -> Standing:
        choice = min(reversed(panels), key=lambda panel: VERDICTS.index(panel.word) if panel.word else len(VERDICTS))
        return cls(
            choice,
            [panel for panel in panels if panel is not choice],
            list(aside),
            [panel for panel in close if panel.is_close],
            choice is panels[-1],
        )

    def words(self) -> list[str]:
        """Return the verdicts on the other panels, and how long the shown one stays."""
        stays = [] if self.is_late else [f"this verdict stays until it is accepted with --since {self.others[-1].since()}"]
        return [*(panel.words() for panel in self._list_named_panels()), *stays]

    def named(self) -> set[str]:
        """Return the snapshots that `words` names."""
        return {label for panel in self._list_named_panels() for label in panel.labels}

    def _list_named_panels(self) -> list[JudgedPanel]:
        """Return the panels to describe: without a verdict only those repeated too soon; of panels in between only those that moved."""
        panels = [*self.others, *(panel for panel in self.aside if panel.word in NEWS)] if self.shown.word else []
        return [*panels, *self.close]
