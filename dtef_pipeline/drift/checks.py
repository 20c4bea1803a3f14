"""Drift checks over the `scores` table: which predictions form a series, the rule's verdict on each, and the evidence beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.drift.judged import judged, place_in_time
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.rule import DriftVerdict, drift_verdict, of_one_snapshot, snapshot_time
from dtef_pipeline.drift.words import place_words
from dtef_pipeline.identity import digest
from dtef_pipeline.tables import DRIFT_CHECKS

Codes = npt.NDArray[np.integer[Any]]

SEGMENT_SERIES = ("round", "segment", "model", "model_variant", "context_level", "condition")
ROUND_SERIES = ("round", "model", "model_variant", "context_level", "condition")
COLUMNS = (
    *SEGMENT_SERIES,
    "snapshot",
    "temperature",
    "prompt_id",
    "question_id",
    "draw",
    "score",
    "answered_at",
    "circular",
    "truth_id",
    "metric",
)
_ASKED = ("metric", "prompt_id", "question_id", "truth_id")


class _Test(NamedTuple):
    """What a snapshot asked, and what its answers were scored against (a truth a question) and by."""

    metrics: tuple[str, ...]
    prompts: tuple[str, ...]
    truths: tuple[tuple[str, str], ...]

    def unlike(self, later: _Test) -> str:
        """What makes a later snapshot another test."""
        if self.prompts != later.prompts:
            return "other prompts"
        return "survey answers changed" if self.truths != later.truths else "scored by another metric"


@dataclass(frozen=True, slots=True)
class _Series:
    """The snapshots of one prompt set; `order` is their order in time, `ended` why the set has no later ones (None: it has the latest)."""

    keys: dict[str, Any]
    prompt_set: str
    values: pd.DataFrame  # (items, snapshots) scores; empty where there is a single snapshot
    order: list[str]
    rule: DriftVerdict
    ended: str | None

    @property
    def compared(self) -> bool:
        return self.rule.may_be_judged


def drift_checks(
    scores: pa.Table, *, series: Sequence[str] = SEGMENT_SERIES, options: WatchOptions | None = None, watched: int = 1
) -> pa.Table:
    """Verdicts a (segment, model variant, context level, condition, prompt set); for `ROUND_SERIES` over all segments of a round at once.

    `scores`: rows of schema SCORES (the columns `COLUMNS` suffice). Snapshots are compared when they asked the same prompts and were scored
    against the same survey answers by the same metric (one prompt set); circular questions are left out. In round series the column
    `segment` is null. `watched`: how many tables like this one are watched together; all their series share `options.alpha` evenly.
    """
    options = options or WatchOptions()
    frame = _frame(scores, options)
    asked = _Asked(frame)
    found: list[_Series] = []
    for keys, places in _groups(frame, series):
        if asked.has_one_snapshot(places):
            found.append(asked.of_one_snapshot(keys, places))
        else:
            found += _prompt_sets(keys, frame.iloc[places], asked, places)
    threshold = options.threshold(watched * sum(one.compared for one in found))
    rows = [_row(one, options.baseline, threshold) for one in found]
    return pa.table({name: [row.get(name) for row in rows] for name in DRIFT_CHECKS.names}, schema=DRIFT_CHECKS)


def _frame(scores: pa.Table, options: WatchOptions) -> pd.DataFrame:
    """The rows that count; columns that are compared row by row are categories in the order of their labels, which sorts and groups fast."""
    compared = ("snapshot", *_ASKED)
    frame = scores.select(list(COLUMNS)).filter(pc.invert(pc.field("circular"))).to_pandas(categories=list(compared))
    for name in compared:
        frame[name] = frame[name].cat.set_categories(sorted(frame[name].cat.categories))
    asked = frame[["snapshot", "model", "model_variant"]].drop_duplicates()
    taken = asked[[options.takes(*one) for one in asked.itertuples(index=False)]]
    return frame if len(taken) == len(asked) else pd.DataFrame(frame.merge(taken))


def _groups(frame: pd.DataFrame, series: Sequence[str]) -> Iterator[tuple[dict[str, Any], Codes]]:
    """The keys of each series, in their order, and the places of its rows."""
    number = frame.groupby(list(series), sort=True, dropna=False).ngroup().to_numpy()
    order = np.argsort(number, kind="stable")
    places = np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(order) else []
    keys = frame[list(series)].iloc[[rows[0] for rows in places]]
    for values, rows in zip(keys.itertuples(index=False, name=None), places, strict=True):
        yield dict(zip(series, values, strict=True)), rows


class _Asked:
    """What each row of a frame asked, as numbers. Series are nearly always asked the same, so that each distinct test is spelled out once."""

    def __init__(self, frame: pd.DataFrame) -> None:
        names = ("snapshot", *_ASKED)
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

    def of_one_snapshot(self, keys: dict[str, Any], places: Codes) -> _Series:
        """A series without anything to compare: no score is looked at, but whether there is one."""
        ((label, (_, prompt_set)),) = self.tests(places).items()
        known = places[(self._codes[places][:, [2, 3]] >= 0).all(axis=1)]
        item = self._codes[known, 2] * len(self._labels[3]) + self._codes[known, 3]
        items, scored = np.unique(item), np.unique(item[self._scored[known]])
        is_timed = bool(self._timed[places].any()) or snapshot_time(label, None) is not None
        rule = of_one_snapshot(len(items), len(scored), is_timed=is_timed, temperature=self.temperature(places))
        return _Series(keys, prompt_set, pd.DataFrame(), [label], rule, None)

    def temperature(self, places: Codes) -> float | None:
        """That of all rows; None where none or several are known."""
        found = np.unique(self._temperature[places])
        found = found[~np.isnan(found)]
        return float(found[0]) if len(found) == 1 else None

    def tests(self, places: Codes) -> dict[str, tuple[_Test, str]]:
        """Of each snapshot its test, and the digest of that."""
        codes = self._codes[places]
        codes = codes[np.lexsort(codes.T[::-1])]
        codes = codes[np.append(True, (codes[1:] != codes[:-1]).any(axis=1))]
        found = {}
        for rows in np.split(codes, np.flatnonzero(np.diff(codes[:, 0])) + 1):
            asked = rows[:, 1:].tobytes()
            if asked not in self._known:
                test = self._test(rows[:, 1:])
                self._known[asked] = test, digest(*test)
            found[str(self._labels[0][rows[0, 0]])] = self._known[asked]
        return found

    def _test(self, codes: Codes) -> _Test:
        metrics, prompts, questions, truths = (
            labels[column].tolist() for labels, column in zip(self._labels[1:], codes.T, strict=True)
        )
        pairs = set(zip(questions, truths, strict=True))
        return _Test(tuple(sorted(set(metrics))), tuple(sorted(set(prompts))), tuple(sorted(pairs)))


def _prompt_sets(keys: dict[str, Any], group: pd.DataFrame, asked: _Asked, places: Codes) -> list[_Series]:
    """A series a prompt set: snapshots that asked other prompts are another test, not drift."""
    answered = group.groupby("snapshot", observed=True)["answered_at"].min()
    times = {str(label): snapshot_time(str(label), None if pd.isna(time) else time) for label, time in answered.items()}
    order = sorted(times, key=lambda label: place_in_time(label, times[label]))
    tests = asked.tests(places)
    labels: dict[str, list[str]] = {}
    for label in order:
        labels.setdefault(tests[label][1], []).append(label)
    found = []
    for prompt_set, own in labels.items():
        later = order[order.index(own[-1]) + 1 :]
        ended = f"{tests[own[0]][0].unlike(tests[later[0]][0])} since {later[0]}: not comparable" if later else None
        chosen = np.ones(len(group), dtype=bool) if len(labels) == 1 else group["snapshot"].isin(own).to_numpy()
        values, rule = _ruled(group[chosen], times, asked.temperature(places[chosen]))
        found.append(_Series(keys, prompt_set, values, own, rule, ended))
    return found


def _ruled(
    rows: pd.DataFrame, times: dict[str, datetime | None], temperature: float | None
) -> tuple[pd.DataFrame, DriftVerdict]:
    """Scores (items, snapshots) of one prompt set, snapshots in the order of their labels, and the rule's verdict on them."""
    means = rows.groupby(["prompt_id", "question_id", "snapshot"], observed=True)["score"].mean()
    values = means.unstack("snapshot").sort_index(axis=1)  # noqa: PD010 - pivot_table loses nights without a score
    values.columns = pd.Index([str(label) for label in values.columns])
    return values, drift_verdict(values, times, temperature=temperature)


