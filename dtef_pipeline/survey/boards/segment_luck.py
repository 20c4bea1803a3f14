"""How far the mean scores of equal segments move, and move together, by chance.

Three parts of chance. Which group has which answers and predictions (see `equal_groups`): the questions of a battery belong together, so that
whole batteries change places; how much more batteries scatter than as many single questions would is estimated from the scores, and known by
so many degrees of freedom. And the respondents, who are the same people in all questions: what their sample does to a segment's batteries has
the correlation PEOPLE.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dtef_pipeline.statistics.resampling import product
from dtef_pipeline.survey.scoring.metrics import Floats

Ints = npt.NDArray[np.int64]
Draws = npt.NDArray[np.floating]

PEOPLE = 0.01
"""Correlation of what one sample of people does to the scores of a segment in two batteries of a round."""
_FEWEST = 1.0
"""Degrees of freedom that are left in any case."""


class Layout(NamedTuple):
    """Where the cells of some segments stand, each (cells,) and numbered from 0."""

    segment: Ints
    question: Ints  # of a round: one cell in each segment
    cluster: Ints  # the battery of the question
    round: Ints


class Luck(NamedTuple):
    """Of the means of equal segments: where each lies on average, how they vary together, and how well that is known."""

    center: Floats  # (segments,)
    covariance: Floats  # (segments, segments)
    freedom: float  # infinite where every question stands alone


def luck(layout: Layout, score: Floats, null: Draws, noise: Draws | None) -> Luck:
    """Of `score` (cells,) with `null` scores (cells, draws) and deviations `noise` (cells, replicates), 0 on average; None: not known."""
    cells = np.bincount(layout.segment)
    center = null.mean(axis=1, dtype=np.float64)
    # A draw is the same turn for all questions, so that in a battery all of them change places together.
    of_batteries, of_questions = (
        _summed(layout.segment, block, null - center[:, None]) for block in (layout.cluster, layout.question)
    )
    moved = of_batteries.reshape(len(cells), -1) / cells[:, None]
    covariance = product(moved, moved.T) / (null.shape[1] - 1)
    off = score - center
    batteries = _scatter(layout.segment, layout.cluster, off, of_batteries)
    questions = _scatter(layout.segment, layout.question, off, of_questions)
    factor = batteries / questions if questions > 0 else 1.0
    of_people = _same_people(layout, noise) / cells**2 if noise is not None else np.zeros(len(cells))
    means = np.bincount(layout.segment, center) / cells
    return Luck(means, factor * covariance + np.diag(of_people), _freedom(layout, of_batteries))


def _scatter(segment: Ints, block: Ints, off: Floats, moved: Floats) -> float:
    """How many times as much the blocks' sums scatter about their segment's mean as in draws `moved` (segments, blocks, draws); 0: not known."""
    segments, blocks, draws = moved.shape
    place = segment * blocks + block
    sums, count = (
        np.bincount(place, weights, segments * blocks).reshape(segments, blocks) for weights in (off, np.ones(len(off)))
    )
    share = count / count.sum(axis=1, keepdims=True)
    squares = ((sums - share * sums.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
    variance = (moved**2).sum(axis=2) / (draws - 1)
    # What the squares are on average, the mean being made of the same sums.
    wanted = (variance * (1 - 2 * share)).sum(axis=1) + (share**2).sum(axis=1) * variance.sum(axis=1)
    known = wanted > 0
    return float((squares[known] / wanted[known]).mean()) if known.any() else 0.0


def _freedom(layout: Layout, moved: Floats) -> float:
    """Degrees of freedom of the batteries' scatter: as many as the sum of so many squares has (Satterthwaite 1946), in each segment but one."""
    _, question = np.unique(layout.question, return_index=True)
    several = np.bincount(layout.cluster[question]) > 1
    variance = (moved**2).sum(axis=2)
    squares = (variance[:, several] ** 2).sum(axis=1)
    if not squares.any():
        return np.inf
    return max(float((len(moved) - 1) * (variance.sum(axis=1) ** 2).sum() / squares.sum()), _FEWEST)


def _same_people(layout: Layout, noise: Draws) -> Floats:
    """Covariance between the batteries' noise in each segment's sum, (segments,)."""
    rounds = int(layout.round.max()) + 1
    variance = (_summed(layout.segment * rounds + layout.round, layout.cluster, noise) ** 2).mean(axis=2)
    between = np.sqrt(variance).sum(axis=1) ** 2 - variance.sum(axis=1)
    of_segment = np.zeros((int(layout.segment.max()) + 1) * rounds)
    of_segment[: len(between)] = between
    return np.asarray(PEOPLE * of_segment.reshape(-1, rounds).sum(axis=1))


def _summed(row: Ints, column: Ints, values: Draws) -> Floats:
    """Sum of `values` (cells, draws) at each row and column, (rows, columns, draws)."""
    rows, columns = int(row.max()) + 1, int(column.max()) + 1
    place = row * columns + column
    order = np.argsort(place, kind="stable")
    start = np.flatnonzero(np.diff(place[order], prepend=-1))
    sums = np.zeros((rows * columns, values.shape[1]))
    sums[place[order[start]]] = np.add.reduceat(values[order], start, axis=0, dtype=np.float64)
    return sums.reshape(rows, columns, -1)
