"""Accuracy gaps between the groups of an attribute, beside the gaps that equal groups of the same sizes would show.

The best of several noisy means always beats the worst: a gap says something of a model only by what it exceeds the gap that chance makes of
groups which differ in size alone (see `equal_groups` for that null hypothesis).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.cells import BoardOptions
from dtef_pipeline.statistics.permutation import holm, permutations_for
from dtef_pipeline.statistics.ranks import ranks
from dtef_pipeline.statistics.resampling import CONFIDENCE, MIN_CLUSTERS, product, why_none
from dtef_pipeline.survey.boards.equal_groups import Ints, Scores, null_scores, numbered
from dtef_pipeline.survey.boards.schemas import GAPS, QUESTION_GAPS
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.scoring.metrics import Floats

_TIE = 1e-9
"""A null gap that is smaller by rounding alone reaches the real one."""

_NO_CEILINGS = "no ceilings known, so all groups are taken to answer alike: ingest the round again"


def gaps(
    connection: duckdb.DuckDBPyConnection, cells: pd.DataFrame, options: BoardOptions
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables `gaps` and `question_gaps` (schemas GAPS and QUESTION_GAPS), without the attributes that have one segment only.

    `cells` as of `load_cells`, `connection` with `scores`, `survey_responses` and, or not, `reference_scores`. `gap` is the best segment's mean
    score less the worst's, over each one's scored cells of all rounds, 0..1; `expected_gap` its mean between equal groups, `excess` the
    difference of the two, about 0 where groups differ in size alone, below 0 by chance. `expected_low` to `expected_high` hold 95 % of the
    gaps between equal groups; p = (b + 1) / (m + 1) with b of m such gaps at least as large (one-sided), `p_holm` adjusted over the rows of the
    same context level and condition. Of fewer than MIN_CLUSTERS questions neither range nor p: `note` says so.
    """
    scored = cells[cells["score"].notna()].reset_index(drop=True)
    if scored.empty:
        return _table([], GAPS, options), _table([], QUESTION_GAPS, options)
    null = null_scores(connection, scored, options)
    tables = _attribute_gaps(scored, null, options), _question_gaps(scored, null, options)
    if scored["ceiling"].isna().all():
        for table in tables:
            table["note"] = [f"{note}; {_NO_CEILINGS}" if note else _NO_CEILINGS for note in table["note"]]
    return tables


def _attribute_gaps(cells: pd.DataFrame, null: Scores, options: BoardOptions) -> pd.DataFrame:
    by = [*KEYS.series, "attribute"]
    groups = [group for group in _groups(cells, by) if group.several]
    keys = cells.loc[[group.first for group in groups], by].reset_index(drop=True)
    alike = keys.groupby(list(KEYS.asked), observed=True).size()
    sets = permutations_for(int(alike.max())) if groups else 0
    widest = max((len(group.segments) for group in groups), default=0)
    # One set of draws serves all rows: which models and attributes there are besides does not change a row.
    normal = np.random.default_rng(options.seed).standard_normal((widest, sets))
    names = cells["segment"].to_numpy()
    rows: list[dict[str, object]] = []
    for key, group in zip(keys.itertuples(index=False, name=None), groups, strict=True):
        means = group.means(cells["score"].to_numpy()[group.rows])
        rows.append(
            dict(zip(by, key, strict=True))
            | _gap(names, group, means)
            | _expectation(group, np.ptp(means), null[group.rows], normal)
        )
    return _table(_adjusted(rows), GAPS, options)


@dataclass(frozen=True, slots=True)
class _Group:
    """The cells of one model, context level, condition and attribute."""

    rows: Ints  # (cells,): in the order of the frame
    segment: Ints  # (cells,): place in `segments`
    question: Ints  # (cells,): number of its round and question id
    segments: Ints  # (segments,): a row of each
    clusters: int

    @property
    def first(self) -> int:
        return int(self.rows[0])

    @property
    def several(self) -> bool:
        return len(self.segments) > 1

    def means(self, values: Floats) -> Floats:
        """Mean (segments,) of values (cells,)."""
        return np.asarray(np.bincount(self.segment, values) / np.bincount(self.segment))


def _groups(cells: pd.DataFrame, by: list[str]) -> Iterator[_Group]:
    number, segment = numbered(cells, by), numbered(cells, ["segment"])
    question, cluster = numbered(cells, KEYS.shared_item), numbered(cells, ["cluster"])
    order = np.argsort(number, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(number[order])) + 1):
        _, some, places = np.unique(segment[rows], return_index=True, return_inverse=True)
        _, questions = np.unique(question[rows], return_inverse=True)
        yield _Group(rows, places, questions, rows[some], len(np.unique(cluster[rows])))


