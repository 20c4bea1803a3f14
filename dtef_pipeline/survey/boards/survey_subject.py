"""The boards of surveys: key columns, metrics, measures, options, and rows of one context level and condition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from dtef_pipeline.boards.cells import BoardOptions, BoardSubject, Deviations
from dtef_pipeline.boards.intervals import Grid, Mask, Measures, NoiseTerm
from dtef_pipeline.statistics.cluster_robust import OF_OBSERVED, Floats
from dtef_pipeline.survey.answer_scales.batteries import load_question_clusters
from dtef_pipeline.survey.attributes import NON_ANSWER_SQL
from dtef_pipeline.survey.baselines.names import (
    EMPIRICAL_BAYES,
    LEAVE_ONE_OUT,
    NEAREST_SEGMENTS,
    POPULATION_MARGINAL,
    SHUFFLED_SEGMENT,
)
from dtef_pipeline.survey.blueprint.options import ContextLevel
from dtef_pipeline.survey.boards.noise import SamplingNoise, estimate_sampling_noise
from dtef_pipeline.survey.boards.schemas import RELIABILITY
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.question_draw import Sample
from dtef_pipeline.survey.scoring.metrics import CREDITS
from dtef_pipeline.survey.tables import CORRECTED, DISTANCES, METRICS


class Setting(NamedTuple):
    """A context level under a condition."""

    level: str
    condition: str

    def select_rows(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of this context level and condition. An empty frame may lack these columns."""
        if not len(frame):
            return frame
        rows: pd.DataFrame = frame[(frame["context_level"] == self.level) & (frame["condition"] == self.condition)]
        return rows


def group_by_setting(frame: pd.DataFrame) -> Iterator[tuple[Setting, pd.DataFrame]]:
    """Yield the rows of each context level and condition, most context first. Numbers of different groups cannot be compared."""
    if not len(frame):
        return
    settings = {Setting(*pair) for pair in frame[["context_level", "condition"]].astype(str).itertuples(index=False)}
    for setting in sorted(settings, key=lambda item: (-ContextLevel(item.level).order, item.condition)):
        yield setting, setting.select_rows(frame)


_EQUAL_SCORES, _EQUAL_NOISE = 1e-12, 1e-7
MIN_ROOM = 0.005
"""Room between the leave-one-out marginal and the ceiling, in units of the score, below which skill would be mere noise and is null."""
ROOM_WIDTH, ROOM_SHARE, SURE_CLUSTERS = 0.05, 0.5, 10
"""An interval of skill needs so many clusters, and that the interval of the room itself is above 0 and narrower than the first, in units of
the score, or than this share of the room. (A limit relative only to the room would show skill if a small room was large by chance.)"""
ADDED = (
    *("score_low", "score_high", "parsed_score", "ceiling", "skill", "skill_low", "skill_high", "worth"),
    *("n_questions", "n_batteries", "note"),
)
"""Columns that boards have with intervals, after those that they have without."""


def compute_measures(grid: Grid) -> Measures:
    """Return `ceiling`, `skill` with its interval, and `worth` of the rows of a board.

    `ceiling`: mean ceiling of the scored cells. `skill` = (score - others) / (ceiling - others) of means over the cells with all three: 0 =
    the leave-one-out marginal, 1 = as good as the samples allow, below 0 = worse than the marginal; null if the room between both is less
    than MIN_ROOM, and without interval if the room is too uncertain (ROOM_WIDTH, ROOM_SHARE, SURE_CLUSTERS). `worth` = sum gini / sum
    l2_corrected: the size of a real sample that would predict as well; null if the error is not above 0, and for the population marginal,
    which contains the answers that it is scored against.
    """
    has_score = np.isfinite(grid.column("score"))
    ceiling = grid.mean(np.where(has_score, grid.column("ceiling"), np.nan))
    skill = _compute_skill(grid)
    error = grid.ratio(grid.column("l2_corrected"), grid.column("gini"))
    is_marginal = (grid.rows["model"] == POPULATION_MARGINAL).to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.where((error > 0) & ~is_marginal, 1 / error, np.nan)
    columns = {"ceiling": ceiling, **skill, "worth": worth}
    no_end = np.isnan(columns["skill_low"]) & ~np.isnan(columns["skill"]) & (not grid.is_of_items)
    return Measures(columns, _write_skill_notes(columns, error, is_marginal, no_end, *_count_unknown(grid)))


