"""Drift of a model as a whole, from the scores: one series per model variant and setting, over all partitions.

Snapshots are compared on the items that they share with a frozen baseline. Those with mostly other items are another test, not drift. A
series that changed to another panel has the worse verdict of the two, until the new one covers the old one; a single snapshot with other
items is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import among
from dtef_pipeline.boards.cells import require_current_scores
from dtef_pipeline.drift.evidence import RESOLUTION
from dtef_pipeline.drift.history import Comparable, Floats, Histories, History, Items, Snapshot, build_panels, grid, parse_rate
from dtef_pipeline.drift.judge_verdicts import subtract_judges
from dtef_pipeline.drift.paired import (
    Paired,
    Scores,
    SharedShift,
    compute_known_means,
    compute_shared_shift,
    pair_with_baseline,
)
from dtef_pipeline.drift.rule import DriftVerdict, apply_drift_rule
from dtef_pipeline.drift.settings import WatchOptions, list_names
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict import Verdict, compute_verdict
from dtef_pipeline.drift.verdict_tables import DRIFT, DRIFT_SERIES, PARTITION_DRIFT
from dtef_pipeline.drift.verdict_text import VERDICTS
from dtef_pipeline.keys import Keys
from dtef_pipeline.text.number_words import format_count, list_first_names

PARSE_RATE_CHANGE = 0.01
"""Smallest change of the parse rate that is reported."""
_MOST_NAMED = 3


class Change(NamedTuple):
    """A change of a series. `snapshot`: the first with `after`; `kind`: such as `parse_rate`, or the family's word for its truth."""

    kind: str
    snapshot: str
    before: str
    after: str


class AnswerShares(NamedTuple):
    """Responses of the compared snapshots; arrays are (items, snapshots), NaN if an item is missing.

    `parsed`: mean score of the parsed draws. `ok`, `answered`: number of draws that were parsed, and answered.
    """

    labels: Sequence[str]
    parsed: Floats
    ok: Floats
    answered: Floats

    def keep_first(self, snapshots: int | None, without: Collection[int] = ()) -> AnswerShares:
        """Return the first `snapshots` snapshots, with NaN at the places `without`."""
        is_known = [at not in without for at in range(len(self.labels))]
        grids = (np.where(is_known, values, np.nan)[:, :snapshots] for values in (self.parsed, self.ok, self.answered))
        return AnswerShares(self.labels[:snapshots], *grids)


def find_answer_changes(shares: AnswerShares, first: int) -> list[Change]:
    """Return whether responses or their parse rate changed at snapshot `first`, each over the items known on both sides."""
    changes = []
    before, after = (compute_known_means(part, axis=1) for part in (shares.parsed[:, :first], shares.parsed[:, first:]))
    is_shared = np.isfinite(before) & np.isfinite(after)
    if is_shared.any():
        was, now = float(before[is_shared].mean()), float(after[is_shared].mean())
        note = ", as before" if abs(now - was) < RESOLUTION else ""
        words = [f"parsed answers score {mean:.4f}" for mean in (was, now)]
        changes.append(Change("answers", shares.labels[first], words[0], f"{words[1]} ({now - was:+.4f}{note})"))
    return changes + parse_changes(shares, first)


def parse_changes(shares: AnswerShares, first: int) -> list[Change]:
    rates = [parse_rate(shares.ok[:, part], shares.answered[:, part]) for part in (slice(first), slice(first, None))]
    was, now = rates
    if was is None or now is None or abs(now - was) < PARSE_RATE_CHANGE:
        return []
    return [Change("parse_rate", shares.labels[first], f"parsed {100 * was:.1f} %", f"parsed {100 * now:.1f} %")]


def find_provider_changes(snapshots: Sequence[Snapshot], first: int | None) -> list[Change]:
    """Return the changes of served model and of fingerprint nearest to snapshot `first`, or the first ones if that is None."""
    named: dict[str, Callable[[Snapshot], frozenset[str]]] = {
        "served_model": lambda snapshot: snapshot.served,
        "fingerprint": lambda snapshot: snapshot.fingerprints,
    }
    changes = []
    for kind, getter in named.items():
        values = [(place, getter(snapshot)) for place, snapshot in enumerate(snapshots) if getter(snapshot)]
        earlier: set[str] = set()
        candidates = []
        for (_, was), (place, now) in pairwise(values):
            earlier |= was
            # Several models may serve in parallel; seeing only some of them is no change.
            if now - earlier or not now & was:
                candidates.append((place, Change(kind, snapshots[place].label, ", ".join(sorted(was)), ", ".join(sorted(now)))))
        changes += _choose_nearest(candidates, first)
    return changes


