"""How far a model's score in a segment is from that of other segments on the same questions, given the sample sizes.

Smaller segments score lower with any model, because their answers scatter more around the truth. The loss of a perfect prediction is known:
1 - ceiling. An imperfect prediction loses a share of it: if its distance from the truth and the sample's add in squares, the share is
d(distance) / d(1 - ceiling) = (1 - ceiling) / distance. Scores are compared after adding back this loss.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.boards.cells import BoardSubject
from dtef_pipeline.statistics.cluster_robust import Estimates, count_effective_clusters, estimate_ratios, shared_variance
from dtef_pipeline.statistics.differences import Codes, sum_by_cluster
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.scoring.metrics import Floats

Draws = npt.NDArray[np.floating]

_SQUARED = ("cosine",)
"""Metrics whose distance is a square: a prediction loses as much as a perfect one."""
_DIGITS = 12
"""Decimals of a deviation, so that rounding does not make equal segments differ."""


def add_levels(cells: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Add `level` and `parsed_level` to the scored cells of one model and condition: score and parsed score for a very large sample.

    `read` is the share of the scored draws that were parsed; the others do not change with the answers. If no cell has a ceiling, the
    levels are the scores; otherwise a cell without one has no level.
    """
    read = cells["n_ok"] / cells["n_answered"].where(cells["n_answered"] > 0, 1)
    short, distance = 1 - cells["ceiling"].astype(np.float64), 1 - cells["parsed_score"].astype(np.float64)
    is_known = short.notna() & distance.notna()
    short_total, total = short[is_known].sum(), distance[is_known].sum()
    share = short_total / total if metric not in _SQUARED and total > short_total else 1.0
    loss = share * short if is_known.any() else 0.0
    return cells.assign(read=read, level=cells["score"] + read * loss, parsed_level=cells["parsed_score"] + loss)


def select_comparable_cells(cells: pd.DataFrame, level: str, columns: Sequence[str] = ()) -> pd.DataFrame:
    """Return the cells with a `level` whose question also has one in another segment. A question of two rounds is two questions.

    `columns`: columns in which the other segments must have the same value.
    """
    level_cells = cells[cells[level].notna()]
    together = level_cells.groupby([*columns, *KEYS.shared_item], observed=True, sort=False)[level].transform("size")
    return level_cells[together > 1]


def number_groups(cells: pd.DataFrame, columns: Sequence[str]) -> Codes:
    """Return (cells,) the group of each cell, from 0 in order of appearance. No name may be missing."""
    key = np.zeros(len(cells), dtype=np.int64)
    for name in columns:
        codes = pd.factorize(cells[name])[0]
        key = key * (codes.max(initial=0) + 1) + codes
    return pd.factorize(key)[0].astype(np.int64)


def estimate_segment_deviations(
    cells: pd.DataFrame, level: str, segment: Codes, noise: Draws | None, subject: BoardSubject
) -> Estimates:
    """Return the mean `level` of each segment minus that of the other segments on the same questions, (segments,) each.

    `cells`: one or more from `select_comparable_cells`, with `segment` (cells,) from 0 and `place`, the row of `noise` (cells, replicates),
    the change of the score with other respondents, or None if unknown. The variance is a + b + c. a: the scatter of batteries, by the
    jackknife of whole batteries, minus b. A segment has few batteries, so a is pooled over segments in proportion to 1 / effective
    batteries, and so are the degrees of freedom (analysis of means: Nelson, Wludyka & Copeland 2005). b: the sampling variance of a
    segment's own respondents, which differs between segments (a known sampling variance next to a pooled one: Fay & Herriot 1979). c: the
    part that the same respondents contribute to all batteries (`shared_variance`).
    """
    item, cluster, people = (number_groups(cells, columns) for columns in (KEYS.shared_item, [KEYS.cluster], ["round"]))
    shape = (int(cluster.max()) + 1, int(segment.max()) + 1)
    offsets = np.round(_subtract_others(cells[level].to_numpy(np.float64), item), _DIGITS)
    sums, counts = (sum_by_cluster(cluster, segment, values, shape) for values in (offsets, np.ones(len(offsets))))
    estimates = estimate_ratios(sums, counts)
    sample, shared = np.zeros(shape[1]), np.zeros(shape[1])
    if noise is not None:
        read = cells["read"].to_numpy()[:, None] if level == "parsed_level" else 1.0
        moves = np.apply_along_axis(_subtract_others, 0, noise[cells["place"].to_numpy()] / read, item)
        many, correlation = counts.sum(axis=0), subject.correlation(cells["model"].iloc[:1])[0]
        sample = np.bincount(segment, (moves**2).mean(axis=1)) / many**2
        shared = shared_variance(moves, segment, cluster, people, shape[1], correlation) / many**2
    return _pool_scatter(estimates, count_effective_clusters(counts), sample, shared)


def _pool_scatter(estimates: Estimates, batteries: Floats, sample: Floats, shared: Floats) -> Estimates:
    """Return the estimates with a scatter of batteries pooled over segments, plus each known variance."""
    degrees = np.where(estimates.n_clusters > 1, estimates.degrees, 0)
    variances = np.nan_to_num(estimates.se**2) * batteries
    if not (degrees * variances).any():
        return estimates
    scatter = max(float(degrees @ (variances - sample * batteries) / degrees.sum()), 0.0)
    # The deviations of all segments sum to 0, so one of them is redundant.
    free = max(float(degrees.sum()) * (1 - 1 / len(variances)), 1.0)
    return estimates._replace(se=np.sqrt(scatter / batteries + sample + shared), degrees=np.full(len(variances), free))


def _subtract_others(values: Floats, item: Codes) -> Floats:
    """Return values (cells,) minus the mean of the other cells of the same item."""
    count = np.bincount(item)[item]
    return np.asarray((values - np.bincount(item, values)[item] / count) * count / (count - 1))
