"""Drift of a model as a whole: one series a (model variant, context level, condition) over all its rounds and segments, from the scores.

Snapshots are compared on the items that they share with a frozen baseline. Those that asked mostly something else are another test, not drift:
the verdict is about the snapshots that are like the latest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.cells import scores_of_this_version
from dtef_pipeline.drift.changes import (
    APART,
    Answers,
    Change,
    answer_changes,
    differences,
    mean_differences,
    panel_changes,
    parse_changes,
    provider_changes,
)
from dtef_pipeline.drift.history import Histories, History
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.paired import Paired, paired
from dtef_pipeline.drift.rule import DriftVerdict, drift_verdict
from dtef_pipeline.drift.snapshots import Epoch, Night, latest_epoch, parse_rate
from dtef_pipeline.drift.verdict import Judged, judged, place_in_time
from dtef_pipeline.survey.identity import round_order
from dtef_pipeline.survey.tables import DRIFT_SERIES, MODEL_DRIFT

_MOST_NAMED = 3
_NEARLY_ALL = 0.95
"""Share of the latest snapshot's prompts below which it is said how many are compared."""


@dataclass(frozen=True, slots=True)
class ModelDrift:
    """`checks`: schema MODEL_DRIFT, a row a series, `told` null. `series`: DRIFT_SERIES, a row a snapshot of a series of several."""

    checks: pa.Table
    series: pa.Table


@scores_of_this_version()
def model_drift(
    connection: duckdb.DuckDBPyConnection, options: WatchOptions | None = None, *, rounds: Sequence[str] = ()
) -> ModelDrift:
    """Verdicts on all models but baselines, which ask nobody, and the timelines behind them. Circular questions are left out.

    `connection`: with a view `scores`, and `predictions` for what served them. `rounds`: only these; none given: all. The chance of a false
    `drift` anywhere is `options.alpha`, split evenly over the series of two snapshots or more at temperature 0. Series at another temperature
    have a timeline and no verdict, and so have those that are no longer asked: in none of the latest `options.baseline` snapshots that any
    model was asked in. Raises WarehouseError for scores of an earlier version.
    """
    options = options or WatchOptions()
    checks: list[dict[str, Any]] = []
    series: list[dict[str, Any]] = []
    with Histories(connection, options, rounds) as histories:
        late = _latest_labels(histories.all, options.baseline)
        threshold = options.threshold(sum(one.is_watched and not late.isdisjoint(one.times) for one in histories.all))
        for one in histories.all:
            if len(one.times) < 2:
                checks.append(_of_few_snapshots(one, options))
                continue
            retired = late.isdisjoint(one.times)
            found = _Compared(one, histories.nights(one), histories.labels, options.baseline, None if retired else threshold)
            checks.append(found.check())
            series += found.timeline()
    return ModelDrift(pa.Table.from_pylist(checks, MODEL_DRIFT), pa.Table.from_pylist(series, DRIFT_SERIES))


def _of_few_snapshots(one: History, options: WatchOptions) -> dict[str, Any]:
    """Of one snapshot, or of none that counts."""
    rule = drift_verdict(pd.DataFrame(columns=list(one.times)), one.times, temperature=one.temperature)
    row = {**one.keys, **asdict(rule), "latest_snapshot": next(iter(one.times), None), "changes": []}
    since = options.since_of(one.keys["model"], one.keys["model_variant"])
    return row if one.times else {**row, "reason": f"not compared: no snapshot since {since}, and earlier ones are left out"}


def _latest_labels(histories: Sequence[History], most: int) -> set[str]:
    """The last snapshots of all."""
    times = {label: time for one in histories for label, time in one.times.items()}
    return set(sorted(times, key=lambda label: place_in_time(label, times[label]))[-most:])