def _compute_skill(grid: Grid) -> dict[str, Floats]:
    """Return `skill`, `skill_low` and `skill_high`. Other answers change the score and the marginal, but not the ceiling."""
    score, below, ceiling = (grid.column(name) for name in ("score", "leave_one_out_score", "ceiling"))
    top, bottom = score - below, np.where(np.isfinite(score), ceiling - below, np.nan)
    top[np.abs(top) < _EQUAL_SCORES] = 0  # what is due to rounding
    is_known = np.isfinite(top) & np.isfinite(bottom)
    room = grid.mean(np.where(is_known, bottom, np.nan))
    if grid.is_of_items:
        nans = np.full(len(room), np.nan)
        return {"skill": np.where(room >= MIN_ROOM, grid.ratio(top, bottom), np.nan), "skill_low": nans, "skill_high": nans}

    def list_skill_terms(skill: Floats, noise: SamplingNoise) -> list[NoiseTerm]:
        return [(1, _subtract_noise(noise, top), None), (skill, noise.marginal, noise.pair)]

    def list_room_terms(_: Floats, noise: SamplingNoise) -> list[NoiseTerm]:
        return [(-1, noise.marginal, noise.pair)]

    def list_marginal_terms(skill: Floats, noise: SamplingNoise) -> list[NoiseTerm]:
        return [(1 - skill, noise.marginal, noise.pair)]

    # Where a model predicts without these people's answers, what they share is at least that of the marginal's part, which is made of them:
    # over questions the noise of the score averages out, and that of the marginal does not.
    marginal_variance = grid.compute_shared_variance(list_marginal_terms, grid.ratio(top, bottom), is_known, OF_OBSERVED)
    ratio = grid.estimate(top, bottom, list_skill_terms, floor=np.where(grid.correlation < OF_OBSERVED, marginal_variance, 0))
    low, high = _widen_interval(
        *ratio.interval(), room, grid.mean(np.where(is_known, grid.column("ceiling_low") - below, np.nan))
    )
    room_estimate = grid.estimate(np.where(is_known, bottom, np.nan), np.ones(len(bottom)), list_room_terms, OF_OBSERVED)
    room_low, room_high = room_estimate.interval()
    is_sure = (room_low > 0) & (room_high - room_low < np.maximum(ROOM_WIDTH, ROOM_SHARE * room))
    is_sure &= (room_estimate.n_clusters >= SURE_CLUSTERS) & (room >= MIN_ROOM)
    return {
        "skill": np.where(room >= MIN_ROOM, ratio.value, np.nan),
        "skill_low": np.where(is_sure, low, np.nan),
        "skill_high": np.where(is_sure, high, np.nan),
    }


def _subtract_noise(noise: SamplingNoise, difference: Floats) -> Deviations:
    """Return the noise of a score minus that of the marginal; exactly 0 if both are equal except for rounding."""
    moves = noise.score - noise.marginal[noise.pair]
    equal = np.flatnonzero(difference == 0)
    moves[equal] = np.where(np.abs(moves[equal]) < _EQUAL_NOISE, 0, moves[equal])
    return moves