def _choose_nearest(candidates: Sequence[tuple[int, Change]], first: int | None) -> list[Change]:
    if not candidates:
        return []
    return [min(candidates, key=lambda pair: 0 if first is None else abs(pair[0] - first))[1]]


def find_item_changes(snapshots: Sequence[Snapshot], labels: pd.DataFrame, subject: Subject, first: int | None) -> list[Change]:
    """Return changes of items between consecutive snapshots: one each of prompts, truth, metric and panel (the set of items).

    Each is the one nearest to snapshot `first`, or the first if that is None. `labels`: see `find_differences`.
    """
    by_what: dict[str, list[tuple[int, Change]]] = {}
    for place, (before, after) in enumerate(pairwise(snapshots), start=1):
        if not np.array_equal(before.items, after.items):
            for change in find_differences(before, after, labels, subject):
                by_what.setdefault(change.kind, []).append((place, change))
    return [change for candidates in by_what.values() for change in _choose_nearest(candidates, first)]


def find_differences(before: Snapshot, after: Snapshot, labels: pd.DataFrame, subject: Subject) -> list[Change]:
    """Return how the items of `after` differ from those of `before`.

    `labels`: the columns `Keys.tested` by item code. A pair in both has other prompts if they share no prompt, and another truth if they
    share none; a pair in only one is a change of the panel.
    """
    was, now = labels.loc[before.items], labels.loc[after.items]
    pair = list(subject.keys.pair)
    pairs = was.merge(now, on=pair, suffixes=("", "_now"))
    matches = pd.DataFrame({name: pairs[name] == pairs[f"{name}_now"] for name in ("prompt_id", "truth_id", "metric")})
    cells = matches.groupby([pairs[name] for name in pair]).any()
    counts = (~cells).sum()
    total = f"of {len(cells)} ({subject.keys.space[1]}, {subject.keys.noun}) pairs"
    differences: list[tuple[str, str, str]] = []
    if counts["prompt_id"]:
        differences.append(("prompts", f"the prompts of {before.label}", f"other prompts for {counts['prompt_id']} {total}"))
    if counts["truth_id"]:
        truths = f"other {subject.truths} for {counts['truth_id']} {total}"
        differences.append((subject.truth, f"the {subject.truths} that {before.label} was scored against", truths))
    if counts["metric"]:
        metrics = [f"scored by {', '.join(sorted(set(part['metric'])))}" for part in (was, now)]
        differences.append(("metric", metrics[0], metrics[1]))
    if len(cells) < max(len(part.drop_duplicates(pair)) for part in (was, now)):
        # What was added to or dropped from the space's first level; if nothing, from its second, and which items.
        spaces = _list_space_changes(was, now, subject.keys.space[:1]) or [
            *_list_space_changes(was, now, subject.keys.space),
            *_list_space_changes(was, now, subject.keys.shared_item),
        ]
        note = f" ({'; '.join(spaces)})" if spaces else ""
        differences.append(("panel", describe_scope(was, subject), f"{describe_scope(now, subject)}{note}"))
    return [Change(kind, after.label, *words) for kind, *words in differences]


def describe_break(label: str, whats: Sequence[str], subject: Subject) -> str:
    """Return why earlier snapshots are not compared with this one and later ones. `whats`: the changes from `find_differences`."""
    second = subject.keys.space[1]
    reasons = {
        subject.truth: f"was scored against other {subject.truths}",
        "prompts": "asked other prompts",
        "panel": f"asked other {subject.keys.noun}s or {second}s",
        "metric": "was scored by another metric",
    }
    return f"{label} {' and '.join(reasons[kind] for kind in whats)}, so earlier snapshots are not compared with it"


def describe_scope(prompts: pd.DataFrame, subject: Subject) -> str:
    """Return the scope of the prompts: `10 tasks in 2 blueprints of S1, 20 prompts`."""
    first, second = subject.keys.space
    values = sorted(set(prompts[first]), key=subject.in_order)
    items = len(prompts[list(subject.keys.shared_item)].drop_duplicates())
    seconds = len(prompts[[first, second]].drop_duplicates())
    where = ", ".join(values) if len(values) <= _MOST_NAMED else f"{len(values)} {first}s"
    return f"{format_count(items, subject.keys.noun)} in {format_count(seconds, second)} of {where}, {format_count(len(prompts), 'prompt')}"


