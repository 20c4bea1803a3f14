"""What a board says beside its means: intervals, skill between the references, worth in respondents, and how sure the ranks are.

Every number is a ratio of sums over the cells of a group, so that its replicates are products of the cluster weights with sums over each
cluster's cells. One set of weights and of drawn answers serves a whole board: numbers of two rows move together as they would in another survey.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from scipy.stats import rankdata

from dtef_pipeline.boards.cells import BoardOptions, identify
from dtef_pipeline.statistics.resampling import CONFIDENCE, MIN_CLUSTERS, Floats, Resampling, interval, why_none, within_limits
from dtef_pipeline.statistics.studentised import studentised_interval
from dtef_pipeline.survey.baselines.names import POPULATION_MARGINAL
from dtef_pipeline.survey.boards.noise import Deviations, SamplingNoise
from dtef_pipeline.survey.tables import CORRECTED

Codes = npt.NDArray[np.int64]
Chosen = npt.NDArray[np.bool_]
Floating = npt.NDArray[Any]
_ROUNDING, _ROUNDING_OF_NOISE = 1e-12, 1e-7
MIN_ROOM = 0.005
"""Room between a reference and the ceiling, in units of the score, below which skill is not told: noise alone would decide it."""
ASKED = ("context_level", "condition")
WHO = ("model", "model_variant")
COLUMNS = (
    *(
        "score_low",
        "score_high",
        "adjusted_low",
        "adjusted_high",
        "parsed_score",
        "parsed_low",
        "parsed_high",
        "n_questions",
        "ceiling",
    ),
    *("skill", "skill_low", "skill_high", "skill_from_uniform", "skill_from_uniform_low", "skill_from_uniform_high"),
    *("vs_marginal_low", "vs_marginal_high", "worth", "worth_low", "worth_high"),
    *("l2_corrected", "l2_corrected_low", "l2_corrected_high", "rps_corrected", "rps_corrected_low", "rps_corrected_high"),
    *("rank_low", "rank_high", "p_best", "note"),
)
"""Columns of `board_intervals` after its keys."""


def board_intervals(
    cells: pd.DataFrame,
    noise: SamplingNoise | None,
    keys: Sequence[str],
    options: BoardOptions,
    ranked: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """One row a (group, context level, condition, model variant) that `cells` (of `load_cells`) has, with COLUMNS.

    `keys` are the group's columns, none for the overall board. `noise`: of the same cells; None: intervals by clusters alone. `ranked`: all keys
    of the rows that are ranked; None: every row with a score.

    `score_low`, `score_high`: 95 % interval of the mean score, as every `low` and `high`; `adjusted_low`, `_high` of the score that models are
    ranked by. `parsed_score`: mean over parsed draws alone, with `parsed_low`, `_high`.
    `n_questions`: clusters with a score. `ceiling`: mean ceiling of the scored cells. `skill` = (score - others) / (ceiling - others) of means
    over the cells with all three: 0 = the leave-one-out marginal, 1 = as good as the samples allow, below 0 = worse than the marginal;
    `skill_from_uniform` likewise; both null where there is less room than MIN_ROOM. `vs_marginal_low`, `_high`: of the advantage over the
    population marginal. `l2_corrected`, `rps_corrected`: means, lower is better. `worth` = sum gini / sum l2_corrected: respondents of a real
    sample that would predict as well; null where the error is not above 0, `worth_high` infinite where it may not be. `rank_low`, `rank_high`,
    `p_best`: where 95 % of the replicates rank the row by adjusted score, and the share that put it first. `note`: what is missing and why.
    """
    if not len(cells):
        return pd.DataFrame(columns=[*keys, *ASKED, *WHO, *COLUMNS])
    cluster, clusters = identify(cells, ["cluster"])
    resampling = None
    if options.resamples and "question_id" not in keys:  # a question has one cluster: nothing to draw
        resampling = Resampling(len(clusters), resamples=options.resamples, seed=options.seed)
    asked, levels = identify(cells, ASKED)
    frames = []
    for code in range(len(levels)):
        rows = np.flatnonzero(asked == code)
        part, moved = (cells, noise) if len(levels) == 1 else (cells.iloc[rows], None if noise is None else noise.of(rows))
        grid = _grid(part, moved, [*keys, *ASKED, *WHO], cluster[rows], len(clusters))
        frames.append(_intervals(grid, resampling, ranked))
    return pd.concat(frames, ignore_index=True)


@dataclass(frozen=True, slots=True)
class _Grid:
    """Cells of one context level and condition as sums: `row` is the row of the result that each belongs to, `cluster` its question."""

    cells: pd.DataFrame
    noise: SamplingNoise | None
    rows: pd.DataFrame  # keys of the result
    row: Codes  # (cells,)
    group: Codes  # (rows,): what is ranked together
    cluster: Codes  # (cells,)
    clusters: int
    order: Codes  # (cells,) the cells by cluster and row
    starts: Codes  # (clusters x rows + 1,): where those of each cluster and row begin in `order`, and the end

    def column(self, name: str) -> Floats:
        return np.asarray(self.cells[name].to_numpy(dtype=np.float64, na_value=np.nan))

    def totals(self, values: Floats, chosen: Chosen) -> Floats:
        """(rows,) sums over the chosen cells."""
        return np.asarray(np.bincount(self.row[chosen], weights=values[chosen], minlength=len(self.rows)), dtype=np.float64)

    def sums(self, values: Floats, chosen: Chosen) -> Floats:
        """(clusters, rows) sums over the chosen cells."""
        summed = self._adding(np.float64, chosen) @ np.where(chosen, values, 0)
        return np.asarray(summed.reshape(self.clusters, len(self.rows)))

    def questions(self, chosen: Chosen) -> Codes:
        """(rows,) clusters with a chosen cell."""
        if "question_id" in self.rows:
            return np.minimum(self.totals(chosen.astype(np.float64), chosen), 1).astype(np.int64)
        return np.asarray((self.sums(np.ones(len(chosen)), chosen) > 0).sum(axis=0))

    def deviations(self, noise: Deviations, chosen: Chosen, place: Codes | None = None) -> Deviations:
        """(replicates, clusters, rows) sums of noise over the chosen cells; `place`: where in `noise` a cell's stands."""
        summed = self._adding(np.float32, chosen, place, len(noise)) @ noise
        return np.ascontiguousarray(summed.T).reshape(noise.shape[1], self.clusters, len(self.rows))

    def _adding(self, kind: type, chosen: Chosen, place: Codes | None = None, width: int | None = None) -> sparse.csr_matrix:
        """The matrix (clusters x rows, cells or places) that adds up the chosen cells of each cluster and row."""
        columns = self.order if place is None else place[self.order]
        return sparse.csr_matrix(
            (chosen[self.order].astype(kind), columns, self.starts), shape=(len(self.starts) - 1, width or len(self.cells))
        )


