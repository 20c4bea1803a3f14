"""Intervals of board rows, with the family's measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.boards.board_subject import Noise
from dtef_pipeline.boards.cells import BoardOptions, identify
from dtef_pipeline.boards.ratios import Grid, build_ratio_grid
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.cluster_robust import Estimates, Floats, explain_missing


class Measures(NamedTuple):
    """A family's further columns and notes for the rows of a board."""

    columns: Mapping[str, Floats]  # (rows,) each
    notes: Sequence[Sequence[str]]  # (rows,): what is missing and why


def board_intervals(cells: pd.DataFrame, noise: Noise | None, group_by: Sequence[str], options: BoardOptions) -> pd.DataFrame:
    """Return one row per group, setting and model variant of `cells` (from `load_cells`), with the subject's `columns`.

    `group_by`: columns of the group, empty for the overall board. `noise`: of the same cells; None for intervals only by clusters.

    `score_low`, `score_high`: 95 % interval of the mean score. `parsed_score`: mean over parsed draws. The subject's `items`: distinct
    items with a score; `independent`: clusters with one. `note`: what is missing and why. Further columns come from the subject's
    `measures`.
    """
    subject = options.subject
    names = [*group_by, *subject.keys.asked, *MODEL]
    if not len(cells):
        return pd.DataFrame(columns=[*names, *subject.columns])
    condition, conditions = identify(cells, subject.keys.asked)
    frames = []
    for code in range(len(conditions)):
        rows = np.flatnonzero(condition == code)
        part, part_noise = (
            (cells, noise) if len(conditions) == 1 else (cells.iloc[rows], None if noise is None else noise.select_cells(rows))
        )
        frames.append(_compute_intervals(build_ratio_grid(options, part, part_noise, names)))
    return pd.concat(frames, ignore_index=True)


def _compute_intervals(grid: Grid) -> pd.DataFrame:
    subject = grid.subject
    score = grid.column("score")
    has_score = np.isfinite(score)
    clusters = grid.count_distinct(["cluster"], has_score)
    low, high = score_interval(grid)
    parsed_means = grid.mean(grid.column("parsed_score"))
    measures = subject.measures(grid)
    notes = (
        [explain_missing(int(n), subject.keys.cluster_noun), "no answer could be read" if n and np.isnan(mean) else "", *extra]
        for n, mean, extra in zip(clusters, parsed_means, measures.notes, strict=True)
    )
    columns: dict[str, npt.NDArray[np.generic]] = {
        "score_low": low,
        "score_high": high,
        "parsed_score": parsed_means,
        subject.items: grid.count_distinct(["same_item"], has_score),
        subject.independent: clusters,
        **measures.columns,
        "note": np.array(["; ".join(filter(None, reasons)) for reasons in notes], dtype=object),
    }
    return pd.concat([grid.rows, pd.DataFrame({name: columns[name] for name in subject.columns})], axis=1)


def score_interval(grid: Grid) -> tuple[Floats, Floats]:
    """Return the 95 % interval of the mean score of each row, (rows,), within 0-1; NaN if there are too few clusters."""
    if grid.is_of_items:
        nans = np.full(len(grid.rows), np.nan)
        return nans, nans
    score = grid.column("score")
    return clip_to_unit(grid.estimate(score, np.ones(len(score)), lambda _, noise: [(1, noise.score, None)]))


def clip_to_unit(score: Estimates) -> tuple[Floats, Floats]:
    """Return the ends of 95 % intervals of scores, clipped to 0-1."""
    low, high = score.interval()
    return np.maximum(low, 0), np.minimum(high, 1)