def _list_space_changes(was: pd.DataFrame, now: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    before, after = (
        set(map("/".join, part[list(columns)].drop_duplicates().itertuples(index=False, name=None))) for part in (was, now)
    )
    changes = {"added": sorted(after - before), "dropped": sorted(before - after)}
    return [f"{word} {list_first_names(names, _MOST_NAMED)}" for word, names in changes.items() if names]


def build_pair_codes(labels: pd.DataFrame, subject: Subject) -> Callable[[Items], Items]:
    """Codes of the (partition, item) pairs of items, regardless of wording. `labels`: the columns `Keys.tested` by item code."""
    codes = labels.groupby(list(subject.keys.pair), sort=False).ngroup()
    return lambda items: np.asarray(codes.reindex(pd.Index(items)), dtype=np.uint64)


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
        """`peers`: by name, all snapshots of the other models with the same setting."""
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
            self.verdict.pairs if self.verdict else pair_with_baseline(self.values, clusters, baseline=baseline, items=items)
        )

    def _scores(self, snapshots: Sequence[Snapshot]) -> Scores:
        matches = [snapshot for snapshot in snapshots if snapshot.label in self.values.columns]
        policy, parsed_scores = (grid(self.comparable.items, matches, part) for part in (lambda s: s.score, lambda s: s.parsed))
        return Scores(policy, parsed_scores)

    @property
    def word(self) -> str | None:
        return self.verdict.verdict if self.verdict else None

    @property
    def labels(self) -> list[str]:
        return [snapshot.label for snapshot in self.comparable.snapshots]

    def words(self) -> str:
        """Return `2026-12-02, 2026-12-03 had too few comparable prompts (1 task in 1 blueprint, 1 prompt), compared with each other: none`."""
        snapshots, scope = list_first_names(self.labels, _MOST_NAMED), describe_scope(self.asked, self._subject)
        return f"{snapshots} {self._subject.reason_left_out} ({scope}), compared with each other: {self.word or 'not compared'}"

    def since(self) -> str:
        """Return the date from which only this panel counts, in the format of the option `since`."""
        time = self._times[self.labels[0]]
        return self.labels[0] if time is None else time.date().isoformat()


def choose_panel(panels: Sequence[JudgedPanel]) -> JudgedPanel:
    """Return the panel whose verdict a series gets: the worst one, or the latest of equal ones. `panels`: the earliest first."""
    return min(reversed(panels), key=lambda panel: VERDICTS.index(panel.word) if panel.word else len(VERDICTS))


_NEARLY_ALL = 0.95
"""Share of the latest snapshot's prompts below which the row says how many are compared."""


@dataclass(frozen=True, slots=True)
class ModelDrift:
    """`checks`: schema DRIFT, one row per series. `series`: DRIFT_SERIES, one row per snapshot of series with several.

    `rows`: the rows of `checks` with the family's key columns, `baseline` and `outage`; empty if the tables were read instead of computed.
    """

    checks: pa.Table
    series: pa.Table
    rows: tuple[Mapping[str, Any], ...] = ()

    def subtract_judge_shifts(self, subject: Subject, anchors: pa.Table, options: WatchOptions) -> ModelDrift:
        """Return the drift with the judges' part of each shift. `anchors`: the family's rows of ANCHORS."""
        if subject.anchors is None:
            return self
        rows = tuple(subtract_judges(self.rows, subject.anchors, anchors, options))
        return replace(self, checks=pa.Table.from_pylist(rows, DRIFT), rows=rows)