def _grid(cells: pd.DataFrame, noise: SamplingNoise | None, names: Sequence[str], cluster: Codes, clusters: int) -> _Grid:
    row, rows = identify(cells, names)
    group, _ = identify(rows, [name for name in names if name not in WHO])
    return _placed(_Grid(cells, noise, rows, row, group, cluster, clusters, row, row))


def _placed(grid: _Grid) -> _Grid:
    """The grid with its cells in the order of cluster and row; without, where a row is a single question and nothing is resampled."""
    if "question_id" in grid.rows:
        return grid
    flat = grid.cluster * len(grid.rows) + grid.row
    counts = np.bincount(flat, minlength=grid.clusters * len(grid.rows))
    return replace(grid, order=np.argsort(flat, kind="stable"), starts=np.concatenate([[0], np.cumsum(counts)]))


class _Number(NamedTuple):
    """A ratio of sums for each row of the result: value, 95 % interval and replicates (None without resampling)."""

    value: Floats
    low: Floats
    high: Floats
    replicates: Floats | None

    def where(self, told: Chosen) -> _Number:
        value, low, high = (np.where(told, part, np.nan) for part in (self.value, self.low, self.high))
        return _Number(value, low, high, self.replicates)

    def columns(self, name: str) -> dict[str, Floats]:
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


