"""How far the mean scores of equal segments move, and move together, by chance.

Two parts of chance. Which group has which answers and predictions (see `equal_groups`): the questions of a battery belong together, so that
whole batteries change places, and how far batteries really scatter in a segment says how large such chance is, with so many degrees of freedom.
And the respondents, who are the same people in all questions: what their sample does to questions of different batteries correlates
as `people_correlation` says.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.boards.scored import Scored
from dtef_pipeline.statistics.resampling import product
from dtef_pipeline.statistics.shared_noise import shared_variance
from dtef_pipeline.survey.scoring.metrics import Floats

Ints = npt.NDArray[np.int64]
Draws = npt.NDArray[np.floating]

HALF = 0.5
"""Of the correlation that boards reckon with. There it makes intervals that are rather too wide than too narrow; a test has to be neither.
Where people are known (simulated worlds, docs/statistics.md) noise of the second order correlates by half as much between countries."""
_FEWEST = 1.0
"""Degrees of freedom that are left in any case."""


class Cells(NamedTuple):
    """Where the cells of some segments stand, each (cells,) and numbered from 0."""

    segment: Ints
    cluster: Ints
    round: Ints


class CellDraws(NamedTuple):
    """What is known of each cell besides its score."""

    null: Draws  # (cells, draws): its scores in equal groups
    noise: Draws | None  # (cells, replicates): what its respondents' sample does to it, 0 on average; None: not known
    ceiling: Floats  # (cells,): mean score of a perfect prediction; NaN: not known
    people: float = 0.0  # correlation of the noise of two questions of a round, of different batteries

    def of(self, rows: Ints | npt.NDArray[np.bool_]) -> CellDraws:
        return self._replace(
            null=self.null[rows], noise=None if self.noise is None else self.noise[rows], ceiling=self.ceiling[rows]
        )


class Luck(NamedTuple):
    """Of the means of equal segments: where each lies on average, how they vary together, and how well that is known."""

    center: Floats  # (segments,)
    covariance: Floats  # (segments, segments)
    freedom: float


def luck(layout: Cells, score: Floats, evidence: CellDraws) -> Luck:
    """Of `score` (cells,), given what is known of each cell."""
    cells, null = np.bincount(layout.segment), evidence.null
    center = null.mean(axis=1, dtype=np.float64)
    # A draw is the same turn for all questions, so that in a battery all of them change places together.
    off = null - center[:, None]
    moved = _summed(layout.segment, layout.cluster, off).reshape(len(cells), -1) / cells[:, None]
    covariance = product(moved, moved.T) / (null.shape[1] - 1)
    center = _as_near_as_it_is(center, score, evidence.ceiling)
    factor, freedom = _scatter(layout, score - center, off)
    of_people = np.zeros(len(cells)) if evidence.noise is None else same_people(layout, evidence.noise, evidence.people)
    means = np.bincount(layout.segment, center) / cells
    return Luck(means, factor * covariance + np.diag(of_people), freedom)


def _as_near_as_it_is(center: Floats, score: Floats, ceiling: Floats) -> Floats:
    """Null scores (cells,) moved so far towards the ceilings that their mean is that of the real scores.

    The truth of the null scores is as uncertain as the answers leave it. A model that knows the groups better is nearer to the truth than to
    that, and the nearer it is, the more a small sample lowers its score: with null scores alone small groups would look badly predicted.
    """
    best = np.where(np.isfinite(ceiling), ceiling, center)
    room, lead = (best - center).mean(), (score - center).mean()
    return center + (np.clip(lead / room, 0, 1) if room > 0 else 0) * (best - center)


def _scatter(layout: Cells, off: Floats, moved: Draws) -> tuple[float, float]:
    """How many times as much batteries scatter about their segment's mean as in draws, and with how many degrees of freedom that is known.

    `off` (cells,) as it is, `moved` (cells, draws) in draws. What a battery has in common in all segments makes no gap: it is taken off. The
    squares of a segment are a quadratic form Q of its batteries' sums, with (trace Q)^2 / trace Q^2 degrees of freedom (Satterthwaite 1946;
    so Bell & McCaffrey 2002), Q being known from the draws. Segments change places with each other, so that one of them is no news.
    """
    sums = _summed(layout.segment, layout.cluster, _apart(layout.cluster, off[:, None]))[:, :, 0]
    drawn = _summed(layout.segment, layout.cluster, _apart(layout.cluster, moved))
    count = _summed(layout.segment, layout.cluster, np.ones((len(off), 1)))[:, :, 0]
    share = count / count.sum(axis=1, keepdims=True)
    squares = ((sums - share * sums.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
    variance = (drawn**2).sum(axis=2) / (moved.shape[1] - 1)
    wanted, of_square = _traces(variance, share)
    known = wanted > 0
    if not known.any():
        return 1.0, np.inf
    # Of each segment's ratio the variance is 2 / freedom.
    each = wanted[known] ** 2 / of_square[known]
    freedom = (len(share) - 1) * len(each) / (1 / each).sum()
    return float((squares[known] / wanted[known]).mean()), max(float(freedom), _FEWEST)


def _traces(variance: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Of Q and of Q^2, (segments,) each: Q = A diag(variance) A', with A what takes the segment's mean, times its `share`, off each battery.

    Both (segments, batteries). With v the variances, s the shares and V the sum of v: Q = diag(v) - s v' - v s' + V s s'.
    """
    total, squares = variance.sum(axis=1), (variance**2).sum(axis=1)
    shares, both = (share**2).sum(axis=1), (share * variance).sum(axis=1)
    one = total - 2 * both + total * shares
    two = squares + 2 * shares * squares + 2 * both**2 + (total * shares) ** 2 - 4 * (share * variance**2).sum(axis=1)
    return one, two + 2 * total * (share**2 * variance).sum(axis=1) - 4 * total * shares * both