def compute_model_drift(
    connection: duckdb.DuckDBPyConnection,
    subject: Subject,
    options: WatchOptions | None = None,
    *,
    only: Sequence[str] = (),
    n_watched: int = 1,
    order: Sequence[str] | None = None,
) -> ModelDrift:
    """Return verdicts on all models and their timelines, without rows that are computed or that the keys leave out.

    `connection`: with the tables of `subject.reads`. `only`: these values of the space's first level; empty: all. The chance of a false
    `drift` anywhere is `options.alpha`, split evenly over the series of two snapshots or more at temperature 0. Series at another
    temperature have a timeline and no verdict, and so have retired ones: without snapshots on the latest `options.baseline` days of any
    model. `n_watched`: how many such connections are watched together and share alpha. `order`: the order of all snapshots, by default the
    connection's. Raises WarehouseError for scores of an earlier version.
    """
    options = options or WatchOptions()
    for statement in subject.statements:
        connection.execute(statement)
    checks: list[dict[str, Any]] = []
    series: list[dict[str, Any]] = []
    with require_current_scores(subject.keys), Histories(connection, subject, options, only, order) as histories:
        late = _find_late_labels(histories, options.baseline)
        pairs = build_pair_codes(histories.labels, subject)
        n_late = sum(past.is_watched and not late.isdisjoint(past.times) for past in histories.all)
        threshold = options.threshold(n_watched * n_late)
        by_setting: dict[tuple[str, ...], list[History]] = {}
        for past in histories.all:
            by_setting.setdefault(tuple(past.keys[name] for name in subject.keys.asked), []).append(past)
        pools = by_setting.values()
        n_several = sum(len({past.keys["model"] for past in pool if past.is_watched}) > 1 for pool in pools)
        # Half of alpha: the common shift varies more than it seems.
        shared_threshold = options.threshold(2 * n_watched * n_several)
        rows: dict[History, tuple[dict[str, Any], list[dict[str, Any]]]] = {}
        for pool in pools:
            comparisons = _compare_series(pool, histories, pairs, options, threshold, late)
            models = {comparison.name: comparison.pairs for comparison in comparisons.values() if comparison.verdict}
            shared = compute_shared_shift(models, histories.order, baseline=options.baseline, threshold=shared_threshold)
            rows |= {past: (comparison.check(shared), comparison.timeline()) for past, comparison in comparisons.items()}
        for past in histories.all:
            check, timeline = rows.get(past) or (_build_short_row(past, subject, options), [])
            checks.append(dict.fromkeys(DRIFT.names) | check)
            series += timeline
    table = pa.Table.from_pylist(checks, DRIFT)
    texts = subject.add_texts(table, connection) if subject.add_texts else table
    return ModelDrift(texts, pa.Table.from_pylist(series, DRIFT_SERIES), tuple(checks))


def _compare_series(
    pool: Sequence[History],
    histories: Histories,
    pairs: Callable[[Items], Items],
    options: WatchOptions,
    threshold: float,
    late: set[str],
) -> dict[History, _Comparison]:
    """Compare the series of one setting that have several snapshots, with the others as controls.

    `late`: the latest snapshots of all models; a series without any of them is retired.
    """
    snapshots = {history: histories.snapshots(history) for history in pool if len(history.times) > 1}
    comparisons = {}
    for history, series in snapshots.items():
        model, limit = history.keys["model"], None if late.isdisjoint(history.times) else threshold
        peers = {
            peer.keys["model"]: others
            for peer, others in snapshots.items()
            if options.is_control(model, peer.keys["model"], temperature=peer.temperature)
        }
        comparisons[history] = _Comparison(history, series, histories, pairs, options, limit, peers)
    return comparisons


def _build_short_row(log: History, subject: Subject, options: WatchOptions) -> dict[str, Any]:
    """Return the row of a series with one counted snapshot, or none."""
    rule = apply_drift_rule(pd.DataFrame(columns=list(log.times)), log.times, temperature=log.temperature)
    row = {
        **log.keys,
        **subject.series_columns(log.keys),
        **asdict(rule),
        "latest_snapshot": next(iter(log.times), None),
        "changes": [],
    }
    since = options.find_since(list_names(log.keys["model"], log.keys["model_variant"]))
    return row if log.times else {**row, "reason": f"not compared: no snapshot since {since}, and earlier ones are left out"}


def _find_late_labels(histories: Histories, n_days: int) -> set[str]:
    """Return the snapshots of the last `n_days` days on which any model had one. Several snapshots of one day retire no other model."""
    times = {label: time for history in histories.all for label, time in history.times.items()}
    days = {
        label: label if (time := times[label]) is None else time.date().isoformat() for label in among(histories.order, times)
    }
    late = list(dict.fromkeys(reversed(days.values())))[:n_days]
    return {label for label, day in days.items() if day in late}