def _row(one: _Series, baseline: int, threshold: float) -> dict[str, Any]:
    rule = asdict(one.rule)
    found = None
    if one.compared:
        questions = one.values.index.get_level_values("question_id").tolist()
        found = judged(one.values[one.order], questions, baseline=baseline, threshold=threshold)
    reason = "; ".join(part for part in (one.rule.reason, *(found.notes if found else ()), one.ended) if part)
    evidence = found.columns if found else {}
    return {**one.keys, **rule, **evidence, "n_prompts": one.rule.n_items, "prompt_set": one.prompt_set, "reason": reason}


def headline(checks: pa.Table) -> str:
    """What a reader should know first: the largest drift (model, direction, size, since when), else what to watch, else what was compared.

    The largest is by its shift; among series to watch by the range that the rule looks at.
    """
    rows = checks.to_pylist()
    drifted = [row for row in rows if row["verdict"] == "drift"]
    watched = [row for row in rows if row["verdict"] == "watch"]
    if drifted:
        worst = max(drifted, key=lambda row: (abs(row["shift"]), row["model"]))
        return (
            f"Drift in {len(drifted)} of {len(rows)} series. Largest: {_where(worst)}, {worst['direction']} by "
            f"{abs(worst['shift']):.4f} since {worst['first_snapshot']}."
            + (f" {len(watched)} more to watch." if watched else "")
        )
    if watched:
        worst = max(watched, key=lambda row: (row["gap"] or 0, row["model"]))
        size = "" if worst["gap"] is None else f", {worst['lowest']:.4f} to {worst['highest']:.4f}"
        where = f". Compare snapshots {worst['lowest_snapshot']} and {worst['highest_snapshot']}" if size else ""
        return f"No drift; {len(watched)} of {len(rows)} series to watch. Largest: {_where(worst)}{size}{where}."
    compared = sum(row["verdict"] is not None for row in rows)
    if compared and all(row["log10_e"] is None for row in rows if row["verdict"] is not None):
        return f"Too early to say: the evidence needs more snapshots ({compared} of {len(rows)} series could be compared)."
    if not compared:
        return f"Nothing could be compared yet ({len(rows)} series)."
    return f"No drift: {compared} of {len(rows)} series could be compared."


def _where(row: dict[str, Any]) -> str:
    return f"{row['model']}{place_words(row)} at context {row['context_level']}"
