"""What changed with a series: its responses, how many could be parsed, who served them, or what was asked. In words that stand alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from dtef_pipeline.drift.evidence import RESOLUTION
from dtef_pipeline.drift.snapshots import Floats, Snapshot, parse_rate
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.keys import Keys
from dtef_pipeline.text.quantity_words import format_count, list_first_names

PARSE_RATE_CHANGE = 0.01
"""Smallest change of the parse rate that is reported."""
_MOST_NAMED = 3
WHATS = {
    "answers": "answers",
    "parse_rate": "parse rate",
    "served_model": "served model",
    "fingerprint": "fingerprint",
    "prompts": "prompts",
    "metric": "metric",
    "panel": "panel",
}
"""What can change besides a family's truth, and what people call it."""


class Change(NamedTuple):
    """`snapshot`: the first with `after`."""

    what: str
    snapshot: str
    before: str
    after: str


class AnswerShares(NamedTuple):
    """The snapshots that are compared; arrays are (items, snapshots), NaN where an item was not asked.

    `parsed`: mean score of the draws that could be parsed. `ok`, `answered`: how many draws could be parsed, and were answered.
    """

    labels: Sequence[str]
    parsed: Floats
    ok: Floats
    answered: Floats

    def first(self, snapshots: int | None, without: Collection[int] = ()) -> AnswerShares:
        """Of the first so many snapshots; what was asked at the places `without` is not known."""
        is_known = [at not in without for at in range(len(self.labels))]
        grids = (np.where(is_known, values, np.nan)[:, :snapshots] for values in (self.parsed, self.ok, self.answered))
        return AnswerShares(self.labels[:snapshots], *grids)


def find_answer_changes(shares: AnswerShares, first: int) -> list[Change]:
    """Whether responses changed at snapshot `first`, or how many of them could be parsed; each over the items known on both sides."""
    changes = []
    before, after = _compute_means(shares.parsed[:, :first]), _compute_means(shares.parsed[:, first:])
    both = np.isfinite(before) & np.isfinite(after)
    if both.any():
        was, now = float(before[both].mean()), float(after[both].mean())
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


def _compute_means(values: Floats) -> Floats:
    """(rows,) means of what is known, NaN where nothing is."""
    is_known = np.isfinite(values)
    counts = is_known.sum(axis=1)
    return np.asarray(
        np.divide(np.where(is_known, values, 0.0).sum(axis=1), counts, out=np.full(len(values), np.nan), where=counts > 0)
    )


def find_provider_changes(snapshots: Sequence[Snapshot], first: int | None) -> list[Change]:
    """The change of served model and of fingerprint nearest to snapshot `first`; where that is None, the first there is."""
    named: dict[str, Callable[[Snapshot], frozenset[str]]] = {
        "served_model": lambda snapshot: snapshot.served,
        "fingerprint": lambda snapshot: snapshot.fingerprints,
    }
    changes = []
    for kind, of in named.items():
        values = [(at, of(snapshot)) for at, snapshot in enumerate(snapshots) if of(snapshot)]
        earlier: set[str] = set()
        candidates = []
        for (_, was), (at, now) in pairwise(values):
            earlier |= was
            # Several may serve side by side: a snapshot that saw fewer of them is no change.
            if now - earlier or not now & was:
                candidates.append((at, Change(kind, snapshots[at].label, ", ".join(sorted(was)), ", ".join(sorted(now)))))
        changes += _choose_nearest(candidates, first)
    return changes


def _choose_nearest(candidates: Sequence[tuple[int, Change]], first: int | None) -> list[Change]:
    if not candidates:
        return []
    return [min(candidates, key=lambda pair: 0 if first is None else abs(pair[0] - first))[1]]


def find_item_changes(snapshots: Sequence[Snapshot], labels: pd.DataFrame, subject: Subject, first: int | None) -> list[Change]:
    """What was asked otherwise from one snapshot to the next: a change each of prompts, truth, metric and panel (which items were asked).

    The one nearest to snapshot `first`; where that is None, the first there is. `labels`: as for `find_differences`.
    """
    by_what: dict[str, list[tuple[int, Change]]] = {}
    for at, (before, after) in enumerate(pairwise(snapshots), start=1):
        if not np.array_equal(before.items, after.items):
            for change in find_differences(before, after, labels, subject):
                by_what.setdefault(change.what, []).append((at, change))
    return [change for candidates in by_what.values() for change in _choose_nearest(candidates, first)]


def find_differences(before: Snapshot, after: Snapshot, labels: pd.DataFrame, subject: Subject) -> list[Change]:
    """How what `after` asked differs from what `before` did.

    `labels`: by item code, the columns `Keys.tested`. A pair that both asked has other prompts when no prompt is asked in both, another truth
    when no truth is; what only one asked is a change of the panel.
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
        differences.append(
            (
                "panel",
                describe_scope(was, subject),
                f"{describe_scope(now, subject)}{_describe_space_changes(was, now, subject.keys)}",
            )
        )
    return [Change(kind, after.label, *words) for kind, *words in differences]


def describe_break(label: str, whats: Sequence[str], subject: Subject) -> str:
    """Why earlier snapshots are not compared with one and those after it. `whats`: of the changes that `find_differences` found with it."""
    second = subject.keys.space[1]
    reasons = {
        subject.truth: f"was scored against other {subject.truths}",
        "prompts": "asked other prompts",
        "panel": f"asked other {subject.keys.noun}s or {second}s",
        "metric": "was scored by another metric",
    }
    return f"{label} {' and '.join(reasons[kind] for kind in whats)}, so earlier snapshots are not compared with it"


def describe_scope(prompts: pd.DataFrame, subject: Subject) -> str:
    """How much was asked: `10 tasks in 2 blueprints of S1, 20 prompts`."""
    first, second = subject.keys.space
    values = sorted(set(prompts[first]), key=subject.in_order)
    items = len(prompts[list(subject.keys.shared_item)].drop_duplicates())
    seconds = len(prompts[[first, second]].drop_duplicates())
    where = ", ".join(values) if len(values) <= _MOST_NAMED else f"{len(values)} {first}s"
    return f"{format_count(items, subject.keys.noun)} in {format_count(seconds, second)} of {where}, {format_count(len(prompts), 'prompt')}"


def _describe_space_changes(was: pd.DataFrame, now: pd.DataFrame, keys: Keys) -> str:
    """What came or went of the space's first level; where nothing did, of the second, and which items."""
    parts = _list_space_changes(was, now, keys.space[:1])
    parts = parts or _list_space_changes(was, now, keys.space) + _list_space_changes(was, now, keys.shared_item)
    return f" ({'; '.join(parts)})" if parts else ""


def _list_space_changes(was: pd.DataFrame, now: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    before, after = (
        set(map("/".join, part[list(columns)].drop_duplicates().itertuples(index=False, name=None))) for part in (was, now)
    )
    changes = {"added": sorted(after - before), "dropped": sorted(before - after)}
    return [f"{word} {list_first_names(names, _MOST_NAMED)}" for word, names in changes.items() if names]
