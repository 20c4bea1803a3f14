"""Drift checks over the `scores` table: which predictions form a series, the rule's verdict on each, and the evidence beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.snapshot_label import snapshot_time
from dtef_pipeline.asking.snapshot_order import among, sort_labels
from dtef_pipeline.drift.changes import format_break
from dtef_pipeline.drift.night import Night, Scores, compute_night
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.rule import DriftVerdict, apply_drift_rule, judge_single_snapshot
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict import Verdict, compute_verdict
from dtef_pipeline.drift.verdict_tables import PARTITION_DRIFT
from dtef_pipeline.identity import digest
from dtef_pipeline.keys import Keys
from dtef_pipeline.text.quantity_words import format_count

Codes = npt.NDArray[np.integer[Any]]

_MEASURED = ("snapshot", "temperature", "draw", "score", "status", "answered_at")


def list_needed_columns(keys: Keys) -> tuple[str, ...]:
    """The columns of `scores` that `drift_checks` reads."""
    left_out = () if keys.left_out is None else (keys.left_out,)
    return (*keys.space, *keys.series, *_list_compared_columns(keys), *_MEASURED, *left_out)


def _list_compared_columns(keys: Keys) -> tuple[str, ...]:
    """The columns that two snapshots within a partition must have in common."""
    return ("metric", "prompt_id", keys.item, "truth_id")


class _Test(NamedTuple):
    """What a snapshot asked, and what its responses were scored against (one truth per item) and by."""

    metrics: tuple[str, ...]
    prompts: tuple[str, ...]
    truths: tuple[tuple[str, str], ...]

    def describe_test_change(self, later: _Test, truths: str) -> str:
        """What a later snapshot did that makes it another test. `truths`: what items are scored against, as people call it."""
        if self.prompts != later.prompts:
            prompts, later_prompts = set(self.prompts), set(later.prompts)
            if later_prompts < prompts:
                return f"asked only {len(later_prompts)} of these {format_count(len(prompts), 'prompt')}"
            return "asked more prompts" if prompts < later_prompts else "asked other prompts"
        return f"was scored {f'against other {truths}' if self.truths != later.truths else 'by another metric'}"


@dataclass(frozen=True, slots=True)
class _Series:
    """Snapshots that asked the same; `order` is their order in time, `ended` why there are no later ones (None: they are the latest)."""

    keys: dict[str, Any]
    prompt_set: str
    values: Scores  # (items, snapshots); empty where there is a single snapshot
    order: list[str]
    rule: DriftVerdict
    ended: str | None

    @property
    def compared(self) -> bool:
        return self.rule.is_comparable


def drift_checks(
    scores: pa.Table,
    subject: Subject,
    *,
    levels: int = 2,
    options: WatchOptions | None = None,
    n_watched: int = 1,
    order: Sequence[str] | None = None,
    clusters: Mapping[str, str] | None = None,
) -> pa.Table:
    """Verdicts with the levels of the space and the columns PARTITION_DRIFT, one row per model variant, way of asking and prompt set.

    `scores`: has the columns `list_needed_columns`. `levels`: the levels of the space that separate series: 2, one series per partition; 1, one
    over all partitions of a first level, with null in the column of the second. `clusters`: as in `subject.query_clusters`; None: each
    item is its own
    cluster. Snapshots are compared when they asked the same prompts and were scored against the same truths by the same metric (one prompt
    set). Rows that the keys leave out are ignored. `n_watched`: how many tables like this one are watched together; all their series share
    `options.alpha` evenly. `order`: the order of all snapshots (`snapshot_order`); None: derived from `scores`.
    """
    options = options or WatchOptions()
    order = sort_labels(_find_first_responses(scores)) if order is None else order
    frame = _build_frame(_select_watched(scores, subject), subject.keys, options)
    index = _Asked(frame, _list_compared_columns(subject.keys))
    entries: list[_Series] = []
    for keys, places in _iterate_groups(frame, (*subject.keys.space[:levels], *subject.keys.series)):
        if index.has_one_snapshot(places):
            entries.append(index.describe_single_snapshot(keys, places))
        else:
            entries += _split_prompt_sets(keys, frame.iloc[places], index, places, subject, order)
    threshold = options.threshold(n_watched * sum(entry.compared for entry in entries))
    rows = _build_rows(entries, _Judge(subject, options, threshold, clusters or {}), n_watched, order)
    return pa.Table.from_pylist(rows, pa.schema([*((level, pa.string()) for level in subject.keys.space), *PARTITION_DRIFT]))


def _find_first_responses(scores: pa.Table) -> dict[str, datetime | None]:
    """By label of a snapshot, when the first response came."""
    firsts = scores.group_by("snapshot").aggregate([("answered_at", "min")])
    return dict(zip(firsts["snapshot"].to_pylist(), firsts["answered_at_min"].to_pylist(), strict=True))


def _select_watched(scores: pa.Table, subject: Subject) -> pa.Table:
    """The rows that a verdict may be about, in their order."""
    with _open_database().cursor() as connection:
        connection.register("scores", scores.select(list(list_needed_columns(subject.keys))))
        return connection.sql(f"SELECT * FROM scores WHERE {subject.watched}").to_arrow_table()


@cache
def _open_database() -> duckdb.DuckDBPyConnection:
    """One for all partitions: to open it takes longer than the query."""
    return duckdb.connect()


def _known(time: Any) -> datetime | None:
    return None if pd.isna(time) else time


def _build_frame(scores: pa.Table, keys: Keys, options: WatchOptions) -> pd.DataFrame:
    """The rows that count; columns that are compared row by row are categories in the order of their labels, which sorts and groups fast."""
    columns = ("snapshot", *_list_compared_columns(keys))
    frame = scores.to_pandas(categories=list(columns))
    for name in columns:
        frame[name] = frame[name].cat.set_categories(sorted(frame[name].cat.categories))
    return _filter_since(frame, options) if options.since else frame


def _filter_since(frame: pd.DataFrame, options: WatchOptions) -> pd.DataFrame:
    """The rows of snapshots that count."""
    named = ["snapshot", "model", "model_variant"]
    firsts = frame.groupby(named, observed=True)["answered_at"].min()
    groups = frame[named].drop_duplicates()
    rows = list(groups.itertuples(index=False, name=None))
    mask = [options.takes(snapshot_time(str(row[0]), _known(firsts.loc[row])), *row[1:]) for row in rows]
    selection = groups[mask]
    return frame if len(selection) == len(groups) else pd.DataFrame(frame.merge(selection))


def _iterate_groups(frame: pd.DataFrame, series: Sequence[str]) -> Iterator[tuple[dict[str, Any], Codes]]:
    """The keys of each series, in their order, and the places of its rows."""
    number = frame.groupby(list(series), sort=True, dropna=False).ngroup().to_numpy()
    order = np.argsort(number, kind="stable")
    places = np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(order) else []
    keys = frame[list(series)].iloc[[rows[0] for rows in places]]
    for values, rows in zip(keys.itertuples(index=False, name=None), places, strict=True):
        yield dict(zip(series, values, strict=True)), rows


class _Asked:
    """What each row of a frame asked, as numbers. Series are nearly always asked the same, so that each distinct test is spelled out once."""

    def __init__(self, frame: pd.DataFrame, columns: Sequence[str]) -> None:
        names = ("snapshot", *columns)
        self._codes: Codes = np.stack([frame[name].cat.codes.to_numpy(np.int64) for name in names], axis=1)
        # The code of what is not there, -1, is the place of the last. A truth without a hash was scored before truths had one.
        self._labels = [np.append(frame[name].cat.categories.to_numpy(dtype=object), "") for name in names]
        self._scored = frame["score"].notna().to_numpy()
        self._timed = frame["answered_at"].notna().to_numpy()
        self._temperature = frame["temperature"].to_numpy(np.float64, na_value=np.nan)
        self._known: dict[bytes, tuple[_Test, str]] = {}

    def has_one_snapshot(self, places: Codes) -> bool:
        snapshots = self._codes[places, 0]
        return bool((snapshots == snapshots[0]).all())

    def describe_single_snapshot(self, keys: dict[str, Any], places: Codes) -> _Series:
        """A series without anything to compare: no score is looked at, but whether there is one."""
        ((label, (_, prompt_set)),) = self.tests(places).items()
        known_places = places[(self._codes[places][:, [2, 3]] >= 0).all(axis=1)]
        item = self._codes[known_places, 2] * len(self._labels[3]) + self._codes[known_places, 3]
        items, scored_items = np.unique(item), np.unique(item[self._scored[known_places]])
        is_timed = bool(self._timed[places].any()) or snapshot_time(label, None) is not None
        rule = judge_single_snapshot(len(items), len(scored_items), is_timed=is_timed, temperature=self.temperature(places))
        return _Series(keys, prompt_set, Scores(pd.DataFrame()), [label], rule, None)

    def temperature(self, places: Codes) -> float | None:
        """That of all rows; None where none or several are known."""
        values = np.unique(self._temperature[places])
        values = values[~np.isnan(values)]
        return float(values[0]) if len(values) == 1 else None

    def tests(self, places: Codes) -> dict[str, tuple[_Test, str]]:
        """Of each snapshot its test, and the digest of that."""
        codes = self._codes[places]
        codes = codes[np.lexsort(codes.T[::-1])]
        codes = codes[np.append(True, (codes[1:] != codes[:-1]).any(axis=1))]
        results = {}
        for rows in np.split(codes, np.flatnonzero(np.diff(codes[:, 0])) + 1):
            key = rows[:, 1:].tobytes()
            if key not in self._known:
                test = self._test(rows[:, 1:])
                self._known[key] = test, digest(*test)
            results[str(self._labels[0][rows[0, 0]])] = self._known[key]
        return results

    def _test(self, codes: Codes) -> _Test:
        metrics, prompts, items, truths = (
            labels[column].tolist() for labels, column in zip(self._labels[1:], codes.T, strict=True)
        )
        pairs = set(zip(items, truths, strict=True))
        return _Test(tuple(sorted(set(metrics))), tuple(sorted(set(prompts))), tuple(sorted(pairs)))


def _split_prompt_sets(
    keys: dict[str, Any], group: pd.DataFrame, index: _Asked, places: Codes, subject: Subject, order: Sequence[str]
) -> list[_Series]:
    """One series per prompt set: snapshots that asked other prompts are another test, not drift."""
    starts = group.groupby("snapshot", observed=True)["answered_at"].min()
    times = {str(label): snapshot_time(str(label), _known(time)) for label, time in starts.items()}
    order = among(order, times)
    tests = index.tests(places)
    labels: dict[str, list[str]] = {}
    for label in order:
        labels.setdefault(tests[label][1], []).append(label)
    entries = []
    for prompt_set, own in labels.items():
        later = order[order.index(own[-1]) + 1 :]
        end = (
            format_break(later[0], tests[own[0]][0].describe_test_change(tests[later[0]][0], subject.truths)) if later else None
        )
        mask = np.ones(len(group), dtype=bool) if len(labels) == 1 else group["snapshot"].isin(own).to_numpy()
        values, rule = _apply_rule(group[mask], times, index.temperature(places[mask]), subject.keys.item)
        entries.append(_Series(keys, prompt_set, values, own, rule, end))
    return entries


def _apply_rule(
    rows: pd.DataFrame, times: dict[str, datetime | None], temperature: float | None, item: str
) -> tuple[Scores, DriftVerdict]:
    """Scores of one prompt set, snapshots in the order of their labels, and the rule's verdict on them."""
    parsed_rows = rows.assign(score=rows["score"].where(rows["status"] == "ok"))
    values, read = (_build_grid(table, item) for table in (rows, parsed_rows))
    return Scores(values, read), apply_drift_rule(values, times, temperature=temperature)