def _gap(names: npt.NDArray[np.str_], group: _Group, means: Floats) -> dict[str, object]:
    best, worst = int(means.argmax()), int(means.argmin())
    return {
        "best_segment": names[group.segments[best]],
        "worst_segment": names[group.segments[worst]],
        "n_best": np.count_nonzero(ranks(means) == 1),
        "n_worst": np.count_nonzero(ranks(means, highest_first=False) == 1),
        "n_segments": len(means),
        "n_pairs": len(group.rows),
        "best_score": means[best],
        "worst_score": means[worst],
        "gap": means[best] - means[worst],
    }


def _expectation(group: _Group, gap: float, null: Scores, normal: Floats) -> dict[str, object]:
    """The gap between equal groups: segment means are sums over many questions, so they are drawn as normal.

    `null`: (cells, NULL_DRAWS); `normal`: (segments or more, sets).
    """
    center = null.mean(axis=1, dtype=np.float64)
    off = np.zeros((len(group.segments), int(group.question.max()) + 1, null.shape[1]))
    off[group.segment, group.question] = null - center[:, None]
    off = off.reshape(len(off), -1) / np.bincount(group.segment)[:, None]
    # In a draw the segments of a question change places with each other: what one gains another loses, and so they vary together.
    variance, axes = np.linalg.eigh(product(off, off.T) / (null.shape[1] - 1))
    drawn = product(axes * np.sqrt(np.maximum(variance, 0)), normal[: len(off)])
    drawn += group.means(center)[:, None]
    gaps_drawn = drawn.max(axis=0) - drawn.min(axis=0)
    expected = gaps_drawn.mean()
    found: dict[str, object] = {
        "expected_gap": expected,
        "excess": gap - expected,
        "note": why_none(group.clusters, "question"),
    }
    if group.clusters < MIN_CLUSTERS:
        return found
    low, high = np.quantile(gaps_drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    p = (np.count_nonzero(gaps_drawn >= gap - _TIE) + 1) / (len(gaps_drawn) + 1)
    return found | {"expected_low": low, "expected_high": high, "p": p}


def _adjusted(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    if not rows:
        return rows
    frame = pd.DataFrame(rows)
    p = pd.to_numeric(frame.get("p", pd.Series(np.nan, index=frame.index)))
    adjusted = p.groupby([frame[name] for name in KEYS.asked]).transform(lambda column: holm(column.to_numpy()))
    return [row | {"p_holm": value} for row, value in zip(rows, adjusted, strict=True)]


def _question_gaps(cells: pd.DataFrame, null: Scores, options: BoardOptions) -> pd.DataFrame:
    """`gap` and `expected_gap` of each question, cells side by side by question; no test of one question."""
    by = [*KEYS.series, "attribute", *KEYS.shared_item]
    group = numbered(cells, by)
    score = cells["score"].to_numpy()
    order = np.lexsort((np.arange(len(cells)), score, group))
    start = np.flatnonzero(np.diff(group[order], prepend=-1))
    size = np.diff(start, append=len(cells))
    several = size > 1
    worst, best = order[start], order[start + size - 1]
    drawn = np.maximum.reduceat(null[order], start) - np.minimum.reduceat(null[order], start)
    frame = cells.loc[best, by].reset_index(drop=True)
    frame["best_segment"], frame["worst_segment"] = (cells["segment"].to_numpy()[rows] for rows in (best, worst))
    for name, is_best in (("n_best", True), ("n_worst", False)):
        is_end = ranks(score, group, highest_first=is_best) == 1
        frame[name] = np.add.reduceat(is_end[order].astype(np.int64), start)
    frame["n_segments"], frame["best_score"], frame["worst_score"] = size, score[best], score[worst]
    frame["gap"], frame["expected_gap"] = score[best] - score[worst], drawn.mean(axis=1, dtype=np.float64)
    frame["excess"], frame["note"] = frame["gap"] - frame["expected_gap"], ""
    return _table(frame[several], QUESTION_GAPS, options)


def _table(rows: list[dict[str, object]] | pd.DataFrame, schema: pa.Schema, options: BoardOptions) -> pd.DataFrame:
    """The rows with the schema's columns, in the order of the names that they have."""
    frame = pd.DataFrame(rows).assign(targets=options.targets, metric=options.metric, seed=options.seed)
    frame = frame.reindex(columns=schema.names).reset_index(drop=True)
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    numbers = [field.name for field in schema if pa.types.is_floating(field.type)]
    return frame.astype(dict.fromkeys(texts, "str") | dict.fromkeys(numbers, "float64"))