def _apart(battery: Ints, values: Draws) -> Floats:
    """Values (cells, draws) less the mean of their battery over all segments."""
    cells = np.bincount(battery)[:, None]
    return np.asarray(values - (_summed(np.zeros_like(battery), battery, values)[0] / cells)[battery])


def people_correlation(subject: Scored, model: object) -> float:
    """Of what one sample of people does to a model's scores of a segment in two questions of a round, of different batteries."""
    return HALF * float(subject.correlation(pd.Series([model]))[0])


def of_second_order(noise: Draws, cells: pd.DataFrame) -> Draws:
    """The part of `noise` (cells, replicates) that goes the same way in all questions; `cells` with `ceiling` and `parsed_score`.

    A prediction that is off its truth loses where chance moves the answers further away, and gains where it moves them nearer. In another
    question the same people move them the other way as often. A prediction that is right loses whichever way chance moves the answers. With f
    the share of the squared distance that is the sample's own, (1 - ceiling)^2 / (1 - score)^2, the latter is f / (2 - f) of the variance.
    All of it, where no ceiling is known.
    """
    score = cells["parsed_score"].to_numpy(dtype=np.float64)
    room = 1 - cells["ceiling"].to_numpy(dtype=np.float64)
    own = np.divide(room**2, (1 - score) ** 2, out=np.ones_like(room), where=score < 1)
    own = np.where(np.isnan(own), 1.0, np.clip(own, 0, 1))
    return np.asarray(noise * np.sqrt(own / (2 - own)).astype(noise.dtype)[:, None])


def same_people(layout: Cells, noise: Draws, correlation: float) -> Floats:
    """Part of the variance of each segment's mean, (segments,), that is for the same people in all batteries; `noise` (cells, replicates).

    With t_q the standard deviation of the noise of question q, and r the `correlation`: r x (the sum of t_p t_q over every two questions of one
    round in different batteries) / questions^2. What questions of one battery have in common is in the scatter of whole batteries.
    """
    cells = np.bincount(layout.segment)
    return shared_variance(noise, layout.segment, layout.cluster, layout.round, len(cells), correlation) / cells**2


def _summed(row: Ints, column: Ints, values: Draws) -> Floats:
    """Sum of `values` (cells, draws) at each row and column, (rows, columns, draws)."""
    rows, columns = int(row.max()) + 1, int(column.max()) + 1
    place = row * columns + column
    order = np.argsort(place, kind="stable")
    start = np.flatnonzero(np.diff(place[order], prepend=-1))
    sums = np.zeros((rows * columns, values.shape[1]))
    sums[place[order[start]]] = np.add.reduceat(values[order], start, axis=0, dtype=np.float64)
    return sums.reshape(rows, columns, -1)
