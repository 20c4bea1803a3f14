"""Accuracy gaps between the groups of an attribute, beside the gaps that equal groups of the same sizes would show.

The best of several noisy means always beats the worst: a gap says something of a model only by what it exceeds the gap that chance makes of
groups which differ in size alone (see `equal_groups` for that null hypothesis).
"""

from __future__ import annotations

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.aggregation.cells import BoardOptions
from dtef_pipeline.aggregation.equal_groups import ASKED, null_scores
from dtef_pipeline.aggregation.permutation import holm, permutations_for
from dtef_pipeline.aggregation.published import GAPS, QUESTION_GAPS
from dtef_pipeline.aggregation.resampling import CONFIDENCE, MIN_CLUSTERS, why_none
from dtef_pipeline.scoring.metrics import Floats

_TIE = 1e-9
"""A null gap that is smaller by rounding alone reaches the real one."""


def gaps(
    connection: duckdb.DuckDBPyConnection, cells: pd.DataFrame, options: BoardOptions
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables `gaps` and `question_gaps` (schemas GAPS and QUESTION_GAPS), an attribute with one segment left out.

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
    return _attribute_gaps(scored, null, options), _question_gaps(scored, null, options)


def _attribute_gaps(cells: pd.DataFrame, null: npt.NDArray[np.float32], options: BoardOptions) -> pd.DataFrame:
    segments = _segment_means(cells, null)
    by = [*ASKED, "attribute"]
    sizes = segments.groupby(by, observed=True, sort=False)["segment"].transform("size")
    segments = segments[sizes > 1]
    groups = [group for _, group in segments.groupby(by, observed=True, sort=False)]
    alike = segments[by].drop_duplicates().groupby(["context_level", "condition"], observed=True).size()
    sets = permutations_for(int(alike.max())) if groups else 0
    widest = max((len(group) for group in groups), default=0)
    # One set of draws serves all rows: which models and attributes there are besides does not change a row.
    normal = np.random.default_rng(options.seed).standard_normal((widest, sets)).T
    rows = [dict(group.iloc[0][by]) | _gap(group) | _expectation(group, normal) for group in groups]
    return _table(_adjusted(rows), GAPS, options)


def _segment_means(cells: pd.DataFrame, null: npt.NDArray[np.float32]) -> pd.DataFrame:
    """Of each segment, over all rounds: mean `score`, `n_pairs`, mean and standard deviation of that mean between equal groups.

    `n_questions` is the attribute's number of different questions.
    """
    columns = cells[[*ASKED, "attribute", "segment", "score"]].assign(
        null_mean=null.mean(axis=1, dtype=np.float64), null_variance=null.var(axis=1, ddof=1, dtype=np.float64)
    )
    grouped = columns.groupby([*ASKED, "attribute", "segment"], observed=True, sort=False)
    means = grouped[["score", "null_mean"]].mean().assign(n_pairs=grouped.size(), variance=grouped["null_variance"].sum())
    means["null_sd"] = np.sqrt(means["variance"]) / means["n_pairs"]
    questions = cells.groupby([*ASKED, "attribute"], observed=True, sort=False)["cluster"].nunique().rename("n_questions")
    return means.join(questions).reset_index()


def _gap(segments: pd.DataFrame) -> dict[str, object]:
    names, score = segments["segment"].to_list(), segments["score"].to_numpy()
    best, worst = int(score.argmax()), int(score.argmin())
    return {
        "best_segment": names[best],
        "worst_segment": names[worst],
        "n_segments": len(names),
        "n_pairs": int(segments["n_pairs"].sum()),
        "best_score": score[best],
        "worst_score": score[worst],
        "gap": score[best] - score[worst],
    }


def _expectation(segments: pd.DataFrame, normal: Floats) -> dict[str, object]:
    """The gap between equal groups: segment means are sums over many questions, so they are drawn as normal."""
    questions = int(segments["n_questions"].iloc[0])
    means = segments["null_mean"].to_numpy() + segments["null_sd"].to_numpy() * normal[:, : len(segments)]
    drawn = means.max(axis=1) - means.min(axis=1)
    gap, expected = np.ptp(segments["score"].to_numpy()), drawn.mean()
    found: dict[str, object] = {"expected_gap": expected, "excess": gap - expected, "note": why_none(questions)}
    if questions < MIN_CLUSTERS:
        return found
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    p = (np.count_nonzero(drawn >= gap - _TIE) + 1) / (len(drawn) + 1)
    return found | {"expected_low": low, "expected_high": high, "p": p}


def _adjusted(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    if not rows:
        return rows
    frame = pd.DataFrame(rows)
    p = pd.to_numeric(frame.get("p", pd.Series(np.nan, index=frame.index)))
    adjusted = p.groupby([frame["context_level"], frame["condition"]]).transform(lambda column: holm(column.to_numpy()))
    return [row | {"p_holm": value} for row, value in zip(rows, adjusted, strict=True)]


def _question_gaps(cells: pd.DataFrame, null: npt.NDArray[np.float32], options: BoardOptions) -> pd.DataFrame:
    """`gap` and `expected_gap` of each question, cells side by side by question; no test of one question."""
    by = [*ASKED, "attribute", "round", "question_id"]
    group = cells.groupby(by, observed=True, sort=False).ngroup().to_numpy()
    score = cells["score"].to_numpy()
    order = np.lexsort((np.arange(len(cells)), score, group))
    start = np.flatnonzero(np.diff(group[order], prepend=-1))
    size = np.diff(start, append=len(cells))
    several = size > 1
    worst, best = order[start], order[start + size - 1]
    drawn = np.maximum.reduceat(null[order], start) - np.minimum.reduceat(null[order], start)
    frame = cells.loc[best, by].reset_index(drop=True)
    frame["best_segment"], frame["worst_segment"] = (cells["segment"].to_numpy()[rows] for rows in (best, worst))
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