def _build_grid(rows: pd.DataFrame, item: str) -> pd.DataFrame:
    means = rows.groupby(["prompt_id", item, "snapshot"], observed=True)["score"].mean()
    values = means.unstack("snapshot").sort_index(axis=1)  # noqa: PD010 - pivot_table loses snapshots without a score
    values.columns = pd.Index([str(label) for label in values.columns])
    return values


class _Judge(NamedTuple):
    subject: Subject
    options: WatchOptions
    threshold: float
    clusters: Mapping[str, str]


def _build_rows(entries: Sequence[_Series], by: _Judge, n_watched: int, order: Sequence[str]) -> list[dict[str, Any]]:
    """One per series; those that asked the same prompts in the same way stand beside each other."""
    alike: dict[tuple[Any, ...], list[_Series]] = {}
    for entry in entries:
        way = tuple(entry.keys.get(name) for name in (*by.subject.keys.space, *by.subject.keys.asked))
        alike.setdefault((*way, entry.prompt_set), []).append(entry)
    several = sum(len({entry.keys["model"] for entry in series if entry.compared}) > 1 for series in alike.values())
    rows: dict[int, dict[str, Any]] = {}
    for series in alike.values():
        verdicts = {id(entry): _compute_verdict(entry, series, by) for entry in series if entry.compared}
        models = {entry.keys["model"]: verdicts[id(entry)].pairs for entry in series if entry.compared}
        night = compute_night(
            models, order, baseline=by.options.baseline, threshold=by.options.compute_night_threshold(n_watched * several)
        )
        rows |= {id(entry): _build_row(entry, by, verdicts.get(id(entry)), night) for entry in series}
    return [rows[id(entry)] for entry in entries]