Term = tuple[Floats | float, Deviations, Codes | None]
Terms = Callable[[Floats, SamplingNoise], Sequence[Term]]
"""The noise of a ratio, given its value: factors of deviations, and where each cell's deviations stand (None: aligned with the cells)."""


class _Sums(NamedTuple):
    """What a ratio is made of: its value (rows,), the sums over each cluster's cells (clusters, rows), and their noise."""

    value: Floats
    numerators: Floats
    denominators: Floats
    noise: Deviations | None


def _sums(grid: _Grid, top: Floats, bottom: Floats, terms: Terms) -> _Sums:
    """Of the cells that have both; the value is null where the second sum is 0."""
    chosen = np.isfinite(top) & np.isfinite(bottom)
    value = _value(grid, top, bottom)
    noise = None
    if grid.noise is not None:
        for factor, deviations, place in terms(np.nan_to_num(value), grid.noise):
            part = grid.deviations(deviations, chosen, place) * np.asarray(factor, dtype=np.float32)
            noise = part if noise is None else noise + part
    return _Sums(value, grid.sums(top, chosen), grid.sums(bottom, chosen), noise)


def _value(grid: _Grid, top: Floats, bottom: Floats) -> Floats:
    """sum(top) / sum(bottom) over the cells that have both, null where the second is 0."""
    chosen = np.isfinite(top) & np.isfinite(bottom)
    below = grid.totals(bottom, chosen)
    return np.asarray(np.divide(grid.totals(top, chosen), below, out=np.full(len(below), np.nan), where=below != 0))


def _ratio(grid: _Grid, resampling: Resampling | None, top: Floats, bottom: Floats, terms: Terms) -> _Number:
    """sum(top) / sum(bottom) with its percentile interval."""
    if resampling is None:
        return _without_interval(_value(grid, top, bottom))
    sums = _sums(grid, top, bottom, terms)
    found = resampling.ratios(sums.numerators, sums.denominators, sums.noise)
    return _Number(sums.value, *interval(found.replicates, found.n_clusters, found.between), found.replicates)


def _without_interval(value: Floats) -> _Number:
    nothing = np.full(len(value), np.nan)
    return _Number(value, nothing, nothing, None)


def _intervals(grid: _Grid, resampling: Resampling | None, ranked: pd.DataFrame | None) -> pd.DataFrame:
    scored = np.isfinite(grid.column("score"))
    score = _mean(grid, resampling, grid.column("score"), lambda _, noise: [(1, noise.score, None)])
    score_low, score_high = within_limits(score.value, score.low, score.high)
    parsed = _mean(grid, resampling, grid.column("parsed_score"), _no_noise)
    parsed_low, parsed_high = within_limits(parsed.value, parsed.low, parsed.high)
    found: dict[str, Floating] = {
        "score_low": score_low,
        "score_high": score_high,
        "parsed_score": parsed.value,
        "parsed_low": parsed_low,
        "parsed_high": parsed_high,
        "n_questions": grid.questions(scored),
        "ceiling": _plain_mean(grid, "ceiling", scored),
    }
    for name in CORRECTED:
        found |= _mean(grid, resampling, grid.column(name), _no_noise).columns(name)
    found |= _skill(grid, resampling, "others").columns("skill")
    found |= _skill(grid, resampling, "uniform").columns("skill_from_uniform")
    found |= _worth(grid, resampling).columns("worth")
    advantage, adjusted = _against_marginal(grid, resampling, score)
    found |= {"vs_marginal_low": advantage.low, "vs_marginal_high": advantage.high}
    found["adjusted_low"], found["adjusted_high"] = _ends(adjusted, found["n_questions"])
    found |= _ranks(grid, adjusted, found["n_questions"], _is_ranked(grid, ranked, score.value))
    found["note"] = _notes(found)
    return grid.rows.assign(**{name: found[name] for name in COLUMNS})


def _ends(replicates: Floats | None, questions: Floating) -> tuple[Floats, Floats]:
    if replicates is None:
        return np.full(len(questions), np.nan), np.full(len(questions), np.nan)
    return interval(replicates, questions)


