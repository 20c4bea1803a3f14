"""How good scores of surveys are, between what is known without asking and what samples allow: skill, worth, lead over the marginal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dtef_pipeline.boards.cells import identify
from dtef_pipeline.boards.intervals import Measured
from dtef_pipeline.boards.ratios import (
    Chosen,
    Grid,
    Number,
    Sums,
    Term,
    groups_of,
    mean_of,
    number_of,
    sums_of,
    value_of,
    without_interval,
)
from dtef_pipeline.boards.scored import Deviations
from dtef_pipeline.statistics.resampling import Floats, Ratios, Resampling
from dtef_pipeline.statistics.shared_noise import OF_OBSERVED
from dtef_pipeline.statistics.studentised import studentised_interval
from dtef_pipeline.survey.boards.noise import SamplingNoise

_EQUAL, _EQUAL_NOISE = 1e-12, 1e-7
MIN_ROOM = 0.005
"""Room between a reference and the ceiling, in units of the score, below which no skill is given: noise alone would decide it."""
ROOM_WIDTH, ROOM_SHARE, SURE_CLUSTERS = 0.05, 0.5, 10
"""An interval of skill needs so many clusters, and that the interval of the room itself is above 0 and narrower than the first, in units of
the score, or than this share of the room. (A limit relative to the room alone would show skill where a small room came out large by chance.)"""
ADDED = (
    *(
        "score_low",
        "score_high",
        "adjusted_low",
        "adjusted_high",
        "parsed_score",
        "parsed_low",
        "parsed_high",
        "n_questions",
        "n_batteries",
        "effective_questions",
        "ceiling",
    ),
    *("skill", "skill_low", "skill_high", "skill_from_uniform", "skill_from_uniform_low", "skill_from_uniform_high"),
    *("vs_marginal_low", "vs_marginal_high", "worth", "worth_low", "worth_high"),
    *("l2_corrected", "l2_corrected_low", "l2_corrected_high", "rps_corrected", "rps_corrected_low", "rps_corrected_high"),
    *("rank_low", "rank_high", "p_best", "interval_kind", "note"),
)
"""Columns that boards have with intervals, after those that they have without."""


def measures(grid: Grid, resampling: Resampling | None, score: Number) -> Measured:
    """`ceiling`, `skill`, `skill_from_uniform`, `worth`, the ends of `vs_marginal`, and the adjusted score, of rows with the mean `score`.

    `ceiling`: mean ceiling of the scored cells. `skill` = (score - others) / (ceiling - others) of means over the cells with all three: 0 = the
    leave-one-out marginal, 1 = as good as the samples allow, below 0 = worse than the marginal; `skill_from_uniform` likewise; both null where
    there is less room than MIN_ROOM, and without interval where too little is known of it (ROOM_WIDTH, ROOM_SHARE, SURE_CLUSTERS).
    `vs_marginal_low`, `_high`: of the advantage over the population marginal. `worth` = sum gini / sum l2_corrected: respondents of a real
    sample that would predict as well; null where the error is not above 0, `worth_high` infinite where it may not be.
    """
    columns = {
        "ceiling": _plain_mean(grid, "ceiling", np.isfinite(grid.column("score"))),
        **_skill(grid, resampling, "others").columns("skill"),
        **_skill(grid, resampling, "uniform").columns("skill_from_uniform"),
        **_worth(grid, resampling).columns("worth"),
    }
    advantage, adjusted = _against_marginal(grid, resampling, score)
    columns |= {"vs_marginal_low": advantage.low, "vs_marginal_high": advantage.high}
    errors = _plain_mean(grid, "l2_corrected")
    no_end = np.isnan(columns["skill_low"]) & ~np.isnan(columns["skill"]) & ~np.isnan(score.low)
    notes = _notes({**columns, "l2_corrected": errors}, no_end, *_without_n(grid))
    return Measured(columns, adjusted, notes)


def _without_n(grid: Grid) -> tuple[Floats, Floats]:
    """Of each row the scored cells of which no n is known, though their references are, and all scored cells."""
    scored = np.isfinite(grid.column("score"))
    unknown = scored & np.isfinite(grid.column("uniform")) & np.isnan(grid.column("gini")) & np.isnan(grid.column("ceiling"))
    ones = np.ones(len(scored))
    return grid.totals(ones, unknown), grid.totals(ones, scored)


def _plain_mean(grid: Grid, name: str, chosen: Chosen | bool = True) -> Floats:
    values = grid.column(name)
    known = np.isfinite(values) & chosen
    count = grid.totals(np.ones(len(values)), known)
    return np.asarray(np.divide(grid.totals(values, known), count, out=np.full(len(count), np.nan), where=count > 0))


def _less(first: Floats, second: Floats) -> Floats:
    """The difference, 0 where it is what rounding makes of equal numbers."""
    difference = first - second
    difference[np.abs(difference) < _EQUAL] = 0
    return difference


def _noise_less(first: Deviations, second: Deviations, difference: Floats) -> Deviations:
    """Noise of a `difference` of scores (cells,): where they are equal and move alike it is 0, whatever rounding makes of it."""
    moved = first - second
    equal = np.flatnonzero(difference == 0)
    moved[equal] = np.where(np.abs(moved[equal]) < _EQUAL_NOISE, 0, moved[equal])
    return moved


def _skill(grid: Grid, resampling: Resampling | None, reference: str) -> Number:
    """(score - reference) / (ceiling - reference) of means; with drawn answers the score and the reference move, the ceiling does not."""
    score, below, ceiling = (grid.column(name) for name in ("score", reference, "ceiling"))

    def terms(skill: Floats, noise: SamplingNoise) -> list[Term]:
        moved = getattr(noise, reference)
        return [(1, _noise_less(noise.score, moved[noise.pair], top), None), (skill, moved, noise.pair)]

    top, bottom = _less(score, below), np.where(np.isfinite(score), ceiling - below, np.nan)
    known = np.isfinite(top) & np.isfinite(bottom)
    count = grid.totals(np.ones(len(top)), known)
    room = np.divide(grid.totals(bottom, known), count, out=np.zeros(len(count)), where=count > 0)
    if resampling is None:
        return without_interval(value_of(grid, top, bottom)).where(room >= MIN_ROOM)
    sums = sums_of(grid, top, bottom, terms)
    if reference == "others":
        sums = _with_observed(sums, grid, known, lambda noise: (1 - np.nan_to_num(sums.value), noise.others, noise.pair))
    low = np.divide(grid.totals(grid.column("ceiling_low") - below, known), count, out=np.zeros(len(count)), where=count > 0)
    # Where other questions and people might leave much less room, a ratio to it could be anything (Fieller 1954).
    found = widened(number_of(sums, resampling), room, low).where(room >= MIN_ROOM)
    between = _room(grid, resampling, np.where(known, bottom, np.nan), reference)
    unsure = ~((between.low > 0) & (between.high - between.low < np.maximum(ROOM_WIDTH, ROOM_SHARE * room)))
    if between.spread is not None:
        unsure |= between.spread.n_clusters < SURE_CLUSTERS
    return found._replace(low=np.where(unsure, np.nan, found.low), high=np.where(unsure, np.nan, found.high))


def _with_observed(sums: Sums, grid: Grid, chosen: Chosen, part: Callable[[Any], Term]) -> Sums:
    """Where a model predicts without these people's answers: what they share is at least that of the `part` that is made of the answers.

    Within a question the noise of a score and that of such a reference nearly cancel; over questions that of the score averages out, and that
    of the reference does not.
    """
    if grid.noise is None or sums.noise is None:
        return sums
    alone = grid.deviations([part(grid.noise)], chosen, OF_OBSERVED)
    least = np.where(grid.correlation < OF_OBSERVED, 0.0 if alone is None else alone.shared, 0)
    return sums._replace(noise=sums.noise._replace(shared=np.maximum(sums.noise.shared, least)))


def _room(grid: Grid, resampling: Resampling, room: Floats, reference: str) -> Number:
    """Mean of the `room` (cells,) between the reference and the ceiling; with drawn answers the reference moves."""

    def terms(_: Floats, noise: SamplingNoise) -> list[Term]:
        return [(-1, getattr(noise, reference), noise.pair)]

    return number_of(sums_of(grid, room, np.ones(len(room)), terms, OF_OBSERVED), resampling)


def widened(skill: Number, room: Floats, low: Floats) -> Number:
    """With the ends that it has by one ceiling or the other: the `room` to the ceiling, and that to the lowered one, MIN_ROOM or more."""
    with np.errstate(divide="ignore", invalid="ignore"):
        more = np.maximum(np.where(np.isfinite(low), room / np.maximum(low, MIN_ROOM), 1), 1)
        return skill._replace(low=np.minimum(skill.low, skill.low * more), high=np.maximum(skill.high, skill.high * more))


def _worth(grid: Grid, resampling: Resampling | None) -> Number:
    """Respondents: the inverse of sum(l2_corrected) / sum(gini), whose interval may reach below 0 where the worth is without limit."""

    def terms(error: Floats, noise: SamplingNoise) -> list[Term]:
        return [(1, noise.corrected["l2_corrected"], None), (-error, noise.gini, noise.pair)]

    top, bottom = grid.column("l2_corrected"), grid.column("gini")
    error = without_interval(value_of(grid, top, bottom))
    if resampling is not None:
        sums = sums_of(grid, top, bottom, terms)
        low, high = studentised_interval(
            sums.numerators,
            sums.denominators,
            sums.noise,
            resamples=resampling.resamples,
            seed=resampling.seed,
        )
        error = Number(sums.value, low, high, None)
    with np.errstate(divide="ignore", invalid="ignore"):
        value, low, high = (np.where(part > 0, 1 / part, np.nan) for part in (error.value, error.high, error.low))
    unlimited = np.where(error.low <= 0, np.inf, high)
    return Number(value, low, unlimited, None).where(error.value > 0)


def _against_marginal(grid: Grid, resampling: Resampling | None, score: Number) -> tuple[Number, Ratios | None]:
    """Advantage over the population marginal on shared cells, and the adjusted score that models are ranked by, which scatters as the score."""
    values = grid.column("score")
    cell, names = identify(grid.cells, grid.subject.keys.pair)
    of_marginal = (grid.cells["model"] == grid.subject.marginal).to_numpy() & np.isfinite(values)
    count = np.bincount(cell[of_marginal], minlength=len(names))
    total = np.bincount(cell[of_marginal], weights=values[of_marginal], minlength=len(names))
    marginal = np.divide(total, count, out=np.full(len(names), np.nan), where=count > 0)

    def terms(_: Floats, noise: SamplingNoise) -> list[Term]:
        moved = np.zeros((len(names), noise.score.shape[1]), dtype=np.float32)
        np.add.at(moved, cell[of_marginal], noise.score[of_marginal])
        moved /= np.maximum(count, 1).astype(np.float32)[:, None]
        return [(1, _noise_less(noise.score, moved[cell], gained), None)]

    gained = _less(values, marginal[cell])
    if resampling is None or score.replicates is None or score.spread is None:
        return mean_of(grid, resampling, gained, terms), None
    lead = sums_of(grid, gained, np.ones(len(gained)), terms, OF_OBSERVED)
    groups, of_groups = groups_of(grid, of_marginal), values[of_marginal]
    level = sums_of(groups, of_groups, np.ones(len(of_groups)), lambda _, noise: [(1, noise.score, None)], OF_OBSERVED)
    advantage = number_of(lead, resampling)
    mean, led = number_of(level, resampling), np.isfinite(advantage.value)
    if advantage.replicates is None or mean.replicates is None or advantage.spread is None or mean.spread is None:
        return advantage, None
    # What all clusters share is that of the sum: of a model that was asked everything, that of its score.
    people = score.spread.shared - advantage.spread.shared - mean.spread.shared[grid.group]
    added = advantage.replicates + mean.replicates[:, grid.group] + np.outer(resampling.people, people)
    value = np.where(led, advantage.value + mean.value[grid.group], score.value)
    return advantage, Ratios(value, np.where(led, added, score.replicates), score.spread)


def _notes(columns: Mapping[str, Floats], no_end: Chosen, unknown: Floats, scored: Floats) -> list[list[str]]:
    """Why a row has no skill or no worth, or skill `no_end` of an interval, in words; empty where it has all.

    `unknown`: of how many of its `scored` pairs no n is known.
    """
    why: list[list[str]] = [[] for _ in columns["ceiling"]]
    no_ceiling, no_error = np.isnan(columns["ceiling"]), np.isnan(columns["l2_corrected"])
    no_skill, no_worth = np.isnan(columns["skill"]), np.isnan(columns["worth"])
    for place in np.flatnonzero(no_skill | no_worth | no_end | (unknown > 0)):
        if unknown[place]:
            why[place].append(_n_unknown(int(unknown[place]), int(scored[place])))
        elif no_ceiling[place]:
            why[place].append("no ceiling known")
        elif no_skill[place]:
            why[place].append("skill: no leave-one-out marginal, or no room between it and the ceiling")
        elif no_end[place]:
            why[place].append("skill: no interval, too little is known of the room between the marginal and the ceiling")
        if not no_ceiling[place] and no_worth[place] and not no_error[place]:
            why[place].append("worth: no error beyond what the samples explain, more respondents than can be told")
    return why


def _n_unknown(unknown: int, scored: int) -> str:
    """What a row lacks where no n is known of some of its scored pairs, or of all."""
    if unknown == scored:
        return "n is unknown: no ceiling, skill, worth or corrected error, and intervals for other questions alone"
    left = f"n is unknown of {unknown:,} of {scored:,} pairs"
    return f"{left}: ceiling, skill, worth and corrected errors are of the others, as is what intervals add for other people"