def _compute_verdict(entry: _Series, alike: Sequence[_Series], by: _Judge) -> Verdict:
    items = entry.values.policy.index.get_level_values(by.subject.keys.item).tolist()
    clusters = [by.clusters.get(f"{entry.keys[by.subject.keys.space[0]]}/{item}", item) for item in items]
    models = ((peer.keys["model"], peer.values) for peer in alike if peer.compared)
    peers = {name: values for name, values in models if by.options.is_control(entry.keys["model"], name)}
    parsed_scores = entry.values.parsed
    return compute_verdict(
        entry.values.policy[entry.order],
        clusters,
        items=items,
        baseline=by.options.baseline,
        threshold=by.threshold,
        parsed_values=None if parsed_scores is None else parsed_scores[entry.order],
        peers=peers,
    )


def _build_row(entry: _Series, by: _Judge, verdict: Verdict | None, night: Night) -> dict[str, Any]:
    notes = (*verdict.notes, *by.options.describe_missing_controls(entry.keys["model"], verdict.controls)) if verdict else ()
    reason = "; ".join(part for part in (entry.rule.reason, *notes, entry.ended) if part)
    evidence = {**verdict.row(), **night.row()} if verdict else {}
    return {
        **entry.keys,
        **by.subject.named(entry.keys),
        **asdict(entry.rule),
        **evidence,
        "prompt_set": entry.prompt_set,
        "reason": reason,
    }