def _no_noise(value: Floats, noise: SamplingNoise) -> Sequence[Term]:
    """For means whose interval is by questions alone, whose spread holds the noise of the answers already."""
    return []


def _mean(grid: _Grid, resampling: Resampling | None, values: Floats, terms: Terms) -> _Number:
    return _ratio(grid, resampling, values, np.ones(len(values)), terms)


def _plain_mean(grid: _Grid, name: str, chosen: Chosen | bool = True) -> Floats:
    values = grid.column(name)
    known = np.isfinite(values) & chosen
    count = grid.totals(np.ones(len(values)), known)
    return np.asarray(np.divide(grid.totals(values, known), count, out=np.full(len(count), np.nan), where=count > 0))


def _less(first: Floats, second: Floats) -> Floats:
    """The difference, 0 where it is what rounding makes of equal numbers."""
    difference = first - second
    difference[np.abs(difference) < _ROUNDING] = 0
    return difference


def _noise_less(first: Deviations, second: Deviations, difference: Floats) -> Deviations:
    """Noise of a `difference` of scores (cells,): where they are equal and move alike it is 0, whatever rounding makes of it."""
    moved = first - second
    equal = np.flatnonzero(difference == 0)
    moved[equal] = np.where(np.abs(moved[equal]) < _ROUNDING_OF_NOISE, 0, moved[equal])
    return moved


def _skill(grid: _Grid, resampling: Resampling | None, reference: str) -> _Number:
    """(score - reference) / (ceiling - reference) of means; with drawn answers the score and the reference move, the ceiling does not."""
    score, below, ceiling = (grid.column(name) for name in ("score", reference, "ceiling"))

    def terms(skill: Floats, noise: SamplingNoise) -> list[Term]:
        moved = getattr(noise, reference)
        return [(1, _noise_less(noise.score, moved[noise.pair], top), None), (skill, moved, noise.pair)]

    top, bottom = _less(score, below), np.where(np.isfinite(score), ceiling - below, np.nan)
    known = np.isfinite(top) & np.isfinite(bottom)
    count = grid.totals(np.ones(len(top)), known)
    room = np.divide(grid.totals(bottom, known), count, out=np.zeros(len(count)), where=count > 0)
    return _ratio(grid, resampling, top, bottom, terms).where(room >= MIN_ROOM)


def _worth(grid: _Grid, resampling: Resampling | None) -> _Number:
    """Respondents: the inverse of sum(l2_corrected) / sum(gini), whose interval may reach below 0 where the worth is without limit."""

    def terms(error: Floats, noise: SamplingNoise) -> list[Term]:
        return [(1, noise.l2_corrected, None), (-error, noise.gini, noise.pair)]

    top, bottom = grid.column("l2_corrected"), grid.column("gini")
    error = _without_interval(_value(grid, top, bottom))
    if resampling is not None:
        sums = _sums(grid, top, bottom, terms)
        drawn = {"resamples": resampling.resamples, "seed": resampling.seed}
        low, high = studentised_interval(sums.numerators, sums.denominators, sums.noise, **drawn)
        error = _Number(sums.value, low, high, None)
    with np.errstate(divide="ignore", invalid="ignore"):
        value, low, high = (np.where(part > 0, 1 / part, np.nan) for part in (error.value, error.high, error.low))
    unlimited = np.where(error.low <= 0, np.inf, high)
    return _Number(value, low, unlimited, None).where(error.value > 0)