class _Comparison:
    """One series of several snapshots, compared with the baseline of the panel whose verdict it gets.

    `threshold`: None for a retired series, which gets no verdict.
    """

    def __init__(
        self,
        history: History,
        snapshots: list[Snapshot],
        histories: Histories,
        pairs: Callable[[Items], Items],
        options: WatchOptions,
        threshold: float | None,
        peers: Mapping[str, Sequence[Snapshot]],
    ) -> None:
        self._history, self._snapshots, self._options = history, snapshots, options
        self._labels, self._subject = histories.labels, histories.subject
        self._panels = [
            JudgedPanel(part, self._labels, self._subject, history.times, history.temperature, threshold, peers)
            for part in build_panels(snapshots, options.baseline, history.times, pairs)
        ]
        self._panel = panel = choose_panel(self._panels)
        self._comparable, self.verdict, self.pairs = panel.comparable, panel.verdict, panel.pairs
        self.name, self._retired = history.keys["model"], threshold is None
        grids = (panel.comparable.grid(values) for values in (lambda s: s.parsed, lambda s: s.ok, lambda s: s.answered))
        labels_compared = list(self.pairs.snapshots)
        self._answers = AnswerShares(labels_compared, *(grid[labels_compared].to_numpy() for grid in grids))

    def check(self, shared: SharedShift) -> dict[str, Any]:
        """Return a row of `ModelDrift.rows`. `shared`: the shift that all models in the same setting share."""
        verdict = self.verdict
        evidence = {**verdict.row(), **shared._asdict()} if verdict else {}
        changes = self._collect_changes()
        return {
            **self._history.keys,
            **self._subject.series_columns(self._history.keys),
            "n_prompts": len(self._panel.asked),
            "latest_snapshot": self._snapshots[-1].label,
            **asdict(self._panel.rule),
            **evidence,
            "reason": "; ".join([self._panel.rule.reason, *self._build_notes(), *self._explain_exclusions()]),
            "changes": [change._asdict() for change in changes],
        }

    def _build_notes(self) -> list[str]:
        if self.verdict is None:
            return []
        absent = list_first_names(self._options.find_absent_controls((self.name, *self.verdict.controls)), _MOST_NAMED)
        note = f"drift.control: {absent} asked in too few of these snapshots to compare with"
        return [*self.verdict.notes, *([note] if absent else [])]

    def _collect_changes(self) -> list[Change]:
        """Return the changes at a shift's first snapshot, else since the baseline; then those that made earlier snapshots another test."""
        labels = self.pairs.snapshots
        snapshots = [snapshot for snapshot in self._comparable.snapshots if snapshot.label in labels]
        verdict = self.verdict
        first = labels.index(verdict.first_snapshot) if verdict and verdict.first_snapshot else None
        split = verdict.since if verdict else self.pairs.begin
        changes: list[Change] = []
        if len(labels) > 1:
            is_news = verdict is not None and verdict.verdict != "none"
            end = verdict.evidence.until if verdict and verdict.first_snapshot else None
            answers = self._answers.keep_first(end, verdict.outage_places if verdict else ())
            changes += (find_answer_changes if is_news else parse_changes)(answers, split)
        item_changes = find_item_changes(snapshots, self._labels, self._subject, first)
        return changes + find_provider_changes(snapshots, first) + item_changes + self._find_boundary_changes()

    def _find_boundary_changes(self) -> list[Change]:
        first = self._snapshots.index(self._comparable.snapshots[0])
        return (
            find_differences(self._snapshots[first - 1], self._snapshots[first], self._labels, self._subject) if first else []
        )

    def _explain_exclusions(self) -> list[str]:
        """Return why snapshots are not compared, to follow the rule's reason."""
        parts = [f"no longer asked: last in {self._snapshots[-1].label}"] if self._retired else []
        latest = self._comparable.snapshots[-1]
        shared = self._comparable.count_shared(latest)
        if shared < _NEARLY_ALL * len(latest.items):
            parts.append(
                f"{shared:,} of {len(latest.items):,} prompts of {latest.label} are compared: the reference snapshots have no others"
            )
        since = self._comparable.snapshots[0].label
        if boundary := self._find_boundary_changes():
            parts.append(describe_break(since, [change.kind for change in boundary], self._subject))
        later = self._snapshots[self._snapshots.index(self._comparable.snapshots[0]) :]
        members = {snapshot.label for snapshot in self._comparable.snapshots}
        others = [panel for panel in self._panels if panel is not self._panel] if self._panel.word else []
        named = {*self.pairs.snapshots, *(label for panel in others for label in panel.labels)}
        left_out = [
            f"{snapshot.label} ({'too few answers' if snapshot.label in members else self._subject.reason_left_out})"
            for snapshot in later
            if snapshot.label not in named
        ]
        parts += [panel.words() for panel in others]
        if self._panel is not self._panels[-1]:
            parts.append(f"this verdict stays until it is accepted with --since {others[-1].since()}")
        return [*parts, f"left out: {list_first_names(left_out, _MOST_NAMED)}"] if left_out else parts

    def timeline(self) -> list[dict[str, Any]]:
        """Return the rows of DRIFT_SERIES."""
        places = {label: place for place, label in enumerate(self.pairs.snapshots)}
        rows = []
        for snapshot in self._snapshots:
            place = places.get(snapshot.label)
            row = {
                **self._subject.series_columns(self._history.keys),
                "snapshot": snapshot.label,
                "compared": place is not None,
                "in_baseline": place is not None and place < self.pairs.baseline,
                "n_shared": self._comparable.count_shared(snapshot),
                "n_prompts": len(snapshot.items),
                "served_models": sorted(snapshot.served),
                "fingerprints": sorted(snapshot.fingerprints),
            }
            # Of a snapshot that is not compared, over all that it asked.
            values = {"score": _compute_mean(snapshot.score), "parse_rate": parse_rate(snapshot.ok, snapshot.answered)}
            rows.append({**row, **(values if place is None else self._compute_shared_values(snapshot.label, place))})
        return rows

    def _compute_shared_values(self, label: str, place: int) -> dict[str, Any]:
        answers = self._answers
        return {
            "score": _compute_mean(self._panel.values[label].to_numpy()),
            "difference": float(self.pairs.means[place]),
            "parse_rate": parse_rate(answers.ok[:, place], answers.answered[:, place]),
            "log10_e": float(self.verdict.evidence.log10_e[place]) if self.verdict else None,
        }