class _Compared:
    """One series of several snapshots, compared with the baseline of the panel that it was asked of late.

    `threshold`: None for a series that is not judged, since it is no longer asked.
    """

    def __init__(self, one: History, nights: list[Night], labels: pd.DataFrame, baseline: int, threshold: float | None) -> None:
        self._one, self._nights, self._labels = one, nights, labels
        self._epoch: Epoch = latest_epoch(nights, baseline)
        self._asked = labels.loc[self._epoch.items]
        values = self._epoch.grid(lambda night: night.score)
        questions = (self._asked["round"] + "/" + self._asked["question_id"]).tolist()
        self._values = values
        self._rule: DriftVerdict = drift_verdict(values, one.times, temperature=one.temperature)
        self._retired = threshold is None
        self._judged: Judged | None = (
            judged(values, questions, baseline=baseline, threshold=threshold)
            if self._rule.may_be_judged and threshold is not None
            else None
        )
        self._pairs: Paired = self._judged.pairs if self._judged else paired(values, questions, baseline=baseline)
        self._answers = self._read(self._pairs.snapshots)

    def _read(self, labels: Sequence[str]) -> Answers:
        grids = (self._epoch.grid(values) for values in (lambda n: n.parsed, lambda n: n.ok, lambda n: n.answered))
        return Answers(labels, *(grid[list(labels)].to_numpy() for grid in grids))

    def check(self) -> dict[str, Any]:
        """The row of MODEL_DRIFT."""
        evidence = self._judged.columns if self._judged else {}
        rounds = sorted(set(self._asked["round"]), key=round_order)
        told = self._changes()
        return {
            **self._one.keys,
            "metric": ", ".join(sorted(set(self._asked["metric"]))),
            "rounds": rounds,
            "n_segments": len(self._asked[["round", "segment"]].drop_duplicates()),
            "n_questions": len(self._asked[["round", "question_id"]].drop_duplicates()),
            "n_prompts": len(self._asked),
            "latest_snapshot": self._nights[-1].label,
            **asdict(self._rule),
            **evidence,
            "reason": "; ".join([self._rule.reason, *(self._judged.notes if self._judged else ()), *self._apart()]),
            "changes": [change._asdict() for change in told],
        }

    def _changes(self) -> list[Change]:
        """What changed at the first snapshot of a drift, else since the baseline; then what made earlier snapshots another test."""
        labels = self._pairs.snapshots
        compared = [night for night in self._epoch.nights if night.label in labels]
        columns = self._judged.columns if self._judged else {}
        drifted = columns.get("first_snapshot")
        first = labels.index(drifted) if drifted else None
        split = self._judged.since if self._judged else self._pairs.begin
        found: list[Change] = []
        if len(labels) > 1:
            is_news = columns.get("verdict") in ("drift", "watch")
            until = self._judged.seen.until if self._judged and drifted else None
            found += (answer_changes if is_news else parse_changes)(self._answers.first(until), split)
        within = panel_changes(compared, self._labels, first)
        return found + provider_changes(compared, first) + within + self._boundary()

    def _boundary(self) -> list[Change]:
        """How the panel that is compared differs from what was asked before it."""
        first = self._nights.index(self._epoch.nights[0])
        return differences(self._nights[first - 1], self._nights[first], self._labels) if first else []

    def _apart(self) -> list[str]:
        """Why snapshots are not compared, in words to follow the rule's reason."""
        parts = [f"no longer asked: last in {self._nights[-1].label}"] if self._retired else []
        asked = self._nights[-1]
        shared = self._epoch.shared(asked)
        if shared < _NEARLY_ALL * len(asked.items):
            parts.append(
                f"{shared:,} of {len(asked.items):,} prompts of {asked.label} are compared: the baseline has no others"
            )
        since = self._epoch.nights[0].label
        if boundary := self._boundary():
            parts.append(
                f"{' and '.join(APART[change.what] for change in boundary)} since {since}: earlier snapshots are not comparable"
            )
        later = self._nights[self._nights.index(self._epoch.nights[0]) :]
        members = {night.label for night in self._epoch.nights}
        left_out = [
            f"{night.label} ({'too few answers' if night.label in members else 'asked something else'})"
            for night in later
            if night.label not in self._pairs.snapshots
        ]
        rest = f" and {len(left_out) - _MOST_NAMED} more" if len(left_out) > _MOST_NAMED else ""
        return [*parts, f"left out: {', '.join(left_out[:_MOST_NAMED])}{rest}"] if left_out else parts

    def timeline(self) -> list[dict[str, Any]]:
        """The rows of DRIFT_SERIES."""
        compared = {label: at for at, label in enumerate(self._pairs.snapshots)}
        answers = mean_differences(self._answers, self._pairs.snapshots[: self._pairs.baseline])
        rows = []
        for night in self._nights:
            at = compared.get(night.label)
            row = {
                **self._one.keys,
                "snapshot": night.label,
                "compared": at is not None,
                "in_baseline": at is not None and at < self._pairs.baseline,
                "n_shared": self._epoch.shared(night),
                "n_prompts": len(night.items),
                "served_models": sorted(night.served),
                "fingerprints": sorted(night.fingerprints),
            }
            rows.append({**row, **(self._own(night) if at is None else self._shared(night.label, at, answers))})
        return rows

    def _own(self, night: Night) -> dict[str, Any]:
        """Numbers of a snapshot that is not compared: over all that it asked."""
        return {"score": _mean(night.score), "parse_rate": parse_rate(night.ok, night.answered)}

    def _shared(self, label: str, at: int, answers: Any) -> dict[str, Any]:
        found = self._answers
        return {
            "score": _mean(self._values[label].to_numpy()),
            "difference": float(self._pairs.means[at]),
            "answers_difference": _known(answers[at]),
            "parse_rate": parse_rate(found.ok[:, at], found.answered[:, at]),
            "log10_e": float(self._judged.seen.log10_e[at]) if self._judged else None,
        }


def _mean(values: Any) -> float | None:
    return float(np.nanmean(values)) if np.isfinite(values).any() else None


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