def _against_marginal(grid: _Grid, resampling: Resampling | None, score: _Number) -> tuple[_Number, Floats | None]:
    """Advantage over the population marginal on shared cells, and replicates of the adjusted score that models are ranked by."""
    values = grid.column("score")
    cell, names = identify(grid.cells, ("round", "segment", "question_id"))
    of_marginal = (grid.cells["model"] == POPULATION_MARGINAL).to_numpy() & np.isfinite(values)
    count = np.bincount(cell[of_marginal], minlength=len(names))
    total = np.bincount(cell[of_marginal], weights=values[of_marginal], minlength=len(names))
    marginal = np.divide(total, count, out=np.full(len(names), np.nan), where=count > 0)

    def terms(_: Floats, noise: SamplingNoise) -> list[Term]:
        moved = np.zeros((len(names), noise.score.shape[1]), dtype=np.float32)
        np.add.at(moved, cell[of_marginal], noise.score[of_marginal])
        moved /= np.maximum(count, 1).astype(np.float32)[:, None]
        return [(1, _noise_less(noise.score, moved[cell], gained), None)]

    gained = _less(values, marginal[cell])
    advantage = _mean(grid, resampling, gained, terms)
    if advantage.replicates is None or score.replicates is None:
        return advantage, None
    level = _mean(
        _groups(grid, of_marginal), resampling, values[of_marginal], lambda _, noise: [(1, noise.score, None)]
    ).replicates
    adjusted = advantage.replicates + (0 if level is None else level[:, grid.group])
    return advantage, np.where(np.isfinite(advantage.value), adjusted, score.replicates)


def _groups(grid: _Grid, chosen: Chosen) -> _Grid:
    """Some of the cells, whose rows are the groups."""
    rows = grid.rows.iloc[np.unique(grid.group, return_index=True)[1]]
    noise = None if grid.noise is None else grid.noise.of(np.flatnonzero(chosen))
    part = replace(
        grid, cells=grid.cells[chosen], noise=noise, rows=rows, row=grid.group[grid.row[chosen]], cluster=grid.cluster[chosen]
    )
    return _placed(part)


def _is_ranked(grid: _Grid, ranked: pd.DataFrame | None, score: Floats) -> Chosen:
    if ranked is None:
        return np.isfinite(score)
    names = list(grid.rows.columns)
    known = ranked[names].astype(str).assign(is_ranked=True)
    return grid.rows.astype(str).merge(known, on=names, how="left")["is_ranked"].notna().to_numpy()


def _ranks(grid: _Grid, adjusted: Floats | None, questions: Floating, ranked: Chosen) -> dict[str, Floats]:
    """Range of ranks and chance of the first place, among the ranked rows of each group that have clusters enough."""
    found = {name: np.full(len(ranked), np.nan) for name in ("rank_low", "rank_high", "p_best")}
    tail = (1 - CONFIDENCE) / 2
    for group in np.unique(grid.group) if adjusted is not None else []:
        rows = np.flatnonzero((grid.group == group) & ranked)
        told = questions[rows] >= MIN_CLUSTERS
        if adjusted is None or not told.any():
            continue
        # Equal scores added in another order are to stay equal.
        values = np.round(np.nan_to_num(adjusted[:, rows], nan=-np.inf), 12)
        ranks = rankdata(-values, method="min", axis=1)
        first = ranks == 1
        low, high = np.quantile(ranks, (tail, 1 - tail), axis=0, method="inverted_cdf")
        best = (first / first.sum(axis=1, keepdims=True)).mean(axis=0)
        for name, values in (("rank_low", low), ("rank_high", high), ("p_best", best)):
            found[name][rows[told]] = values[told]
    return found


def _notes(found: dict[str, Floating]) -> npt.NDArray[np.object_]:
    """Why a row has no interval, no skill or no worth, in words; empty where it has all."""
    why = [[why_none(int(questions))] for questions in found["n_questions"]]
    no_ceiling, no_error = np.isnan(found["ceiling"]), np.isnan(found["l2_corrected"])
    unread = np.isnan(found["parsed_score"]) & (found["n_questions"] > 0)
    for place in np.flatnonzero(unread):
        why[place].append("no answer could be read")
    no_skill, no_worth = np.isnan(found["skill"]), np.isnan(found["worth"])
    for place in np.flatnonzero(no_skill | no_worth):
        if no_ceiling[place]:
            why[place].append("no ceiling known")
        elif no_skill[place]:
            why[place].append("skill: no leave-one-out marginal, or no room between it and the ceiling")
        if not no_ceiling[place] and no_worth[place] and not no_error[place]:
            why[place].append("worth: no error beyond what the samples explain, more respondents than can be told")
    return np.array(["; ".join(filter(None, parts)) for parts in why], dtype=object)