def _compute_mean(values: Any) -> float | None:
    return float(np.nanmean(values)) if np.isfinite(values).any() else None


_MEASURED = ("snapshot", "temperature", "score", "status", "answered_at")


def list_needed_columns(keys: Keys) -> tuple[str, ...]:
    """Return the columns of `scores` that `drift_checks` reads."""
    left_out = () if keys.left_out is None else (keys.left_out,)
    return tuple(dict.fromkeys((*keys.series, *keys.tested_columns, *_MEASURED, *left_out)))


def drift_checks(
    scores: pa.Table,
    subject: Subject,
    *,
    levels: int = 2,
    options: WatchOptions | None = None,
    n_watched: int = 1,
    order: Sequence[str] | None = None,
    clusters: pd.DataFrame | None = None,
) -> pa.Table:
    """Return verdicts with the levels of the space and the columns PARTITION_DRIFT, one row per model variant and setting.

    `scores`: has the columns `list_needed_columns`. `levels`: the levels of the space that separate series: 2, one series per partition; 1,
    one over all partitions of a first level, with null for the second. `clusters`: see `Subject.clusters`; by default each item is its own
    cluster. `n_watched`: how many tables like this are watched together; all their series share `options.alpha` evenly. `order`: the order
    of all snapshots (`snapshot_order`), by default derived from `scores`.
    """
    keys = replace(subject.keys, asked=(*subject.keys.asked, *subject.keys.space[:levels]))
    narrow = replace(
        subject, keys=keys, statements=(), add_texts=None, clusters=None if clusters is None else lambda _: clusters
    )
    with _open_database().cursor() as connection:
        connection.register("scores", scores)
        drift = compute_model_drift(connection, narrow, options, n_watched=n_watched, order=order)
        connection.unregister("scores")
    schema = pa.schema([*((level, pa.string()) for level in keys.space), *PARTITION_DRIFT])
    # Series without a counted snapshot are left out here.
    return pa.Table.from_pylist([row for row in drift.rows if row["latest_snapshot"]], schema)


@cache
def _open_database() -> duckdb.DuckDBPyConnection:
    """Return one database for all partitions, since opening takes longer than the query."""
    return duckdb.connect()
