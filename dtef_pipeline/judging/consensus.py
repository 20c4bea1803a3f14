"""The classes that a judge chooses from, and the consensus of several judges: the mean of those that answered, and its bounds for any
answers of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dtef_pipeline.tables import field

CONSENSUS_COLUMNS = (
    field(
        "score",
        pa.float64(),
        "Score of the point, 0-1: higher is better; the mean of the judges that answered, inverted where the criterion is unwanted",
    ),
    field("low", pa.float64(), "Score if every missing draw of every judge were the worst, 0-1; the score if none is missing"),
    field("high", pa.float64(), "Score if every missing draw of every judge were the best, 0-1; the score if none is missing"),
    field("n_judges", pa.int64(), "Judges that were to judge"),
    field("n_answered", pa.int64(), "Judges with a class that could be read, in one of their draws at least"),
    field("partial", pa.bool_(), "Flag: true where there is a score although a draw of a judge is missing"),
    field("inverted", pa.bool_(), "Flag: true where the criterion is unwanted, so that the score is 1 minus the mean"),
    field("reason", pa.string(), "Reasons why there is no score; null: there is one"),
)
"""Columns in addition to the keys of a point."""

_Floats = npt.NDArray[np.float64]
_Places = npt.NDArray[np.int64]


def compute_consensus(judgements: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return one row per point: the keys, and CONSENSUS_COLUMNS, in the order of each point's first judgement.

    The mean is over judges, after averaging each judge's readable draws. A point's numbers do not depend on the order of rows, to the last
    bit.

    Args:
        judgements: one row per planned (point, judge, draw), with the columns `judge` (its name), `score` (0 to 1; null: no
            class), `reason` (null: there is a score) and `inverted` (whether the criterion is unwanted, one value per point).
        keys: the columns that identify points; null is a value like any other.
    """
    point, first = _number_groups(judgements, keys)
    vote, first_vote = _number_groups(judgements, [*keys, "judge"])
    points, vote_points = len(first), point[first_vote]
    score = judgements["score"].to_numpy().astype(float)
    minima, best = (_mean_by_group(np.nan_to_num(score, nan=missing), vote, len(first_vote)) for missing in (0.0, 1.0))
    means = _mean_by_group(score, vote, len(first_vote))
    n_answered = np.bincount(vote_points, ~np.isnan(means), points).astype(np.int64)
    low, mean, high = (_mean_by_group(values, vote_points, points) for values in (minima, means, best))
    missing = np.bincount(point, np.isnan(score), points) > 0
    is_inverted = judgements["inverted"].to_numpy()[first].astype(bool)
    columns = {
        "score": np.where(is_inverted, 1 - mean, mean),
        "low": np.where(is_inverted, 1 - high, low),
        "high": np.where(is_inverted, 1 - low, high),
        "n_judges": np.bincount(vote_points, minlength=points),
        "n_answered": n_answered,
        "partial": missing & (n_answered > 0),
        "inverted": is_inverted,
        "reason": _collect_reasons(judgements["reason"], point, n_answered == 0),
    }
    rows = judgements.select(list(keys)).take(pa.array(first))
    for column in CONSENSUS_COLUMNS:
        rows = rows.append_column(column, pa.array(columns[column.name], column.type, from_pandas=True))
    return rows


def _number_groups(rows: pa.Table, names: Sequence[str]) -> tuple[_Places, _Places]:
    """Return the number of each row's group, and the first row of each group. Groups are numbered by their first row."""
    groups = rows.select(list(names)).to_pandas().groupby(list(names), dropna=False, sort=False)
    number = groups.ngroup().to_numpy(dtype=np.int64)
    return number, np.unique(number, return_index=True)[1].astype(np.int64)


def _mean_by_group(values: _Floats, group: _Places, groups: int) -> _Floats:
    """Return the mean of each group without NaN; NaN if nothing is left. Values are added in ascending order, for any row order."""
    order = np.argsort(values, kind="stable")
    order = order[: len(values) - int(np.isnan(values).sum())]
    counts = np.bincount(group[order], minlength=groups)
    sums = np.bincount(group[order], values[order], groups)
    means = np.full(groups, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _collect_reasons(reason: pa.ChunkedArray, point: _Places, is_unscored: npt.NDArray[np.bool_]) -> list[str | None]:
    """Return, for each unscored point, the distinct reasons of its judgements in alphabetical order."""
    reasons: dict[int, set[str]] = {int(place): set() for place in np.flatnonzero(is_unscored)}
    rows = np.flatnonzero(is_unscored[point])
    for place, text in zip(point[rows].tolist(), reason.take(pa.array(rows)).to_pylist(), strict=True):
        if text is not None:
            reasons[place].add(text)
    return [", ".join(sorted(reasons[place])) or None if place in reasons else None for place in range(len(is_unscored))]


class JudgedClass(NamedTuple):
    """One class: judges are shown its name and its meaning, never its number."""

    name: str
    number: float
    """0 (the criterion is not met) to 1 (it is met in full)."""
    meaning: str


@dataclass(frozen=True)
class ClassScale:
    """The classes of one scale, in ascending order of numbers."""

    classes: tuple[JudgedClass, ...]

    @property
    def size(self) -> int:
        """The number of classes."""
        return len(self.classes)

    @cached_property
    def numbers(self) -> dict[str, float]:
        """The number of each class, by name."""
        return {entry.name: entry.number for entry in self.classes}

    @cached_property
    def class_lines(self) -> str:
        """The classes as shown to judges, one per line."""
        return "\n".join(f"- {entry.name}: {entry.meaning}" for entry in self.classes)


FIVE_CLASSES = ClassScale(
    (
        JudgedClass("CLASS_UNMET", 0.0, "The criterion is not met."),
        JudgedClass("CLASS_PARTIALLY_MET", 0.25, "The criterion is partially met."),
        JudgedClass("CLASS_MODERATELY_MET", 0.5, "The criterion is moderately met."),
        JudgedClass("CLASS_MAJORLY_MET", 0.75, "The criterion is mostly met."),
        JudgedClass("CLASS_EXACTLY_MET", 1.0, "The criterion is fully met."),
    )
)
"""The usual scale: five classes at equal distances (Weval methodology, section 4.2)."""
TEN_CLASSES = ClassScale(
    (
        JudgedClass("CLASS_UTTERLY_UNMET", 0.0, "The text contradicts the criterion."),
        JudgedClass("CLASS_UNMET", 0.001, "The criterion is not met."),
        JudgedClass("CLASS_TRACE", 0.125, "There is no more than a hint of what the criterion asks for."),
        JudgedClass("CLASS_SLIGHT", 0.25, "The criterion is met to a slight degree."),
        JudgedClass("CLASS_PARTIAL", 0.375, "The criterion is met in part, and important elements are missing."),
        JudgedClass("CLASS_MODERATE", 0.5, "The criterion is met to a moderate degree, with notable gaps."),
        JudgedClass("CLASS_SUBSTANTIAL", 0.625, "Most of what matters in the criterion is there."),
        JudgedClass("CLASS_MAJOR", 0.75, "The criterion is met but for minor omissions."),
        JudgedClass("CLASS_VERY_NEARLY", 0.875, "The criterion is met but for details that hardly count."),
        JudgedClass("CLASS_EXACT", 1.0, "The criterion is met exactly and in full."),
    )
)
"""Upstream's finer scale, with its names and numbers, for comparison with upstream results on it."""
CLASS_SCALES = {5: FIVE_CLASSES, 10: TEN_CLASSES}
"""The scales by their number of classes."""
USUAL_SCALE = FIVE_CLASSES.size
