"""Changes of a series: its responses, parse rate, served model or items. Each is described in self-contained words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from dtef_pipeline.drift.evidence import RESOLUTION
from dtef_pipeline.drift.history import Floats, Snapshot, parse_rate
from dtef_pipeline.drift.paired import compute_known_means
from dtef_pipeline.drift.subject import Subject
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