def _widen_interval(low: Floats, high: Floats, room: Floats, low_room: Floats) -> tuple[Floats, Floats]:
    """Return an interval of skill that covers the ceiling, with `room` below it, and the lowered ceiling, with `low_room`, at least
    MIN_ROOM.

    If other questions and people could leave much less room, the ratio to it is unbounded (Fieller 1954).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.maximum(np.where(np.isfinite(low_room), room / np.maximum(low_room, MIN_ROOM), 1), 1)
    return np.minimum(low, low * factor), np.maximum(high, high * factor)


def _count_unknown(grid: Grid) -> tuple[Floats, Floats]:
    """Return for each row the number of scored cells with references but an unknown n, and of all scored cells."""
    has_score = np.isfinite(grid.column("score"))
    unknown = (
        has_score & np.isfinite(grid.column("uniform_score")) & np.isnan(grid.column("gini")) & np.isnan(grid.column("ceiling"))
    )
    weights = np.ones(len(has_score))
    return grid.totals(weights, unknown), grid.totals(weights, has_score)


def _write_skill_notes(
    columns: Mapping[str, Floats], error: Floats, is_marginal: Mask, no_end: Mask, unknown: Floats, n_scored: Floats
) -> list[list[str]]:
    """Return the reasons why a row has no skill, worth or interval of skill; empty if it has all.

    `no_end`: rows with skill but no interval. `unknown`: the number of the `n_scored` pairs with an unknown n.
    """
    reasons: list[list[str]] = [[] for _ in error]
    no_ceiling, no_skill = np.isnan(columns["ceiling"]), np.isnan(columns["skill"])
    no_worth = np.isnan(columns["worth"]) & ~np.isnan(error) & ~no_ceiling & ~is_marginal
    for place in np.flatnonzero(no_skill | no_end | no_worth | (unknown > 0)):
        if unknown[place]:
            reasons[place].append(_describe_unknown(int(unknown[place]), int(n_scored[place])))
        elif no_ceiling[place]:
            reasons[place].append("the ceiling is unknown")
        elif no_skill[place]:
            reasons[place].append("no skill: the leave-one-out marginal is unknown, or it reaches the ceiling")
        elif no_end[place]:
            reasons[place].append(
                "skill has no interval: the distance from the leave-one-out marginal to the ceiling is too uncertain"
            )
        if no_worth[place]:
            reasons[place].append("no worth: sampling noise explains the whole error")
    return reasons


def _describe_unknown(unknown: int, n_scored: int) -> str:
    if unknown == n_scored:
        return (
            "the number of respondents is unknown: no ceiling, skill or worth, and intervals ignore the choice of respondents"
        )
    reason = f"the number of respondents is unknown in {unknown:,} of {n_scored:,} pairs"
    return f"{reason}: ceiling, skill and worth use the other pairs, and intervals allow for the choice of respondents on those only"


SCORED = BoardSubject(
    keys=KEYS,
    metrics=METRICS,
    distances=DISTANCES,
    credits={credit.status: credit.score for credit in CREDITS},
    corrected=CORRECTED,
    references=("ceiling", "ceiling_low", "uniform_score", "leave_one_out_score", "population_score"),
    typical=("leave_one_out_score", "population_score"),
    facts={"n": "INTEGER", "gini": "DOUBLE"},
    size=lambda level: ContextLevel(level).order,
    observed_baselines=frozenset((POPULATION_MARGINAL, LEAVE_ONE_OUT, NEAREST_SEGMENTS, EMPIRICAL_BAYES, SHUFFLED_SEGMENT)),
    marginal=POPULATION_MARGINAL,
    reference=LEAVE_ONE_OUT,
    ranked_from=10,  # segments: weval methodology 5.3
    reliability=RELIABILITY,
    reference_remedy="ingest the round again",
    clusters=load_question_clusters,
    noise=estimate_sampling_noise,
    measures=compute_measures,
    columns=ADDED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyBoardOptions(BoardOptions):
    """The scores of a board: of these rounds, segments and context levels (empty: all), under one condition (None: each).

    `questions`: only the first so many drawn questions of each round. `sample_segments`: only the first so many drawn segments of each
    question. None: all. `non_answers`: include segments of people who did not answer; segments in `segments` always count.
    """

    subject: BoardSubject = SCORED
    metric: str = "js"
    rounds: tuple[str, ...] = ()
    context_levels: tuple[str, ...] = ()
    condition: str | None = None
    segments: tuple[str, ...] = ()
    questions: int | None = None
    sample_segments: int | None = None
    non_answers: bool = False

    @property
    def extra_condition(self) -> str | None:
        return " AND ".join(filter(None, (self.respondents_sql, self.sample.pairs_sql))) or None

    @property
    def people(self) -> list[str]:
        """The keys of rows with the same people: those of a round or, with sampled segments, of a round and segment."""
        return list(self.subject.keys.space[: 1 if self.sample_segments is None else 2])

    @property
    def sample(self) -> Sample:
        return Sample(self.questions, self.sample_segments)

    @property
    def respondents_sql(self) -> str | None:
        """SQL that excludes segments of people who did not answer, or None if all count."""
        return None if self.non_answers or self.segments else f"NOT {NON_ANSWER_SQL}"

    @property
    def selected_values(self) -> Mapping[str, Sequence[object]]:
        """The included values of key columns, by column; empty for all."""
        return {
            "round": self.rounds,
            "segment": self.segments,
            "context_level": self.context_levels,
            "condition": () if self.condition is None else (self.condition,),
        }
